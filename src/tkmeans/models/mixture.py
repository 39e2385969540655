"""A mixture of t distributions, each with a shape and a nu of its own: the paper's TMM.

The E-step is that of t-k-means with Mahalanobis distances. The M-step is parameter-expanded
as there (`tkmeans.models.student`): u of component k gets a free scale, estimated by
its mean u, wherever that is an exact M-step: not at the floor of the variances, and
not where components with different nu share one shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import digamma

from tkmeans.engines import reference
from tkmeans.models.covariances import Shape
from tkmeans.models.dof import BOUNDS, log_gamma_ratio, solve_dof
from tkmeans.models.protocols import log_shares, normalized
from tkmeans.stats import Array, Block

_FEW = 3  # features, with which there is nothing to gain


class MixtureParams(NamedTuple):
    """What EM estimates, in the coordinates of a frame."""

    centers: Array  # (K, p) mu
    covariances: Array  # (K, ...) Sigma, see tkmeans.models.covariances
    dof: Array  # (K,) nu
    log_weights: Array  # (K,) ln pi


class MixtureStats(NamedTuple):
    """Sums over rows, around the old centres."""

    n: Array  # (K,) sum of tau
    w: Array  # (K,) sum of tau u
    wx: Array  # (K, p) sum of tau u (x - mu_old)
    scatter: Array  # (K, ...) sum of tau u (x - mu_old)(x - mu_old)^T, or of its diagonal
    log_u: Array  # (K,) sum of tau E(ln u)
    objective: float  # the log-likelihood
    entropy: float  # of the memberships, for ICL

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(self.n.sum())

    def merge(self, other: MixtureStats) -> MixtureStats:
        """The statistics of both sets of rows together."""
        return MixtureStats(*(a + b for a, b in zip(self, other, strict=True)))


class EStep(NamedTuple):
    """The E-step of each row."""

    tau: Array  # (K, n) eqn:tau
    relative_u: Array  # (K, n) u over its value at the centre, 1 + p/nu
    log_base: Array  # (K, n) ln(1 + D/nu)
    log_density: Array  # (n,)
    entropy: Array  # (n,) of the memberships
    d2: Array  # (K, n) squared Mahalanobis distances


@final
@dataclass(frozen=True, kw_only=True)
class StudentMixture:
    """The model; exact updates that never lower the likelihood."""

    shape: Shape
    estimate_dof: bool = True
    shared_dof: bool = False
    floor: float = 0.0  # of the variance in any direction, in the frame's units
    engine: Any = reference  # a module; whose logarithms and exponentials to take

    @property
    def climbs(self) -> bool:
        """Every M-step is an exact one."""
        return True

    def looking(self, params: MixtureParams) -> Callable[[Array], EStep]:
        """A function that does the E-step under `params` for rows in the frame."""
        n_components, p = params.centers.shape
        factors, log_det = self.shape.whitening(params.covariances, p)
        exponent = (params.dof[:, None] + p) / 2
        norm = [log_gamma_ratio(dof / 2, p / 2) - p / 2 * math.log(2 * math.pi) for dof in params.dof]
        height = (params.log_weights + np.array(norm) - log_det / 2)[:, None]

        def look(x: Array) -> EStep:
            d2, log_base, relative_u = np.empty((3, n_components, len(x)))
            features = by_feature(x)
            for k, center in enumerate(params.centers):
                white = self.shape.whiten(features - center[:, None], factors[k])
                np.einsum("pn,pn->n", white, white, out=d2[k])
                self.engine.bases(d2[k], 1 / params.dof[k], log_base[k], relative_u[k])
            log_f = height - exponent * log_base
            top = log_f.max(axis=0)
            tau = log_f - top
            self.engine.exponentials(tau.reshape(-1), 1.0, tau.reshape(-1))
            whole = tau.sum(axis=0)
            tau /= whole
            log_density = top + np.log(whole)
            entropy = log_density - np.einsum("kn,kn->n", tau, log_f)  # ln tau = ln f - ln density
            return EStep(tau, relative_u, log_base, log_density, entropy, d2)

        return look

    def e_step(self, params: MixtureParams) -> Callable[[Block], MixtureStats]:
        """A function that sums the E-step under `params` over one block of rows."""
        look = self.looking(params)
        p = params.centers.shape[1]
        half = (params.dof + p) / 2
        gain = (1 + p / params.dof)[:, None]
        log_u_bias = digamma(half) - np.log(half) + np.log(gain[:, 0])

        def summarize(block: Block) -> MixtureStats:
            x = block.frame.enter(block.X)
            tau, relative_u, log_base, log_density, entropy, _ = look(x)
            weight = np.ones(len(x)) if block.weight is None else block.weight
            tau *= weight
            wtau = np.multiply(tau, relative_u, out=relative_u)
            wtau *= gain  # tau u
            n = tau.sum(axis=1)
            wx, scatter = np.empty_like(params.centers), np.empty_like(params.covariances)
            features = by_feature(x)
            for k, center in enumerate(params.centers):
                own = own_rows(tau[k], p)
                away, own_weight = features[:, own] - center[:, None], wtau[k, own]
                wx[k] = away @ own_weight
                scatter[k] = self.shape.scatter(own_weight, away)
            return MixtureStats(
                n=n,
                w=wtau.sum(axis=1),
                wx=wx,
                scatter=scatter,
                log_u=n * log_u_bias - np.einsum("kn,kn->k", tau, log_base),
                objective=float(weight @ log_density),
                entropy=float(weight @ entropy),
            )

        return summarize

    def m_step(self, stats: MixtureStats, params: MixtureParams) -> MixtureParams:
        """Centres, shapes, nu and weights that maximise the expected log-likelihood."""
        n = np.maximum(stats.n, np.finfo(float).tiny)
        step = stats.wx / np.maximum(stats.w, np.finfo(float).tiny)[:, None]
        around_new_centers = stats.scatter - np.array(
            [self.shape.scatter(w[None], s[:, None]) for w, s in zip(stats.w, step, strict=True)]
        )
        expansion = self._expansion(stats, n, params.dof)
        covariances = self._covariances(around_new_centers, n * expansion)
        at_floor = self.shape.below(covariances, self.floor)
        if np.any(at_floor):
            expansion = np.where(at_floor, 1.0, expansion)
            covariances = self._covariances(around_new_centers, n * expansion)
            covariances[at_floor] = self.shape.raised(covariances[at_floor], self.floor)
        lost = stats.n <= 1e-12 * stats.total  # nobody's component keeps what it has
        if not self.shape.tied:
            covariances[lost] = params.covariances[lost]
        dof = params.dof
        if self.estimate_dof:
            eta = 1 + stats.log_u / n - stats.w / n / expansion - np.log(expansion)  # (K,)
            if self.shared_dof:
                dof = np.full(len(n), solve_dof(float(np.average(eta, weights=n))))
            else:
                dof = np.where(lost, params.dof, [solve_dof(float(value)) for value in np.where(lost, -1.0, eta)])
        return MixtureParams(params.centers + step, covariances, dof, log_shares(n))

    def _expansion(self, stats: MixtureStats, n: Array, dof: Array) -> Array:
        """The scale of u in each component, (K,): its most likely value, or 1 where that has no closed form."""
        if not self.shape.tied:
            return np.where(stats.n > 0, stats.w / n, 1.0)
        if self.shared_dof or not self.estimate_dof:  # one scale for all, weighted by what each nu makes of it
            return np.full(len(n), (dof @ stats.w) / (dof @ n))
        return np.ones(len(n))

    def _covariances(self, scatter: Array, mass: Array) -> Array:
        if self.shape.tied:
            return np.repeat(scatter.sum(axis=0, keepdims=True) / mass.sum(), len(mass), axis=0)
        return scatter / mass.reshape(-1, *[1] * (scatter.ndim - 1))

    def pack(self, params: MixtureParams) -> Array:
        """The centres, and the logarithms of what must stay positive."""
        covariances = params.covariances[:1] if self.shape.tied else params.covariances
        parts = [np.ravel(params.centers), np.ravel(self.shape.logarithm(covariances)), params.log_weights]
        if self.estimate_dof:
            parts.append(np.log(params.dof[:1] if self.shared_dof else params.dof))
        return np.concatenate(parts)

    def unpack(self, vector: Array, like: MixtureParams) -> MixtureParams:
        """The admissible parameters nearest to an extrapolated vector."""
        n_components, p = like.centers.shape
        covariances = like.covariances[:1] if self.shape.tied else like.covariances
        cuts = np.cumsum([n_components * p, covariances.size, n_components])
        centers, log_covariances, log_weights, log_dof = np.split(vector, cuts)
        new = self.shape.exponential(log_covariances.reshape(covariances.shape), covariances)
        low = self.shape.below(new, self.floor)
        new[low] = self.shape.raised(new[low], self.floor)
        dof = like.dof
        if self.estimate_dof:
            dof = np.broadcast_to(np.clip(np.exp(np.clip(log_dof, -1, 7)), *BOUNDS), n_components)
        return MixtureParams(
            centers.reshape(n_components, p),
            np.broadcast_to(new, like.covariances.shape).copy(),
            dof,
            normalized(log_weights),
        )


def by_feature(x: Array) -> Array:
    """Rows, (n, p), as features, (p, n), so that sums run along the rows."""
    return np.ascontiguousarray(x.T)


def own_rows(tau: Array, n_features: int) -> Any:
    """Which rows count in the sums of a component: all but those whose part is lost in rounding anyway.

    With many features most rows are some other component's altogether.
    """
    if n_features <= _FEW:
        return slice(None)
    return np.flatnonzero(~(tau <= np.finfo(float).eps / max(len(tau), 1) * tau.sum()))  # not a number counts
