"""t-k-means: a mixture of t distributions with one spherical scale and one nu.

The names are the paper's: tau and u in the E-step (the engine), mu, alpha and nu
here. Where the paper's M-step and maximum likelihood differ we take the latter:

* alpha and nu come from parameter-expanded EM (Liu, Rubin and Wu 1998). Its fixed
  points are the paper's, because there the mean of u is 1, and it is faster;
* eta is pooled over all rows, not a mean of cluster means, and eqn:nu_eq is solved
  exactly (`tkmeans.models.dof`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import digamma

from tkmeans.models.base import CenterModel, log_shares, moved_centers, normalized
from tkmeans.models.dof import BOUNDS, solve_dof
from tkmeans.models.special import log_gamma_ratio
from tkmeans.stats import Array, Kernel, Params, Stats


@final
@dataclass(frozen=True, kw_only=True)
class Student(CenterModel):
    """The model of the paper, with exact updates that never lower the likelihood."""

    estimate_dof: bool = True
    estimate_weights: bool = False
    want_entropy: bool = True  # without it a fixed dof allows a shorter way through the rows
    least_dof: float = BOUNDS[0]  # when it is estimated
    scale_floor: float = 0.0  # in the frame's units, squared

    def kernel(self, params: Params) -> Kernel:
        """The t density of every number of observed features, 0 to p."""
        nu, alpha = params.dof, params.scale
        p = np.arange(params.centers.shape[1] + 1)
        half = (nu + p) / 2
        return Kernel(
            slope=1 / (nu * alpha),
            power=1,
            exponent=half,
            log_norm=log_gamma_ratio(nu / 2, p / 2) - p / 2 * math.log(2 * math.pi * alpha),
            gain=(nu + p) / nu,
            log_trust_bias=digamma(half) - np.log(half),
            log_sums=self.estimate_dof or self.want_entropy,
        )

    def m_step(self, stats: Stats, params: Params) -> Params:
        """eqn:mu, eqn:alpha and eqn:nu_eq."""
        if stats.cells == 0:
            return params  # a batch in which nothing was observed teaches nothing
        total = np.sum(stats.n)
        mean_u = np.sum(stats.w) / total
        centers, step = moved_centers(stats, params)
        around_new_centers = np.sum(stats.wd2) - np.sum(stats.seen * step**2)
        expansion = mean_u
        if around_new_centers < self.scale_floor * stats.cells * expansion:
            expansion = 1.0  # at the floor only the paper's own step is sure to climb
        scale = float(around_new_centers / (stats.cells * expansion))
        dof, log_weights = params.dof, params.log_weights
        if self.estimate_dof:
            eta = 1 + np.sum(stats.log_trust) / total - mean_u / expansion - np.log(expansion)
            dof = solve_dof(float(eta), (self.least_dof, BOUNDS[1]))
        if self.estimate_weights:
            log_weights = log_shares(stats.n)
        return Params(centers, max(scale, self.scale_floor), dof, log_weights)

    def pack(self, params: Params) -> Array:
        """The centres, and the logarithms of what must stay positive."""
        parts: list[Array] = [np.ravel(params.centers), [math.log(params.scale)]]
        if self.estimate_dof:
            parts.append([math.log(params.dof)])
        if self.estimate_weights:
            parts.append(params.log_weights)
        return np.concatenate(parts)

    def unpack(self, vector: Array, like: Params) -> Params:
        """The admissible parameters nearest to an extrapolated vector."""
        n_clusters, n_features = like.centers.shape
        centers, rest = np.split(vector, [n_clusters * n_features])
        dof, log_weights = like.dof, like.log_weights
        scale = max(_within_reach(rest[0], like.scale), self.scale_floor)
        if self.estimate_dof:
            dof = min(max(_within_reach(rest[1], like.dof), self.least_dof), BOUNDS[1])
        if self.estimate_weights:
            log_weights = normalized(rest[-n_clusters:])
        return Params(centers.reshape(n_clusters, n_features), scale, dof, log_weights)


def _within_reach(log_value: float, plain: float) -> float:
    """An extrapolated value, no more than a hundredfold away from the plain step's."""
    return min(max(math.exp(min(log_value, 700.0)), plain / 100), plain * 100)
