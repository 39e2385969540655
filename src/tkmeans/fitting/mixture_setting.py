"""What is the same for all starts of a mixture, its prior, bulk and noise, and how labels become parameters."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import chdtri
from threadpoolctl import ThreadpoolController

from tkmeans.em import em
from tkmeans.fitting import relations
from tkmeans.fitting.observers import TimeLimit
from tkmeans.fitting.start_choice import FAR, within_reach
from tkmeans.models.covariances import AxisAligned
from tkmeans.models.mixture import MixtureParams, Prior, StudentMixture
from tkmeans.models.noise import NOISE_BOUNDS, log_volume
from tkmeans.models.protocols import normalized
from tkmeans.search.shape_search import MANY_FEATURES, moments
from tkmeans.sources import Sample
from tkmeans.sources.base import quantile
from tkmeans.stats import Array, Block, Frame

IN_BULK, MOST_BULK = 0.9, 2.0  # of the rows that are not far; times what holds 95 % of a Gaussian, at most
FIRST_DOF = 5.0  # tails to begin with
FIRST_NOISE, MOST_FIRST_NOISE = 0.02, 0.3  # the share of the noise in a start, at least and at most
MOST_NOISE = 0.4  # of the rows; more are a cluster
MANY_TIMES = 10.0  # the rows of the prior: of components with more the geometric mean of shapes means something
THINNEST = 1e-4, 0.02  # of a column's squared unit, in the pooled shape of the prior
STRAY = 1e-3  # tail probability in the core of a group, below which a row is counted as noise at first
FOREVER = TimeLimit(np.inf)
F = TypeVar("F", bound=Callable[..., Any])
_controller = cache(ThreadpoolController)  # to find the libraries takes longer than to hold them


class Bulk(NamedTuple):
    """Where most rows lie: an ellipsoid along the columns; and the box of the rows that are not far."""

    center: Array  # (p,)
    units: Array  # (p,) of the columns
    radius: float  # in these units
    box: Array = 0.0  # (2, p) its centre, and half of its sides
    grain: Array = 0.0  # (p,) variances of rounding, in columns of steps

    @property
    def log_volume(self) -> float:
        """The logarithm of its volume."""
        return log_volume(len(self.units), 2 * float(np.sum(np.log(self.units * self.radius))))


class Setting(NamedTuple):
    """What is the same for all starts."""

    model: StudentMixture  # without a prior
    n_components: int
    prior_rows: float  # in each component
    ridge: float  # times the squared units of the columns, added to the scatter of each component
    bulk: Bulk
    noise: bool | str  # "auto" may come to "distant", if noise nearer would be a cluster or is not worth its shares
    dof: float | None  # None if it is estimated
    n_rows: float = 0.0  # of the whole fit
    limit: TimeLimit = FOREVER  # of the search
    spread: Any = None  # of the columns of the sample (`usual`), if it is known
    box: bool = False  # whether noise begins flat in the box
    floor: float = THINNEST[0]  # see `not_thin`; in a descent from many components these have few rows, and need more


def bulk_of(sample: Sample, spread: Any = None, slack: Any = 0.0, one: float = 1.0) -> Bulk:
    """By medians of columns, deviations and distances: half of the rows may be anywhere; `spread` if it is known.

    Values of a column that differ by no more than its `slack` are equal; of joined rows each weighs `one`.
    """
    X, weight = sample
    center = quantile(X, weight) if spread is None else spread[0]
    away, core = X - center, within_reach(sample, spread)
    units, grain = relations.column_units(away, weight, np.broadcast_to(slack, center.shape), one)
    p, squares = len(units), np.sum(np.minimum(np.abs(away) / units, 1e120) ** 2, axis=1)  # beyond, as good as infinite
    outer = quantile(squares[core], weight[core], IN_BULK)
    gaussian = quantile(squares, weight) * chdtri(p, 0.05) / chdtri(p, 0.5)  # where very many rows are far
    radius = np.sqrt(max(min(outer, MOST_BULK * gaussian), 1e-12)) * (1 + 1e-6)  # no row lies on the rim
    low, high = (end(X[core & (weight > 0)], axis=0) for end in (np.min, np.max))
    steps = np.sqrt(12 * grain) / units  # the outermost values stand for half a step more
    steps = np.where(steps < 1 + 1e-6, steps, 0.0)  # longer ones are no steps of measurement
    radius = np.exp(np.mean(np.log(radius + steps / 2)))
    box = np.stack([low / 2 + high / 2, (high / 2 - low / 2) * (1 + 1e-6) + (1e-6 + steps / 2) * units])
    return Bulk(center, units, float(radius), box, grain)


def on_one_thread(function: F) -> F:
    """Decorate a function in which BLAS has one thread: several wait for each other, long on a busy machine."""

    @wraps(function)
    def alone(*args: Any, **options: Any) -> Any:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **options)

    return cast(F, alone)


def climb(
    source: Any, model: StudentMixture, start: MixtureParams, noise: bool | str, *, resume: Any = None, **options: Any
) -> Any:
    """EM with noise; if that is "auto", without where noise would be a cluster."""
    if resume is None or resume.params.noise > 0:
        fit = em(source, model, start, resume=resume, **options)
        if fit.interrupted or noise != "auto" or fit.stats.noise <= MOST_NOISE * fit.stats.total:
            return fit
        resume = None
    return em(source, model, without_noise(start), resume=resume, **options)


def judged(sample: Sample, model: StudentMixture, params: MixtureParams) -> tuple[float, Array, Array]:
    """The penalised likelihood per row, labels and the probability of noise."""
    whitening = model.shape.whitening(params.covariances, sample.X.shape[1])
    kernel = model.kernel(params, whitening=whitening)
    rows = model.engine_for(kernel).rows(Block(sample.X, None, Frame(np.zeros(sample.X.shape[1]), 1.0)), kernel)
    objective = sample.weight @ np.asarray(rows.log_density) + model.log_prior(params, *whitening)
    return float(objective / np.sum(sample.weight)), np.asarray(rows.label), np.asarray(rows.noise)


def with_prior(params: MixtureParams, setting: Setting) -> StudentMixture:
    """The model with a prior at the pooled shape of these parameters."""
    shape, p = setting.model.shape, params.centers.shape[1]
    rows = 0.0 if shape.tied or len(params.centers) == 1 else setting.prior_rows  # what is pooled needs none
    if not setting.prior_rows and not setting.ridge:
        return setting.model
    squares = shape.diagonal(setting.bulk.units**2)
    weights = np.exp(params.log_weights - np.logaddexp.reduce(params.log_weights))
    caution = min(1.0, MANY_TIMES * len(weights) * (p + 2) / max(setting.n_rows, 1.0))
    pooled = not_thin(shape.pooled(params.covariances, weights, caution), squares, setting.floor)
    constant = rows / 2 * (float(shape.log_sizes(pooled[None])[0]) * p + p)
    stepped = setting.prior_rows and not shape.round and np.any(setting.bulk.grain)
    grain = shape.diagonal(setting.bulk.grain) if stepped else None
    prior = Prior(rows, rows * pooled + setting.ridge * squares, constant, setting.prior_rows, grain)
    return replace(setting.model, prior=prior)


def not_thin(pooled: Array, squares: Array, floor: float) -> Array:
    """A pooled shape with as much more as it has in each column, from `floor` to THINNEST of the squared units.

    The units are distances between clusters where these are far apart, and would make all of them as wide.
    """
    own = np.diag(np.diagonal(pooled)) if pooled.ndim == 2 else pooled
    return pooled + np.clip(own, floor * squares, THINNEST[1] * squares)


def from_labels(sample: Sample, labels: Array, setting: Setting, core: bool = False) -> MixtureParams:
    """Centres and shapes of groups of rows, and noise.

    A row far from the median of its group counts little; with `core`, only the half of a group counts that is nearest
    to its centre, and what is improbable in that half's Gaussian is noise at first.
    """
    (X, weight), K, units = sample, setting.n_components, setting.bulk.units
    p = X.shape[1]
    dof = max(FIRST_DOF, setting.model.dof_bounds(p)[0]) if setting.dof is None else setting.dof
    aligned = p > MANY_FEATURES and isinstance(setting.model.shape, AxisAligned)  # matrices would be too large
    squares = units**2 if aligned else np.diag(units**2)
    mass, centers, covariances = np.full(K, 1e-6), np.zeros((K, p)), np.zeros((K, *squares.shape))
    strays, (middling, rare) = labels < 0, chdtri(p, [0.5, STRAY])
    for k in range(K):
        own = np.flatnonzero(labels == k)
        if not len(own):  # it begins at a row that is far from the other centres, but not the farthest
            others = centers[:k] if k else setting.bulk.center[None]
            d2 = np.min(np.sum(((X[:, None] - others) / units) ** 2, axis=2), axis=1)
            centers[k] = X[np.argsort(d2, kind="stable")[int(0.9 * (len(X) - 1))]]
            continue
        x, own_weight = X[own], weight[own]
        mass[k] = np.sum(own_weight)
        middle = quantile(x, own_weight)
        width = 1.48 * quantile(np.abs(x - middle), own_weight) + 1e-3 * units
        trust = own_weight * (dof + p) / (dof + np.sum(((x - middle) / width) ** 2, axis=1))
        centers[k], covariances[k] = moments(x, trust / mass[k], aligned)
        if core and len(x) > 2 * (p + 2):
            for _ in range(2):
                d2 = _squares(x - centers[k], covariances[k], squares)
                inner = d2 <= quantile(d2, own_weight)
                centers[k], covariances[k] = moments(x[inner], own_weight[inner] / np.sum(own_weight[inner]), aligned)
            d2 = _squares(x - centers[k], covariances[k], squares)
            factor = quantile(d2, own_weight) / middling
            if factor > 0:  # else most rows of the group are equal
                covariances[k] *= factor
                strays[own] = d2 > factor * rare
    pooled = not_thin(np.tensordot(mass / np.sum(mass), covariances, 1), squares, setting.floor)
    rows = p + 2.0  # a start is shrunk in any case: few rows may have no volume
    covariances = ((mass * covariances.T + rows * pooled[..., None]) / (mass + rows)).T
    covariances = covariances + (setting.bulk.grain if aligned else np.diag(setting.bulk.grain))
    covariances = setting.model.bounded(setting.model.shape.of_matrices(covariances, mass), mass)
    params = MixtureParams(centers, covariances, np.full(K, dof), np.log(mass / np.sum(mass)))
    return with_noise(params, float(np.average(strays, weights=weight)), setting)


def _squares(away: Array, covariance: Array, squares: Array) -> Array:
    """Squared Mahalanobis distances, (n,)."""
    covariance = covariance + 0.2 * THINNEST[0] * squares
    if covariance.ndim == 1:
        return np.sum(away**2 / covariance, axis=1)
    white = away @ dtrtri(np.linalg.cholesky(covariance), lower=1)[0].T
    return np.einsum("ij,ij->i", white, white)


def with_noise(params: MixtureParams, share: float, setting: Setting) -> MixtureParams:
    """The same with noise, if there is to be any: half of it in the bulk, or hardly any of distant noise."""
    if not setting.noise:
        return params
    shape, bulk = setting.model.shape, setting.bulk
    share = min(max(FIRST_NOISE, share), MOST_FIRST_NOISE)
    log_weights = normalized(params.log_weights) + np.log1p(-share)
    center, reach = bulk.box if setting.box else (bulk.center, bulk.units * bulk.radius)
    params = params._replace(bulk_center=center, bulk=shape.diagonal(reach**2), box=float(setting.box))
    inside = NOISE_BOUNDS[0] if setting.noise == "distant" else share / 2
    return params._replace(log_weights=log_weights, noise=inside, beyond=share - inside)


def without_noise(params: MixtureParams) -> MixtureParams:
    """The same without noise."""
    return MixtureParams(*params[:3], normalized(params.log_weights))


def with_far_noise(sample: Sample, setting: Setting, noise: bool | str) -> Setting:
    """The same with a bulk that holds all rows within reach; without "distant" noise, if these are all rows."""
    bulk, core = setting.bulk, within_reach(sample, setting.spread)
    farthest = np.max(np.sum(((sample.X[core] - bulk.center) / bulk.units) ** 2, axis=1)) ** 0.5 * (1 + 1e-6)
    reach = 1.4826 * FAR / 2 * (len(bulk.units) ** 0.5 + 1)
    noise = noise if noise != "distant" or not np.all(core) else False
    return setting._replace(bulk=bulk._replace(radius=max(farthest, reach)), noise=noise, box=False)
