"""The authors' released code, as models and stopping rules of our one loop.

The published tables were made with this code, not with the paper's equations. Every
class says where it leaves them. What all of them share:

* Rows are z-scored and then scaled to [-1, 1] feature by feature (`tkmeans.datasets.scaled`).
* Labels are those of the last E-step; the centres that are returned come one M-step later.
* A NaN in a centre becomes 0, so a cluster that lost all its rows moves to the origin.
* The sum Q leaves out its NaN terms. A run ends when Q has hardly changed in four
  successive iterations (`QuietFor`), however many rows there are.

Most M-steps look at the rows again (nu at the *new* centres, medoids), so sums are not
enough for them: the statistics here are the rows themselves, and merging joins them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import digamma

from tkmeans import engines
from tkmeans.em import Progress
from tkmeans.stats import Array, Block

FIRST_DOF, FIRST_SCALE = 15.0, 0.01

engine = engines.select("auto")


class Measured(NamedTuple):
    """Rows, and how far they are from every centre."""

    x: Array  # (n, p)
    d2: Array  # (K, n) squared

    @classmethod
    def of(cls, x: Array, centers: Array) -> Measured:
        """These rows and centres."""
        return cls(x, cdist(centers, x, "sqeuclidean"))


class Spheres(NamedTuple):
    """Parameters of t-k-means and of its fast variant."""

    centers: Array  # (K, p)
    scale: float  # alpha
    dof: float  # nu
    measured: Measured | None = None  # all rows, where an M-step has looked at them

    @classmethod
    def around(cls, centers: Array) -> Spheres:
        """Where the released code begins."""
        return cls(centers, FIRST_SCALE, FIRST_DOF)


class Visited(NamedTuple):
    """The rows, and what an E-step says of each of them in each cluster."""

    x: Array  # (n, p)
    tau: Array  # (K, n)
    trust: Array  # (K, n) u over its value at the centre, 1 + p/nu
    objective: float  # Q

    @property
    def total(self) -> float:
        """The number of rows."""
        return float(len(self.x))

    @property
    def labels(self) -> Array:
        """The most probable cluster of each row."""
        return most_probable(self.tau)

    def merge(self, other: Visited) -> Visited:
        """All rows, in their order."""
        return Visited(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.tau, other.tau], axis=1),
            np.concatenate([self.trust, other.trust], axis=1),
            self.objective + other.objective,
        )


@final
@dataclass(frozen=True)
class QuietFor:
    """Stop once Q has changed by less than `tol` in each of the last `times` iterations.

    An absolute change of the *sum* over all rows: how exact the answer is depends on how
    many rows there are. With `steady`, a change that is within `tol` of the one
    before counts as quiet too, however large both are; the code does so in its
    t-k-means, GMM and TMM. Q counts as 0 before the first iteration. A NaN ends the run.
    """

    n_rows: int
    tol: float = 0.1
    times: int = 4
    steady: bool = False

    def __call__(self, progress: Progress) -> bool:
        """Whether the last few iterations were quiet."""
        # As many of them as matter; a change before the first is 0.
        q = np.array([0.0, 0.0, *progress.history][-self.times - 2 :]) * self.n_rows
        change = np.abs(np.diff(q))
        quiet = change[1:] < self.tol
        if self.steady:
            quiet |= np.abs(np.diff(change)) < self.tol
        return bool(np.isnan(q[-1]) or (len(quiet) == self.times and np.all(quiet)))


@final
class ReleasedTKMeans:
    """t-k-means.

    * Centres are weighted by tau / u where eqn:mu says tau u: far rows count *more*.
    * The exponent (15 + p)/2 of tau keeps the first nu although nu moves.
    * alpha is measured around the old centres, and with tau u as in eqn:alpha.
    * nu follows from the new centres and the new alpha: see `next_dof`.
    """

    climbs = False

    def e_step(self, params: Spheres) -> Callable[[Block], Visited]:
        """A function that does the E-step under `params` for one block of rows."""

        def visit(block: Block) -> Visited:
            measured = params.measured
            if measured is None or len(measured.x) != len(block.X):  # unless this block is all rows
                measured = Measured.of(block.frame.enter(block.X), params.centers)
            with np.errstate(all="ignore"):
                return self.look(measured, params)

        return visit

    def look(self, measured: Measured, params: Spheres) -> Visited:
        """eqn:tau with a frozen exponent, eqn:u_nk; Q = sum of tau ln (1 + D/(nu alpha))^-c."""
        nu, alpha, (x, d2) = params.dof, params.scale, measured
        p = x.shape[1]
        exponent, slope = (FIRST_DOF + p) / 2, np.divide(1, nu * alpha)
        f, log_base, trust = np.empty_like(d2), np.empty_like(d2), np.empty_like(d2)
        for k in range(len(d2)):
            engine.bases(d2[k], slope, log_base[k], trust[k])
            engine.exponentials(log_base[k], -exponent, f[k])
        tau = shares(f)
        return Visited(x, tau, trust, -exponent * sum_of_numbers(tau, log_base))

    def m_step(self, stats: Visited, params: Spheres) -> Spheres:
        """mu with tau / u, alpha around the old mu, nu by `next_dof`."""
        x, tau, trust, _ = stats
        nu, alpha, p = params.dof, params.scale, x.shape[1]
        with np.errstate(all="ignore"):
            weight = tau / trust
            centers = numbers(weight @ x / weight.sum(axis=1)[:, None])
            sizes = tau.sum(axis=1)
            # eqn:alpha, where u D = alpha (nu + p)(1 - trust)
            scale = alpha * (nu + p) * (1 - np.vdot(tau, trust) / sizes.sum()) / p
            measured = Measured.of(x, centers)
            means = mean_log_u_minus_u(
                tau, sizes, measured.d2, np.full(len(tau), 1 / (nu * scale)), np.full(len(tau), 1 + p / nu)
            )
            dof = next_dof(np.mean(means), nu, p)
        return Spheres(centers, float(scale), float(dof), measured)


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


# Arrays (K, n) are worked on cluster by cluster where there is much to do: what is made on the
# way then stays in the processor's cache, which is twice as quick for 50 clusters.


def mean_log_u_minus_u(tau: Array, sizes: Array, d2: Array, slope: Array, gain: Array) -> Array:
    """The mean of ln u - u under tau in each cluster, (K,), where u = gain / (1 + slope D)."""
    log_base, inverse = np.empty_like(d2[0]), np.empty_like(d2[0])
    sums = np.empty((2, len(tau)))
    for k, own in enumerate(tau):
        engine.bases(d2[k], slope[k], log_base, inverse)
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


def sum_of_numbers(tau: Array, logs: Array) -> float:
    """The sum of tau times logs, without the terms that are not numbers."""
    total = float(np.vdot(tau, logs))
    return total if np.isfinite(total) else float(np.nansum(tau * logs))


def most_probable(tau: Array) -> Array:
    """The cluster of each row; the first where nothing is known."""
    return np.argmax(np.where(np.isnan(tau), -np.inf, tau), axis=0)
