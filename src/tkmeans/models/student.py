"""t-k-means: a mixture of t distributions with one spherical scale alpha and one nu.

The E-step belongs to an engine, which knows no formula of the paper but a `Kernel`:

=================  ===========================================  ==================================
field              in the paper                                 where
=================  ===========================================  ==================================
`slope`            1 / (nu alpha)                               eqn:tau and eqn:u_nk, before D
`exponent`         (nu + p) / 2                                 eqn:tau, of the t density
`log_norm`         ln t(mu), the density where D = 0            eqn:tau; only likelihoods need it
`gain`             (nu + p) / nu                                eqn:u_nk where D = 0
`log_u_bias`       phi((nu + p) / 2) - ln((nu + p) / 2)         eqn: un
`power`            1: rows count tau u                          eqn:mu and eqn:alpha
=================  ===========================================  ==================================

D is |x - mu|^2 and phi the digamma function. Where the paper's M-step and maximum likelihood differ we take the
latter: alpha and nu come from parameter-expanded EM (`Student.m_step`), eta is pooled over all rows (`eta`), and
eqn:nu_eq is solved exactly (`tkmeans.models.dof`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import final

import numpy as np
from scipy.special import digamma, zeta

from tkmeans.engines import reference
from tkmeans.models.dof import BOUNDS, log_gamma_ratio, log_minus_digamma, most_dof, solve_dof
from tkmeans.models.protocols import log_shares, normalized
from tkmeans.stats import Array, Block, Kernel, Params, Stats

# No scoring to tails so many times as heavy: it began too far away. EM strides there itself, but not from light tails.
HEAVIER, LIGHT, FARTHEST_RISE = 1.5, 10.0, 5.0  # the last of ln alpha
APART = 0.05  # of the rows, as if they belonged to any cluster: with less entropy tails, not overlap, hide the centres


@final
@dataclass(frozen=True, kw_only=True)
class Student:
    """The model of the paper, with exact updates that never lower the likelihood."""

    engine: ModuleType = reference
    estimate_dof: bool = True
    estimate_weights: bool = False
    want_entropy: bool = True  # without it a fixed dof allows a shorter way through the rows
    least_dof: float = BOUNDS[0]  # when it is estimated
    scale_floor: float = 0.0  # in the frame's units, squared
    climbs = True

    def kernel(self, params: Params) -> Kernel:
        """The t density and u for every number of observed features, 0 to p; the table above, line by line."""
        nu, alpha = params.dof, params.scale
        b = np.arange(params.centers.shape[1] + 1) / 2
        half = nu / 2 + b
        return Kernel(
            slope=1 / (nu * alpha),
            power=1,
            exponent=half,
            log_norm=log_gamma_ratio(nu / 2, b) - b * math.log(2 * math.pi * alpha),
            gain=half * (2 / nu),
            log_u_bias=digamma(half) - np.log(half),
            log_sums=self.estimate_dof or self.want_entropy,
        )

    def e_step(self, params: Params) -> Callable[[Block], Stats]:
        """A function that sums eqn:tau, eqn:u_nk and eqn: un over one block of rows."""
        return partial(self.engine.summarize, params=params, kernel=self.kernel(params))

    def m_step(self, stats: Stats, params: Params) -> Params:
        """eqn:mu, eqn:alpha and eqn:nu_eq, parameter-expanded (Liu, Rubin and Wu 1998).

        Let the u of eqn:XU have any mean c instead of 1. The rows cannot tell: they follow the same t distributions
        with alpha / c. So c may be estimated too, by the mean of u, and what is meant by alpha and u is alpha / c and
        u / c. At a fixed point of the paper's EM c is 1, so the fixed points are the same; the way there is shorter.
        """
        if stats.cells == 0:
            return params  # a batch in which nothing was observed teaches nothing
        step, expansion = stats.step, float(np.add.reduce(stats.w)) / stats.total  # eqn:mu; c, the mean of u under tau
        # sum of tau u |x - mu|^2 around the new centres, from the sum around the old ones
        scatter = np.add.reduce(stats.wd2) - np.add.reduce(stats.observed * step**2, axis=None)
        if scatter < self.scale_floor * stats.cells * expansion:
            expansion = 1.0  # at the floor only the paper's own step is sure to climb
        scale = float(scatter / (stats.cells * expansion))  # eqn:alpha; `cells` is p times the sum of tau
        dof, log_weights = params.dof, params.log_weights
        if self.estimate_dof:
            dof = solve_dof(eta(stats, expansion), (self.least_dof, max(self.least_dof, most_dof(step.shape[1]))))
        if self.estimate_weights:
            log_weights = log_shares(stats.n)
        return Params(params.centers + step, max(scale, self.scale_floor), dof, log_weights)

    def pack(self, params: Params) -> Array:
        """The centres, logarithms of what must stay positive, and 1/nu, in which likelihoods are nearly parabolas."""
        tails = [1 / params.dof] if self.estimate_dof else []
        weights = [params.log_weights] if self.estimate_weights else []
        return np.concatenate([np.ravel(params.centers), [math.log(params.scale), *tails], *weights])

    def ahead(self, stats: Stats, params: Params) -> tuple[Array | None, Array | None]:
        """The next parameters by Fisher scoring (Lange, Little and Taylor 1989), and the slope where we are, packed.

        It need not climb, but EM creeps where tails are light: the u, which are missing, tell nearly all of nu. The
        information is that of clusters apart; where they overlap, the step is short. None if EM is the better choice.
        The slope is None where they overlap: EM creeps there, and little gain in a step is no sign of the top.
        """
        if not self.estimate_dof or stats.cells == 0:
            return None, None
        nu, total, p = params.dof, stats.total, stats.cells / stats.total
        beyond, apart = (nu + p) * (nu + p + 2), stats.entropy < APART * total * math.log(len(stats.n) + 1)
        excess = float(np.add.reduce(stats.log_u) - np.add.reduce(stats.w)) / total
        by_scale = p / 2 * (float(np.add.reduce(stats.wd2)) / (stats.cells * params.scale) - 1)  # in ln alpha, per row
        by_tail = -nu * nu / 2 * (log_minus_digamma(nu / 2) + 1 + excess)  # and in t = 1/nu
        slopes = by_scale * total, by_tail * total
        # What they are around the new centres: as the u are now, or as expected of rows that lie around these.
        step = stats.step * (1 + 2 / (nu + p) if apart else 1.0)
        nearer = float(np.add.reduce(stats.observed * step**2, axis=None)) / (params.scale * total)
        if apart:
            nearer *= (nu + p) / (beyond * (nu + p + 4))
            by_tail += nearer * nu * (p - nu)
            nearer *= (nu + 2) * (nu + p)
        by_scale -= nearer / 2
        scales, both = p * nu * (nu + p) / 2 / beyond, p * nu * nu / beyond  # the information
        tails = nu**4 * (float(zeta(2, nu / 2) - zeta(2, (nu + p) / 2)) / 4 - p * (nu + p + 4) / (2 * nu * beyond))
        t = 1 / nu + (scales * by_tail - both * by_scale) / (scales * tails - both * both)
        heavier, most = t > HEAVIER / nu and nu < LIGHT, min(max(HEAVIER / nu, 1 / LIGHT), 1 / self.least_dof)
        t = min(max(t, 1 / max(self.least_dof, most_dof(step.shape[1]))), most)
        log_scale = math.log(params.scale) + (rise := (by_scale - both * (t - 1 / nu)) / scales)
        if heavier or not abs(rise) < FARTHEST_RISE:
            return None, None
        weights = [log_shares(stats.n)] if self.estimate_weights else []
        goal = np.concatenate([np.ravel(params.centers + step), [log_scale, t], *weights])
        weights = [stats.n - total * np.exp(params.log_weights)] if self.estimate_weights else []
        return goal, np.concatenate([np.ravel(stats.wx / params.scale), slopes, *weights]) if apart else None

    def unpack(self, vector: Array, like: Params) -> Params:
        """The admissible parameters nearest to an extrapolated vector."""
        n_clusters, n_features = like.centers.shape
        centers, rest = vector[: n_clusters * n_features], vector[n_clusters * n_features :]
        dof, log_weights = like.dof, like.log_weights
        # No more than a hundredfold away from that.
        scale = min(max(math.exp(min(rest[0], 700.0)), like.scale / 100), like.scale * 100)
        if self.estimate_dof:
            dof = 1 / min(max(float(rest[1]), 1 / max(self.least_dof, most_dof(n_features))), 1 / self.least_dof)
        if self.estimate_weights:
            log_weights = normalized(rest[-n_clusters:])
        return Params(centers.reshape(n_clusters, n_features), max(scale, self.scale_floor), dof, log_weights)


def eta(stats: Stats, expansion: float) -> float:
    """The constant of eqn:nu_eq, pooled over rows.

    The derivative of Q_1 by nu/2 is the sum of tau (ln(nu/2) + 1 - phi(nu/2) + E(ln u) - u), and vanishes
    where ln(nu/2) - phi(nu/2) + eta = 0 with eta = 1 + mean E(ln u) - mean u. Here u is u / expansion.
    """
    log_u, u = np.add.reduce(stats.log_u), np.add.reduce(stats.w) / expansion
    return 1 + float(log_u - u) / stats.total - math.log(expansion)
