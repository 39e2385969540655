"""The released GMM and TMM: mixtures with a covariance matrix for each component.

Both carry a slip that makes their rows of the published tables artefacts: the running
sums of the covariance are not reset from one component to the next, so the last
component's matrix is that of all rows around all centres.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple, final

import numpy as np
from scipy.special import gamma

from tkmeans.paper.authors.arithmetic import (
    FIRST_DOF,
    engine,
    mean_log_u_minus_u,
    most_probable,
    next_dof,
    numbers,
    shares,
)
from tkmeans.paper.authors.moments import Rows
from tkmeans.stats import Array, Block


class MeasuredRows(NamedTuple):
    """The rows, and how far they are from every component."""

    rows: Rows
    d2: Array  # (K, n) squared, in the metric of the component
    det: Array  # (K,) of the components' covariances


class Components(NamedTuple):
    """Parameters of a mixture."""

    centers: Array  # (K, p)
    covariances: Array  # (K, p, p)
    weights: Array  # (K,) pi
    dof: Array  # (K,) nu
    measured: MeasuredRows | None = None  # all rows, where an M-step has looked at them

    @classmethod
    def around(cls, centers: Array) -> Components:
        """Where the released code begins: unit covariances, equal weights, nu = 15."""
        n_components, p = centers.shape
        return cls(
            centers,
            np.broadcast_to(np.eye(p), (n_components, p, p)),
            np.full(n_components, 1 / n_components),
            np.full(n_components, FIRST_DOF),
        )

    def measure(self, rows: Rows) -> MeasuredRows:
        """How far rows are from these components."""
        return MeasuredRows(rows, *rows.measure(self.centers, self.covariances))


class Shared(NamedTuple):
    """The rows, and what an E-step says of each of them in each component."""

    measured: MeasuredRows
    tau: Array  # (K, n)
    trust: Array  # (K, n) u over its value at the centre
    sizes: Array  # (K,) sum of tau
    objective: float  # Q

    @property
    def total(self) -> float:
        """The number of rows."""
        return float(self.tau.shape[1])

    @property
    def labels(self) -> Array:
        """The most probable component of each row."""
        return most_probable(self.tau)

    def merge(self, other: Shared) -> Shared:
        """All rows, in their order."""
        (rows, d2, det), (more_rows, more_d2, _) = self.measured, other.measured
        return Shared(
            MeasuredRows(rows.join(more_rows), np.concatenate([d2, more_d2], axis=1), det),
            np.concatenate([self.tau, other.tau], axis=1),
            np.concatenate([self.trust, other.trust], axis=1),
            self.sizes + other.sizes,
            self.objective + other.objective,
        )


class ReleasedMixture(ABC):
    """What the two have in common."""

    climbs = False

    @abstractmethod
    def heights(self, params: Components, det: Array) -> Array:
        """The weighted density of each component at its centre, (K,)."""

    @abstractmethod
    def look(self, d2: Array, params: Components) -> tuple[Array, Array, Array]:
        """What the logarithm of the density falls with, (K, n), by how much, (K,), and the trust, (K, n)."""

    @abstractmethod
    def m_step(self, stats: Shared, params: Components) -> Components:
        """The M-step."""

    def e_step(self, params: Components) -> Callable[[Block], Shared]:
        """A function that does the E-step under `params` for one block of rows."""

        def visit(block: Block) -> Shared:
            with np.errstate(all="ignore"):
                measured = params.measured
                if measured is None or measured.d2.shape[1] != len(block.X):  # unless this block is all rows
                    measured = params.measure(Rows.of(block.frame.enter(block.X)))
                height, (away, fall, trust) = self.heights(params, measured.det), self.look(measured.d2, params)
                f = np.empty_like(away)
                for k in range(len(f)):
                    engine.exponentials(away[k], -fall[k], f[k])
                    f[k] *= height[k]  # afterwards: what overflows without it is infinite with it
                tau = shares(f)
                sizes, log_height = tau.sum(axis=1), np.log(height)
                q = float(log_height @ sizes - fall @ np.einsum("kn,kn->k", tau, away))
                if not np.isfinite(q):
                    q = float(np.nansum(tau * (log_height[:, None] - fall[:, None] * away)))
                return Shared(measured, tau, trust, sizes, q)

        return visit


@final
class ReleasedGMM(ReleasedMixture):
    """A Gaussian mixture whose density *grows* with the distance: exp(+D/2).

    The covariance sums carry over from component to component, and 1e-10 I is added
    where a determinant is at most 1e-10.
    """

    def heights(self, params: Components, det: Array) -> Array:
        """pi / sqrt(det)."""
        return params.weights / np.sqrt(det)

    def look(self, d2: Array, params: Components) -> tuple[Array, Array, Array]:
        """D, by -1/2 where it should be +1/2, and full trust."""
        return d2, np.full(len(d2), -0.5), np.broadcast_to(1.0, d2.shape)

    def m_step(self, stats: Shared, params: Components) -> Components:
        """Means and covariances with the weights tau."""
        (rows, _, _), tau, _, sizes, _ = stats
        p = params.centers.shape[1]
        with np.errstate(all="ignore"):
            raw, scatters = rows.means_and_scatters(tau)  # NaN and all: the sums see it
            covariances = carried(scatters, sizes)
            small = ~(np.linalg.det(covariances) > 1e-10)
            covariances[small] += 1e-10 * np.eye(p)
            new = Components(numbers(raw), covariances, sizes / tau.shape[1], params.dof)
            return new._replace(measured=new.measure(rows))


@final
class ReleasedTMM(ReleasedMixture):
    """A mixture of t distributions, with a covariance and a nu for each component.

    Centres are weighted by tau / u where EM says tau u; the covariance sums carry over
    from component to component and get 1e-4 I added; nu is that of t-k-means.
    """

    def heights(self, params: Components, det: Array) -> Array:
        """pi times the t density at the centre."""
        nu, p = params.dof, params.centers.shape[1]
        height = params.weights * gamma((nu + p) / 2) / gamma(nu / 2)
        return height / np.sqrt(det) / (np.pi * nu) ** (p / 2)

    def look(self, d2: Array, params: Components) -> tuple[Array, Array, Array]:
        """ln(1 + D/nu), by (nu + p)/2, and 1/(1 + D/nu)."""
        log_base, trust = np.empty_like(d2), np.empty_like(d2)
        for k, nu in enumerate(params.dof):
            engine.bases(d2[k], 1 / nu, log_base[k], trust[k])
        return log_base, (params.dof + params.centers.shape[1]) / 2, trust

    def m_step(self, stats: Shared, params: Components) -> Components:
        """Centres with tau / u, covariances with tau u around them, then nu."""
        (rows, _, _), tau, trust, sizes, _ = stats
        nu, p = params.dof, params.centers.shape[1]
        with np.errstate(all="ignore"):
            raw = rows.means(tau / trust)
            scatters = rows.scatters(tau * trust, raw) * (1 + p / nu)[:, None, None]
            covariances = carried(scatters, sizes) + 1e-4 * np.eye(p)
            new = Components(numbers(raw), covariances, sizes / tau.shape[1], nu)
            measured = new.measure(rows)
            return new._replace(
                dof=next_dof(mean_log_u_minus_u(tau, sizes, measured.d2, 1 / nu, 1 + p / nu), nu, p), measured=measured
            )


def carried(sums: Array, sizes: Array) -> Array:
    """S/n for each component, where the sums S and n go on from the component before."""
    return np.array(list(accumulate(sums))) / np.cumsum(sizes)[:, None, None]
