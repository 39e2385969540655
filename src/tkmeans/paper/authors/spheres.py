"""The released t-k-means and fast t-k-means: round clusters of one scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.models import Fast
from tkmeans.paper.authors import soft_model
from tkmeans.paper.authors.moments import ManyFeatures, Rows
from tkmeans.paper.authors.soft_model import Measured, Memberships, SoftModel, engine, most_probable, numbers, shares
from tkmeans.stats import Array, Block, Params

_ALMOST_0 = 1e-20  # what stands for alpha -> 0


class Spheres(NamedTuple):
    """Parameters of t-k-means and of its fast variant."""

    centers: Array  # (K, p)
    scale: float  # alpha
    dof: float  # nu
    measured: Measured | None = None

    @classmethod
    def around(cls, centers: Array) -> Spheres:
        """Where the released code begins."""
        return cls(centers, 0.01, soft_model.FIRST_DOF)

    def measure(self, rows: Rows) -> Measured:
        """How far rows are from these centres."""
        return Measured(rows, cdist(self.centers, rows.x, "sqeuclidean"), np.ones(len(self.centers)))


@final
class ReleasedTKMeans(SoftModel):
    """t-k-means.

    * Centres are weighted by tau / u where eqn:mu says tau u: far rows count *more*.
    * The exponent (15 + p)/2 of tau keeps the first nu although nu moves.
    * alpha is measured around the old centres, and with tau u as in eqn:alpha.
    * nu follows from the new centres and the new alpha: see `next_dof`.
    """

    rows = ManyFeatures

    def density(self, measured: Measured, params: Spheres) -> tuple[Array, Array, Array, Array]:
        """eqn:tau with a frozen exponent, eqn:u_nk; Q = sum of tau ln (1 + D/(nu alpha))^-c."""
        ones = measured.det
        exponent = (soft_model.FIRST_DOF + params.centers.shape[1]) / 2
        return ones, exponent * ones, *soft_model.bases(measured.d2, ones / (params.dof * params.scale))

    def m_step(self, stats: Memberships, params: Spheres) -> Spheres:
        """mu with tau / u, alpha around the old mu, nu by `next_dof`."""
        (rows, _, _), tau, trust, sizes, _ = stats
        nu, p = params.dof, params.centers.shape[1]
        with np.errstate(all="ignore"):
            # eqn:alpha, where u D = alpha (nu + p)(1 - trust)
            scale = float(params.scale * (nu + p) * (1 - np.vdot(tau, trust) / sizes.sum()) / p)
            new = Spheres(numbers(rows.means(tau / trust)), scale, nu)
            measured = new.measure(rows)
            slope = np.divide(1, nu * scale)
            means = soft_model.mean_log_u_minus_u(tau, sizes, measured.d2, slope, 1 + p / nu)
            return new._replace(dof=float(soft_model.next_dof(np.mean(means), nu, p)), measured=measured)


# ---- alpha -> 0 --------------------------------------------------------------------


class FastSums(NamedTuple):
    """Sums under tau, and what they are about."""

    sizes: Array  # (K, 1) sum of tau
    moments: Array  # (K, p) sum of tau (x - mu_old)
    objective: float  # Q
    x: Array  # (n, p)
    centers: Array  # (K, p) mu_old

    @property
    def total(self) -> float:
        """The number of rows."""
        return float(len(self.x))

    @property
    def labels(self) -> Array:
        """The most probable cluster of each row."""
        return most_probable(fast_memberships(self.x, self.centers)[0])

    def merge(self, other: FastSums) -> FastSums:
        """All rows, in their order."""
        return FastSums(
            self.sizes + other.sizes,
            self.moments + other.moments,
            self.objective + other.objective,
            np.concatenate([self.x, other.x]),
            self.centers,
        )


@final
class ReleasedFast:
    """Fast t-k-means, and from shifted k-means++ seeds fast t-k-means++.

    With alpha -> 0 the equations weight a row by tau u, and u is proportional to 1/D; the
    code leaves u out and weights by tau alone. Taken literally the centres would
    collapse onto single rows. So this is our own `Fast`, tau proportional to D^-c with
    c = (1 + p)/2 and Q = sum of tau ln D^-c, but for two things:

    * Where D^-c is infinite tau is not a number: a centre that (nearly) stands on a row goes
      to the origin, and the row counts for nobody. Where all centres do so they stay
      together, so the "++" variant moves its seeds by 0.01 first.
    * A centre that no row is near moves all the same. An engine may leave out memberships
      below 1e-16; for such a centre they are all there is.
    """

    climbs = False

    def e_step(self, params: Spheres) -> Callable[[Block], FastSums]:
        """A function that does the E-step under `params` for one block of rows."""
        centers = params.centers
        ours = Fast(engine=engine).e_step(Params(centers, _ALMOST_0, 1.0, np.zeros(len(centers))))

        def visit(block: Block) -> FastSums:
            x, stats = block.frame.enter(block.X), ours(block)
            if np.min(stats.n) < 1 or may_be_infinite(x, centers):
                return pair_by_pair(x, centers)
            # Q = sum of tau ln f = sum of ln (sum of f) + sum of tau ln tau, where our f is (D/alpha)^-c
            log_unit = (1 + x.shape[1]) / 2 * np.log(_ALMOST_0)
            q = stats.objective - stats.entropy - stats.total * log_unit
            return FastSums(stats.observed, stats.wx, q, x, centers)

        return visit

    def m_step(self, stats: FastSums, params: Spheres) -> Spheres:
        """Only the centres move, with the weights tau."""
        with np.errstate(all="ignore"):
            return params._replace(centers=numbers(params.centers + stats.moments / stats.sizes))


def pair_by_pair(x: Array, centers: Array) -> FastSums:
    """The sums of all pairs, whatever is infinite or next to nothing."""
    tau, log_f = fast_memberships(x, centers)
    sizes = tau.sum(axis=1)[:, None]
    return FastSums(sizes, tau @ x - sizes * centers, float(np.nansum(tau * log_f)), x, centers)


def fast_memberships(x: Array, centers: Array) -> tuple[Array, Array]:
    """tau, and ln D^-c: both (K, n)."""
    with np.errstate(all="ignore"):
        log_f = -(1 + x.shape[1]) / 2 * np.log(cdist(centers, x, "sqeuclidean"))
        return shares(np.exp(log_f)), log_f


def may_be_infinite(x: Array, centers: Array) -> bool:
    """Whether any row is so near to a centre in its first coordinate that D^-c may be beyond all numbers."""
    reach = 2 * np.finfo(float).max ** (-1 / (1 + x.shape[1]))
    up = np.sort(x[:, 0])
    return bool(
        np.any(np.searchsorted(up, centers[:, 0] + reach, "right") > np.searchsorted(up, centers[:, 0] - reach))
    )
