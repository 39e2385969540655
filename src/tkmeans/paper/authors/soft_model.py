"""What the released GMM, TMM and t-k-means share: the E-step, the update of nu, and numbers in place of NaN.

Arrays (K, n) are worked on cluster by cluster where there is much to do: what is made on the
way then stays in the processor's cache, which is twice as quick for 50 clusters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from tkmeans import engines
from tkmeans.paper.authors.moments import Rows, rows_of
from tkmeans.stats import Array, Block

FIRST_DOF = 15.0

engine = engines.select("auto")


class Measured(NamedTuple):
    """Rows, and how far they are from every component."""

    rows: Rows
    d2: Array  # (K, n) squared, in the metric of the component
    det: Array  # (K,) of the components' covariances; 1 without


class Memberships(NamedTuple):
    """Rows, and what an E-step says of each of them in each component."""

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
        """The most probable component of each row."""
        return most_probable(self.tau)

    def merge(self, other: Memberships) -> Memberships:
        """All rows, in their order."""
        (rows, d2, det), (more_rows, more_d2, _) = self.measured, other.measured
        pairs = ((d2, more_d2), (self.tau, other.tau), (self.trust, other.trust))
        d2, tau, trust = (np.concatenate(pair, axis=1) for pair in pairs)
        measured = Measured(type(rows)(np.concatenate([rows.x, more_rows.x])), d2, det)
        return Memberships(measured, tau, trust, self.sizes + other.sizes, self.objective + other.objective)


class SoftModel(ABC):
    """A row belongs to each component in proportion to its density, ``height * exp(-fall * away)``.

    Parameters are `Spheres` or `Components`. They keep all `measured` rows, where an M-step
    has looked at them.
    """

    climbs = False
    rows: Callable[[Array], Rows] = staticmethod(rows_of)

    @abstractmethod
    def density(self, measured: Measured, params: Any) -> tuple[Array, Array, Array, Array]:
        """height, (K,), fall, (K,), away, (K, n), and the trust, (K, n)."""

    def e_step(self, params: Any) -> Callable[[Block], Memberships]:
        """A function that does the E-step under `params` for one block of rows."""

        def visit(block: Block) -> Memberships:
            with np.errstate(all="ignore"):
                measured = params.measured
                if measured is None or measured.d2.shape[1] != len(block.X):  # unless this block is all rows
                    measured = params.measure(self.rows(block.frame.enter(block.X)))
                height, fall, away, trust = self.density(measured, params)
                f = np.empty_like(away)
                for k in range(len(f)):
                    engine.exponentials(away[k], -fall[k], f[k])
                    f[k] *= height[k]  # afterwards: what overflows without it is infinite with it
                tau = shares(f)
                sizes, log_height = tau.sum(axis=1), np.log(height)
                q = float(log_height @ sizes - fall @ np.einsum("kn,kn->k", tau, away))
                if not np.isfinite(q):
                    q = float(np.nansum(tau * (log_height[:, None] - fall[:, None] * away)))
                return Memberships(measured, tau, trust, sizes, q)

        return visit


def bases(d2: Array, slope: Array) -> tuple[Array, Array]:
    """ln(1 + slope D), and 1/(1 + slope D): both (K, n)."""
    log_base, inverse = np.empty_like(d2), np.empty_like(d2)
    for k, own in enumerate(slope):
        engine.bases(d2[k], own, log_base[k], inverse[k])
    return log_base, inverse


def next_dof(mean_log_u_minus_u: Array, dof: Array, n_features: int) -> Array:
    """nu = 1/(-eta) + 0.01.

    The mean is under tau; for t-k-means the mean over clusters of
    the clusters' means, as in the paper, where maximum likelihood pools all rows. The
    code starts from 1/(-eta) and adds 0.01 until ``ln(nu) - psi(nu) + eta`` is not
    positive (psi(nu), where eqn:nu_eq has nu/2). Because ``ln(nu) - psi(nu) < 1/nu``
    that holds after the first step, always.
    """
    half = (dof + n_features) / 2
    eta = 1 + mean_log_u_minus_u + digamma(half) - np.log(half)
    return 1 / -eta + 0.01


def mean_log_u_minus_u(tau: Array, sizes: Array, d2: Array, slope: Array, gain: Array) -> Array:
    """The mean of ln u - u under tau in each cluster, (K,), where u = gain / (1 + slope D)."""
    log_base, inverse = np.empty_like(d2[0]), np.empty_like(d2[0])
    sums = np.empty((2, len(tau)))
    for k, (own, own_slope) in enumerate(zip(tau, np.broadcast_to(slope, len(tau)), strict=True)):
        engine.bases(d2[k], own_slope, log_base, inverse)
        sums[:, k] = own @ log_base, own @ inverse
    log_base_mean, inverse_mean = sums / sizes
    return np.log(gain) - log_base_mean - gain * inverse_mean


def numbers(centers: Array) -> Array:
    """The same, with 0 for what is not a number."""
    return np.where(np.isnan(centers), 0.0, centers)


def shares(f: Array) -> Array:
    """Each cluster's part of the density; not a number where that is 0/0 or infinite."""
    f /= f.sum(axis=0)
    return f


def most_probable(tau: Array) -> Array:
    """The cluster of each row; the first where nothing is known."""
    return np.argmax(np.where(np.isnan(tau), -np.inf, tau), axis=0)
