"""The released soft methods: GMM and TMM, with a covariance for each component; t-k-means and its fast variant."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import digamma, gamma

from tkmeans.stats import Array, Block

FIRST_DOF, FIRST_SCALE = 15.0, 0.01  # of t-k-means
numbers = partial(np.nan_to_num, posinf=np.inf, neginf=-np.inf)  # the same, with 0 for what is not a number


@final
class Rows:
    """Moments of rows and distances to them, one component after the other: what is made stays in the cache."""

    def __init__(self, x: Array) -> None:
        self.x = np.ascontiguousarray(x)  # (n, p)
        self._features = np.ascontiguousarray(x.T)  # sums over features then run along the rows

    def means(self, weight: Array) -> Array:
        """The weighted means."""
        return weight @ self.x / weight.sum(axis=1)[:, None]

    def scatters(self, weight: Array, centers: Array) -> Array:
        """Of many features only for rows whose part is not lost in rounding: most are some other component's."""
        scatter = np.empty((len(centers), *2 * centers.shape[1:]))
        for k, (w, center) in enumerate(zip(weight, centers, strict=True)):
            own: Any = slice(None)
            if len(center) > 3:
                own = np.flatnonzero(~(w <= np.finfo(float).eps / len(w) * w.sum()))  # not a number counts
            part = (self._features[:, own] - center[:, None]) * np.sqrt(w[own])
            np.matmul(part, part.T, out=scatter[k])  # symmetric, which halves the work
        return scatter

    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """(x - c)^T P (x - c), where P is the inverse of C, and the determinants of C."""
        d2 = np.empty((len(centers), len(self.x)))
        for k, (center, precision) in enumerate(zip(centers, np.linalg.inv(covariances), strict=True)):
            away = self._features - center[:, None]
            np.einsum("pn,pn->n", precision @ away, away, out=d2[k])
        return d2, np.linalg.det(covariances)


class Measured(NamedTuple):
    """Rows, and how far they are from every component."""

    rows: Rows
    d2: Array  # (K, n) squared, in the metric of the component
    det: Array  # (K,) of the components' covariances; 1 without


class Memberships(NamedTuple):
    """Rows, and the result of an E-step for each of them in each component."""

    measured: Measured
    tau: Array  # (K, n)
    trust: Array  # (K, n) u over its value at the centre, 1 + p/nu
    sizes: Array  # (K,) sum of tau
    objective: float  # Q

    @property
    def total(self) -> float:
        """The number of rows."""
        return float(self.tau.shape[1])

    @property
    def labels(self) -> Array:
        """The most probable component of each row; the first where nothing is known."""
        return np.argmax(np.where(np.isnan(self.tau), -np.inf, self.tau), axis=0)


class SoftModel(ABC):
    """A row belongs to each component in proportion to its density, ``height * exp(-fall * away)``.

    Parameters are `Spheres` or `Components`. They keep all `measured` rows, where an M-step has looked at them.
    """

    climbs = False

    @abstractmethod
    def density(self, measured: Measured, params: Any) -> tuple[Array, Array, Array, Array]:
        """height, (K,), fall, (K,), away, (K, n), and the trust, (K, n)."""

    def e_step(self, params: Any) -> Callable[[Block], Memberships]:
        """A function that does the E-step under `params` for all rows, which are one block."""

        def visit(block: Block) -> Memberships:
            with np.errstate(all="ignore"):
                measured = params.measured or params.measure(Rows(block.X))
                height, fall, away, trust = self.density(measured, params)
                f = np.exp(-fall[:, None] * away)
                f *= height[:, None]  # afterwards: what overflows without it is infinite with it
                tau = np.divide(f, f.sum(axis=0), out=f)  # not a number where that is 0/0 or infinite
                sizes, log_height = tau.sum(axis=1), np.log(height)
                q = float(log_height @ sizes - fall @ np.einsum("kn,kn->k", tau, away))
                if not np.isfinite(q):
                    q = float(np.nansum(tau * (log_height[:, None] - fall[:, None] * away)))
                return Memberships(measured, tau, trust, sizes, q)

        return visit


def bases(d2: Array, slope: Any) -> tuple[Array, Array]:
    """ln(1 + slope D), and 1/(1 + slope D): both (K, n)."""
    base = 1 + np.reshape(slope, (-1, 1)) * d2
    return np.log(base), 1 / base


def next_dof(mean_log_u_minus_u: Array, dof: Array, n_features: int) -> Array:
    """nu = 1/(-eta) + 0.01.

    The mean is under tau; for t-k-means the mean over clusters of the clusters' means, as in the paper, where maximum
    likelihood pools all rows. The code starts from 1/(-eta) and adds 0.01 until ``ln(nu) - psi(nu) + eta`` is not
    positive (psi(nu), where eqn:nu_eq has nu/2). As ``ln(nu) - psi(nu) < 1/nu`` that always holds after one step.
    """
    half = (dof + n_features) / 2
    eta = 1 + mean_log_u_minus_u + digamma(half) - np.log(half)
    return 1 / -eta + 0.01


def mean_log_u_minus_u(tau: Array, sizes: Array, d2: Array, slope: Any, gain: Any) -> Array:
    """The mean of ln u - u under tau in each cluster, (K,), where u = gain / (1 + slope D)."""
    log_base_mean, inverse_mean = (np.einsum("kn,kn->k", tau, each) / sizes for each in bases(d2, slope))
    return np.log(gain) - log_base_mean - gain * inverse_mean


class Components(NamedTuple):
    """Parameters of a mixture."""

    centers: Array  # (K, p)
    covariances: Array  # (K, p, p)
    weights: Array  # (K,) pi
    dof: Array  # (K,) nu
    measured: Measured | None = None

    @classmethod
    def around(cls, centers: Array) -> "Components":
        """Where the released code begins: unit covariances, equal weights, nu = 15."""
        n, p = centers.shape
        return cls(centers, np.broadcast_to(np.eye(p), (n, p, p)), np.full(n, 1 / n), np.full(n, FIRST_DOF))

    def measure(self, rows: Rows) -> Measured:
        """How far rows are from these components."""
        return Measured(rows, *rows.measure(self.centers, self.covariances))


@final
class ReleasedGMM(SoftModel):
    """A Gaussian mixture whose density *grows* with the distance: exp(+D/2).

    Covariance sums carry over from component to component; where a determinant is at most 1e-10, 1e-10 I is added.
    """

    def density(self, measured: Measured, params: Components) -> tuple[Array, Array, Array, Array]:
        """pi / sqrt(det), and D falls by -1/2 where it should be +1/2; full trust."""
        _, d2, det = measured
        return params.weights / np.sqrt(det), np.full(len(d2), -0.5), d2, np.broadcast_to(1.0, d2.shape)

    def m_step(self, stats: Memberships, params: Components) -> Components:
        """Means and covariances with the weights tau."""
        rows, tau, sizes = stats.measured.rows, stats.tau, stats.sizes
        with np.errstate(all="ignore"):
            raw = rows.means(tau)  # NaN and all: the sums see it
            covariances = carried(rows.scatters(tau, raw), sizes)
            covariances[~(np.linalg.det(covariances) > 1e-10)] += 1e-10 * np.eye(raw.shape[1])
            return Components(numbers(raw), covariances, sizes / tau.shape[1], params.dof)


@final
class ReleasedTMM(SoftModel):
    """A mixture of t distributions, with a covariance and a nu for each component.

    Centres are weighted by tau / u where EM has tau u; the covariance sums carry over from component to component and
    get 1e-4 I added; nu is that of t-k-means.
    """

    def density(self, measured: Measured, params: Components) -> tuple[Array, Array, Array, Array]:
        """pi times the t density at the centre; ln(1 + D/nu) falls by (nu + p)/2."""
        nu, p = params.dof, params.centers.shape[1]
        height = params.weights * gamma((nu + p) / 2) / gamma(nu / 2) / np.sqrt(measured.det) / (np.pi * nu) ** (p / 2)
        return height, (nu + p) / 2, *bases(measured.d2, 1 / nu)

    def m_step(self, stats: Memberships, params: Components) -> Components:
        """Centres with tau / u, covariances with tau u around them, then nu."""
        (rows, _, _), tau, trust, sizes, _ = stats
        nu, p = params.dof, params.centers.shape[1]
        with np.errstate(all="ignore"):
            raw = rows.means(tau / trust)
            scatters = rows.scatters(tau * trust, raw) * (1 + p / nu)[:, None, None]
            new = Components(numbers(raw), carried(scatters, sizes) + 1e-4 * np.eye(p), sizes / tau.shape[1], nu)
            measured = new.measure(rows)
            means = mean_log_u_minus_u(tau, sizes, measured.d2, 1 / nu, 1 + p / nu)
            return new._replace(dof=next_dof(means, nu, p), measured=measured)


def carried(sums: Array, sizes: Array) -> Array:
    """S/n for each component, where the sums S and n go on from the component before.

    So the last one's matrix is that of all rows around all centres, and the published figures are artefacts.
    """
    return np.cumsum(sums, axis=0) / np.cumsum(sizes)[:, None, None]


class Spheres(NamedTuple):
    """Parameters of t-k-means and of its fast variant."""

    centers: Array  # (K, p)
    scale: float = FIRST_SCALE  # alpha
    dof: float = FIRST_DOF  # nu
    measured: Measured | None = None

    def measure(self, rows: Rows) -> Measured:
        """How far rows are from these centres."""
        return Measured(rows, cdist(self.centers, rows.x, "sqeuclidean"), np.ones(len(self.centers)))


@final
class ReleasedTKMeans(SoftModel):
    """t-k-means.

    * Centres are weighted by tau / u where eqn:mu has tau u: far rows count *more*.
    * The exponent (15 + p)/2 of tau keeps the first nu although nu moves.
    * alpha is measured around the old centres, and with tau u as in eqn:alpha.
    * nu follows from the new centres and the new alpha: see `next_dof`.
    """

    def density(self, measured: Measured, params: Spheres) -> tuple[Array, Array, Array, Array]:
        """eqn:tau with a frozen exponent, eqn:u_nk; Q = sum of tau ln (1 + D/(nu alpha))^-c."""
        ones, exponent = measured.det, (FIRST_DOF + params.centers.shape[1]) / 2
        return ones, exponent * ones, *bases(measured.d2, ones / (params.dof * params.scale))

    def m_step(self, stats: Memberships, params: Spheres) -> Spheres:
        """mu with tau / u, alpha around the old mu, nu by `next_dof`."""
        (rows, _, _), tau, trust, sizes, _ = stats
        nu, p = params.dof, params.centers.shape[1]
        with np.errstate(all="ignore"):
            # eqn:alpha, where u D = alpha (nu + p)(1 - trust)
            scale = float(params.scale * (nu + p) * (1 - np.vdot(tau, trust) / sizes.sum()) / p)
            new = Spheres(numbers(rows.means(tau / trust)), scale, nu)
            measured = new.measure(rows)
            means = mean_log_u_minus_u(tau, sizes, measured.d2, np.divide(1, nu * scale), 1 + p / nu)
            return new._replace(dof=float(next_dof(np.mean(means), nu, p)), measured=measured)


@final
class ReleasedFast(SoftModel):
    """Fast t-k-means, and from shifted k-means++ seeds fast t-k-means++: tau proportional to D^-c, c = (1 + p)/2.

    With alpha -> 0 the equations weight a row by tau u, and u is proportional to 1/D; the code leaves u out and
    weights by tau alone. Taken literally the centres would collapse onto single rows. Where D^-c is infinite tau is
    not a number: a centre that (nearly) stands on a row goes to the origin, and the row counts for nobody. Where all
    centres do so they stay together, so the "++" variant moves its seeds by 0.01 first.
    """

    def density(self, measured: Measured, params: Spheres) -> tuple[Array, Array, Array, Array]:
        """D^-c, and full trust; Q = sum of tau ln D^-c."""
        ones, exponent = measured.det, (1 + params.centers.shape[1]) / 2
        return ones, exponent * ones, np.log(measured.d2), np.broadcast_to(1.0, measured.d2.shape)

    def m_step(self, stats: Memberships, params: Spheres) -> Spheres:
        """Only the centres move, with the weights tau."""
        with np.errstate(all="ignore"):
            return params._replace(centers=numbers(stats.measured.rows.means(stats.tau)))
