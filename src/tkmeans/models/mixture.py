"""A mixture of t distributions with shapes, and noise: the paper's TMM, made robust.

Beside the K components there may be a noise component (`tkmeans.models.noise`), which takes the rows that belong
nowhere. What EM maximises is the log-likelihood plus the logarithm of a prior of the shapes,

    -1/2 sum_k [tr(Sigma_k^-1 B) + a ln|Sigma_k|] + constant,    B = a Sigma_0 + R,

worth `a` rows at the pooled shape Sigma_0 in each component, and a ridge R that keeps it finite; and
a sum_k ln(K pi_k), worth as many rows in each weight, which becomes (n_k + a) over their sum. The sizes
|Sigma_k|^(1/p) stay within a ratio of each other. All of it has an exact M-step. With S_k the scatter
around the new centre, A_k = S_k + B and m_k = n_k + a,

    Sigma_k = (t_k/d_k) A_k/m_k,    d_k = |A_k|^(1/p)/m_k,

where t are the most likely sizes within the ratio (`covariances.sizes_within`), because the best shape for
any size is that of A_k. Where columns are measured in steps, a row stands for all values that round to it: with G the
variance of rounding ln f_k loses tr(Sigma_k^-1 G)/2, as the mean of a Gaussian's does, and S_k becomes S_k + n_k G. So
components are not dense because their rows agree. Without prior, u has a free scale in each component
(parameter-expanded EM, as in `tkmeans.models.student`); with one, that has no closed form.

Missing values: the marginal of a t is a t with the same nu. Rows are grouped by what was observed, and
their sums continued to all features by conditional moments: exact for the components, no imputation. Noise over some of
the features has a density of the same form, which is not the marginal of that over all.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import digamma

from tkmeans.engines import reference, shapes
from tkmeans.models.covariances import Shape, sizes_within
from tkmeans.models.dof import BOUNDS, log_gamma_ratio, solve_dof
from tkmeans.models.noise import NO_NOISE, NOISE_BOUNDS, noise_kernel, noise_shares
from tkmeans.models.protocols import log_shares, normalized
from tkmeans.shape_stats import ShapeKernel, ShapeStats
from tkmeans.sources.base import merged, observed_features, to_numpy
from tkmeans.stats import Array, Block, namespace


class MixtureParams(NamedTuple):
    """What EM estimates, in the coordinates of a frame; and where the noise lies, which it does not."""

    centers: Array  # (K, p) mu
    covariances: Array  # (K, ...) Sigma, see tkmeans.models.covariances
    dof: Array  # (K,) nu
    log_weights: Array  # (K,) ln pi
    noise: float = 0.0  # the share of noise in the bulk; 0 if there is no noise
    beyond: float = 0.0  # the share of noise beyond it
    bulk_center: Array = 0.0  # (p,)
    bulk: Array = 1.0  # (...) an ellipsoid like a covariance: where the density of the noise is flat
    box: float = 0.0  # 1 if it is flat in the box around that ellipsoid


class Prior(NamedTuple):
    """What is known of shapes before any row is seen."""

    rows: float = 0.0  # a, in each component
    scatter: Array | None = None  # B, of the form of one covariance; None for nothing
    constant: float = 0.0  # of each component, so that the prior is 1 where all is as expected
    mass: float = 0.0  # rows that each component's weight is worth more
    grain: Array | None = None  # G, the variance that rounding adds to every row, of the form of one covariance


@final
@dataclass(frozen=True, kw_only=True)
class StudentMixture:
    """The model; exact updates that never lower the penalised likelihood."""

    shape: Shape
    estimate_dof: bool = True
    shared_dof: bool = False
    least_dof: float = BOUNDS[0]  # when it is estimated
    most_trust: float = math.inf  # in a row on a centre, u(0) = 1 + p/nu, when nu is estimated
    size_ratio: float = math.inf
    prior: Prior = Prior()  # noqa: RUF009 - a tuple
    engine: ModuleType = reference
    climbs = True

    def kernel(self, params: MixtureParams, observed: Array | None = None, whitening: Any = None) -> ShapeKernel:
        """What an engine needs to know, for rows with all or only these features; `whitening` may be known already."""
        centers, covariances, dof = params.centers, params.covariances, params.dof
        if observed is not None:
            centers, covariances = centers[:, observed], self.shape.part(covariances, observed)
        p = centers.shape[1]
        factors, log_det = self.shape.whitening(covariances, p) if whitening is None else whitening
        ratios = {nu: log_gamma_ratio(nu / 2, p / 2) for nu in {*dof.tolist()}}  # most often all have the same
        log_norm = np.array([ratios[nu] for nu in dof.tolist()]) - p / 2 * math.log(2 * math.pi)
        height = params.log_weights + log_norm - log_det / 2
        if self.prior.grain is not None:
            whole = factors if observed is None else self.shape.whitening(params.covariances, len(observed))[0]
            height = height - self.shape.squares(whole, self.prior.grain) / 2
        noise = None
        if params.noise > 0:
            center, bulk = params.bulk_center, params.bulk[None]
            if observed is not None:  # over fewer features an ellipsoid is as much nearer
                shrink = 1.0 if params.box else max(p, 1) / len(observed)
                center, bulk = center[observed], self.shape.part(bulk, observed) * shrink
            inside = params.noise if p else params.noise + params.beyond  # what was not observed lies nowhere
            noise = noise_kernel(inside, params.beyond, center, *self.shape.whitening(bulk, p), params.box)
        return ShapeKernel(centers, factors, height, (dof + p) / 2, 1 / dof, (dof + p) / dof, noise)

    def e_step(self, params: MixtureParams) -> Callable[[Block], ShapeStats]:
        """A function that sums the E-step under `params` over one block of rows."""
        whitening = self.shape.whitening(params.covariances, params.centers.shape[1])
        whole = self.kernel(params, whitening=whitening)
        log_prior = self.log_prior(params, *whitening)

        def summarize(block: Block) -> ShapeStats:
            parts = []
            for part, observed, _ in by_observed(block):
                kernel = whole if observed is None else self.kernel(params, observed)
                stats = self.engine_for(kernel).summarize(part, kernel)
                half = kernel.exponent
                bias = digamma(half) - np.log(half) + np.log(kernel.gain)  # E(ln u) - ln E(u)
                stats = ShapeStats(*map(to_numpy, stats))
                log_volume = stats.total * kernel.centers.shape[1] * math.log(block.frame.unit)
                likelihood = stats.log_likelihood - log_volume  # in the user's units, whatever was observed
                log_u = stats.log_u + stats.n * bias
                stats = stats._replace(log_u=log_u, log_likelihood=likelihood, log_prior=log_prior)
                if params.noise > 0 and not kernel.centers.shape[1]:  # beyond as often as not known
                    stats = stats._replace(beyond=stats.noise * params.beyond / (params.noise + params.beyond))
                parts.append(stats if observed is None else self.shape.completed(stats, params.covariances, observed))
            return merged(parts)

        return summarize

    def engine_for(self, kernel: ShapeKernel) -> ModuleType:
        """Who looks at the rows; those of which nothing was observed are the reference's business."""
        return shapes.of(self.engine if kernel.centers.shape[1] else reference)

    def log_prior(self, params: MixtureParams, factors: Array, log_det: Array) -> float:
        """Of parameters whose shapes have these whitening factors and ln det."""
        rows, scatter, constant, mass, _ = self.prior
        K = len(factors)
        log_prior = mass * float(np.sum(params.log_weights) + K * math.log(K)) if mass else 0.0
        if scatter is None:
            return log_prior
        return log_prior + float(np.sum(constant - (self.shape.squares(factors, scatter) + rows * log_det) / 2))

    def m_step(self, stats: ShapeStats, params: MixtureParams) -> MixtureParams:
        """Centres, shapes, nu and weights that maximise the expected penalised log-likelihood."""
        n = np.maximum(stats.n, np.finfo(float).tiny)
        lost = stats.n <= 1e-12 * stats.total  # nobody's component keeps what it has
        step = stats.wx / np.where(lost, np.inf, np.maximum(stats.w, np.finfo(float).tiny))[:, None]
        scatter = self.shape.around(stats.scatter, stats.w, step)
        expansion = self._expansion(stats, n, params.dof)
        rows, prior_scatter, _, mass, grain = self.prior
        if prior_scatter is not None:
            scatter = scatter + prior_scatter
        if grain is not None:
            scatter = scatter + np.multiply.outer(n, grain)
        # Where a ridge is all there is, the best size is the largest within the ratio; without a ratio it has none.
        kept = lost & (rows == 0) & (prior_scatter is None or self.size_ratio == math.inf)
        masses = np.maximum(n * expansion + rows, 1e-30 * stats.total)
        covariances = self._covariances(scatter, masses, params.covariances, kept)
        dof = params.dof
        if self.estimate_dof:
            bounds = self.dof_bounds(step.shape[1])
            eta = 1 + stats.log_u / n - stats.w / n / expansion - np.log(expansion)  # (K,)
            if self.shared_dof:
                dof = np.full(len(n), solve_dof(float(np.sum(eta * n) / np.sum(n)), bounds))
            else:
                found = [solve_dof(float(value), bounds) for value in np.where(lost, -1.0, eta)]
                dof = np.where(lost, params.dof, found)
        noise = beyond = 0.0
        if params.noise > 0:
            rest = float(np.sum(stats.n)) + mass * len(n)
            inside = max(stats.noise - stats.beyond, 0.0) if params.noise > NO_NOISE else 0.0
            noise, beyond = noise_shares(inside, stats.beyond, rest)
        new = params._replace(centers=params.centers + step, covariances=covariances, dof=dof)
        return new._replace(log_weights=log_shares(n + mass) + math.log1p(-noise - beyond), noise=noise, beyond=beyond)

    def dof_bounds(self, n_features: int) -> tuple[float, float]:
        """Between which nu is sought."""
        return min(max(self.least_dof, n_features / (self.most_trust - 1)), BOUNDS[1]), BOUNDS[1]

    def _expansion(self, stats: ShapeStats, n: Array, dof: Array) -> Array:
        """The scale of u in each component, (K,): its most likely value, or 1 where that has no closed form."""
        if self.prior.scatter is not None or self.size_ratio < math.inf:
            return np.ones(len(n))
        if not self.shape.tied:
            return np.where(stats.n > 0, stats.w / n, 1.0)
        if self.shared_dof or not self.estimate_dof:  # one scale for all, weighted by what each nu makes of it
            return np.full(len(n), (dof @ stats.w) / (dof @ n))
        return np.ones(len(n))

    def _covariances(self, scatter: Array, mass: Array, before: Array, kept: Array) -> Array:
        """The best shapes of sizes within the ratio; some, a mask (K,), have the shape that they had before."""
        if self.shape.tied:
            return np.repeat(scatter.sum(axis=0, keepdims=True) / mass.sum(), len(mass), axis=0)
        covariances = scatter / np.where(kept, 1.0, mass).reshape(-1, *[1] * (scatter.ndim - 1))
        covariances[kept] = before[kept]
        return self.bounded(covariances, mass)

    def is_at_bound(self, params: MixtureParams) -> bool:
        """Whether sizes differ as much as they may."""
        return bool(np.ptp(self.shape.log_sizes(params.covariances)) > 0.999 * np.log(self.size_ratio) > 0)

    def bounded(self, covariances: Array, mass: Array) -> Array:
        """The same shapes with the most likely sizes within the ratio."""
        if self.size_ratio == math.inf or len(covariances) == 1 or self.shape.tied:
            return covariances
        sizes = np.exp(self.shape.log_sizes(covariances))
        held = sizes_within(sizes, mass, self.size_ratio)
        return covariances if held is sizes else covariances * (held / sizes).reshape(-1, *[1] * (covariances.ndim - 1))

    def pack(self, params: MixtureParams) -> Array:
        """The centres, and the logarithms of what must stay positive."""
        covariances = params.covariances[:1] if self.shape.tied else params.covariances
        parts = [np.ravel(params.centers), np.ravel(self.shape.logarithm(covariances)), params.log_weights]
        if params.noise > 0:
            parts.append([math.log(params.noise), math.log(params.beyond)])
        if self.estimate_dof:
            parts.append(np.log(params.dof[:1] if self.shared_dof else params.dof))
        return np.concatenate(parts)

    def unpack(self, vector: Array, like: MixtureParams) -> MixtureParams:
        """The admissible parameters nearest to an extrapolated vector."""
        n_components, p = like.centers.shape
        covariances = like.covariances[:1] if self.shape.tied else like.covariances
        i, j, k = np.cumsum([n_components * p, covariances.size, n_components + 2 * (like.noise > 0)]).tolist()
        centers, log_covariances, log_weights, log_dof = vector[:i], vector[i:j], vector[j:k], vector[k:]
        new = self.shape.exponential(log_covariances.reshape(covariances.shape), covariances)
        new = self.bounded(new, np.exp(like.log_weights))
        dof = like.dof
        if self.estimate_dof:
            dof = np.broadcast_to(np.clip(np.exp(np.clip(log_dof, -1, 7)), *self.dof_bounds(p)), n_components)
        noise = beyond = 0.0
        if like.noise > 0:
            noise, beyond = np.clip(np.exp(normalized(log_weights)[-2:]), *NOISE_BOUNDS).tolist()
        log_weights = normalized(log_weights[:n_components]) + math.log1p(-noise - beyond)
        like = like._replace(dof=dof, log_weights=log_weights, noise=noise, beyond=beyond)
        new = np.broadcast_to(new, like.covariances.shape).copy()
        return like._replace(centers=centers.reshape(n_components, p), covariances=new)


def by_observed(block: Block) -> Iterator[tuple[Block, Array | None, Array]]:
    """The rows of a block by the features that they have: (rows over these, their mask or None for all, numbers)."""
    (X, weight, frame), xp = block, namespace(block.X)
    if isinstance(observed_features(X), int):
        yield block, None, np.arange(X.shape[0])
        return
    masks, which = np.unique(~np.isnan(to_numpy(X)), axis=0, return_inverse=True)
    order, ends = np.argsort(which.reshape(-1), kind="stable"), np.cumsum(np.bincount(which.reshape(-1)))
    for observed, numbers in zip(masks, np.split(order, ends[:-1]), strict=True):
        rows, features = (xp.asarray(each, device=X.device) for each in (numbers, np.flatnonzero(observed)))
        own = frame._replace(origin=xp.take(frame.origin, features))
        part = Block(xp.take(xp.take(X, rows, axis=0), features, axis=1), weight, own)
        part = part if weight is None else part._replace(weight=xp.take(weight, rows))
        yield part, None if np.all(observed) else observed, numbers
