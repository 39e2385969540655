"""The released GMM and TMM: mixtures with a covariance matrix for each component.

Both carry a slip that makes their rows of the published tables artefacts: the running
sums of the covariance are not reset from one component to the next, so the last
component's matrix is that of all rows around all centres.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np
from scipy.special import gamma

from tkmeans.paper.released import (
    FIRST_DOF,
    AsReleased,
    Visited,
    next_dof,
    numbers,
    ones_like,
    shares,
    trust_sum,
)
from tkmeans.stats import Array, Block


class Components(NamedTuple):
    """Parameters of a mixture."""

    centers: Array  # (K, p)
    covariances: Array  # (K, p, p)
    weights: Array  # (K,) pi
    dof: Array  # (K,) nu
    d2: Array | None = None  # (K, n) of all rows to these components, where an M-step has measured it

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


class ReleasedMixture(AsReleased, ABC):
    """What the two have in common."""

    @abstractmethod
    def heights(self, params: Components, n_features: int) -> Array:
        """The weighted density of each component at its centre, (K,)."""

    @abstractmethod
    def log_fall(self, d2: Array, dof: float, n_features: int) -> Array:
        """How far the logarithm of one component's density falls from the centre to each row, (n,)."""

    @abstractmethod
    def trust(self, d2: Array, params: Components, n_features: int) -> Array:
        """u, (K, n)."""

    @abstractmethod
    def m_step(self, stats: Visited, params: Components) -> Components:
        """The M-step."""

    def e_step(self, params: Components) -> Callable[[Block], Visited]:
        """A function that does the E-step under `params` for one block of rows."""

        def visit(block: Block) -> Visited:
            x = block.frame.enter(block.X)
            n_features = x.shape[1]
            with np.errstate(all="ignore"):
                d2 = params.d2
                if d2 is None or d2.shape[1] != len(x):  # unless this block is all rows, and measured
                    d2 = mahalanobis(x, params)
                f, log_f = np.empty_like(d2), np.empty_like(d2)
                for k, height in enumerate(self.heights(params, n_features)):
                    fall = self.log_fall(d2[k], params.dof[k], n_features)
                    np.subtract(np.log(height), fall, out=log_f[k])
                    np.divide(height, np.exp(fall, out=fall), out=f[k])
                tau = shares(f)
                return Visited(x, tau, self.trust(d2, params, n_features), sum_of_numbers(tau, log_f))

        return visit


@final
class ReleasedGMM(ReleasedMixture):
    """A Gaussian mixture whose density *grows* with the distance: exp(+D/2).

    The covariance sums carry over from component to component, and 1e-10 I is added
    where a determinant is at most 1e-10.
    """

    def heights(self, params: Components, n_features: int) -> Array:
        """pi / sqrt(det)."""
        return params.weights / np.sqrt(np.linalg.det(params.covariances))

    def log_fall(self, d2: Array, dof: float, n_features: int) -> Array:
        """-D/2, where a Gaussian density falls by +D/2."""
        return d2 / -2

    def trust(self, d2: Array, params: Components, n_features: int) -> Array:
        """A Gaussian trusts every row."""
        return ones_like(d2)

    def m_step(self, stats: Visited, params: Components) -> Components:
        """Means and covariances with the weights tau."""
        x, tau, _, _ = stats
        sizes = tau.sum(axis=1)
        with np.errstate(all="ignore"):
            raw = tau @ x / sizes[:, None]  # NaN and all: the sums see it
            covariances = carried_covariances(tau, sizes, x, raw)
            small = ~(np.linalg.det(covariances) > 1e-10)
        covariances[small] += 1e-10 * np.eye(x.shape[1])
        return params._replace(centers=numbers(raw), covariances=covariances, weights=sizes / len(x))


@final
class ReleasedTMM(ReleasedMixture):
    """A mixture of t distributions, with a covariance and a nu for each component.

    Centres are weighted by tau / u where EM says tau u; the covariance sums carry over
    from component to component and get 1e-4 I added; nu is that of t-k-means.
    """

    def heights(self, params: Components, n_features: int) -> Array:
        """pi times the t density at the centre."""
        nu = params.dof
        height = params.weights * gamma((nu + n_features) / 2) / gamma(nu / 2)
        return height / np.sqrt(np.linalg.det(params.covariances)) / (np.pi * nu) ** (n_features / 2)

    def log_fall(self, d2: Array, dof: float, n_features: int) -> Array:
        """(nu + p)/2 ln(1 + D/nu)."""
        fall = d2 / dof
        fall += 1
        np.log(fall, out=fall)
        fall *= (dof + n_features) / 2
        return fall

    def trust(self, d2: Array, params: Components, n_features: int) -> Array:
        """eqn:u_nk."""
        nu = params.dof[:, None]
        u = nu + d2
        return np.divide(nu + n_features, u, out=u)

    def m_step(self, stats: Visited, params: Components) -> Components:
        """Centres with tau / u, covariances with tau u around them, then nu."""
        x, tau, u, _ = stats
        p, sizes = x.shape[1], tau.sum(axis=1)
        with np.errstate(all="ignore"):
            weight = tau / u
            raw = weight @ x / weight.sum(axis=1)[:, None]
            covariances = carried_covariances(np.multiply(tau, u, out=weight), sizes, x, raw) + 1e-4 * np.eye(p)
            new = Components(numbers(raw), covariances, sizes / len(x), params.dof)
            d2 = mahalanobis(x, new)
            trust = np.array([trust_sum(tau[k], d2[k], params.dof[k], p) for k in range(len(tau))])
            return new._replace(dof=next_dof(trust / sizes, params.dof, p), d2=d2)


def mahalanobis(x: Array, params: Components) -> Array:
    """Squared distances in the metric of each component, (K, n)."""
    out = np.empty((len(params.centers), len(x)))
    precisions = np.linalg.inv(params.covariances)
    features = np.ascontiguousarray(x.T)  # (p, n): sums over features then run along the rows
    away, turned = np.empty_like(features), np.empty_like(features)
    for k, center in enumerate(params.centers):
        np.subtract(features, center[:, None], out=away)
        np.matmul(precisions[k], away, out=turned)
        np.einsum("pn,pn->n", turned, away, out=out[k])
    return out


def carried_covariances(weight: Array, sizes: Array, x: Array, centers: Array) -> Array:
    """S/n for each component, where the sums S and n go on from the component before."""
    sums = np.empty((len(centers), x.shape[1], x.shape[1]))
    features = np.ascontiguousarray(x.T)  # (p, n)
    away = np.empty_like(features)
    for k, center in enumerate(centers):
        np.subtract(features, center[:, None], out=away)
        away *= np.sqrt(weight[k])
        np.matmul(away, away.T, out=sums[k])  # symmetric, which halves the work
    return np.cumsum(sums, axis=0) / np.cumsum(sizes)[:, None, None]


def sum_of_numbers(tau: Array, logs: Array) -> float:
    """The sum of tau times logs, without the terms that are not numbers."""
    total = float(np.vdot(tau, logs))
    return total if np.isfinite(total) else float(np.nansum(tau * logs))
