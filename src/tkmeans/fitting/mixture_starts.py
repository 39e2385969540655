"""Where EM of a mixture begins: labels become parameters, and short runs on a sample decide between them.

A start also fixes what a run does not estimate: the pooled shape of the prior, and the ellipsoid of the noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from tkmeans.em import SmallGain, em
from tkmeans.models.mixture import MixtureParams, Prior, StudentMixture
from tkmeans.models.noise import log_volume
from tkmeans.sources import ArraySource, Sample
from tkmeans.stats import Array, Block, Frame

FIRST_DOF = 5.0
FIRST_NOISE, MOST_FIRST_NOISE = 0.02, 0.3  # the share of the noise in a start, at least and at most
MOST_NOISE = 0.4  # of the rows; more are a cluster
FIRST_ITER, FINALISTS = 8, 3  # of all starts; the best of these go on
PILOT_ITER, PILOT_TOL = 60, 1e-4
FAR = 3.0  # radii of the bulk: what lies farther away costs no more than noise in the bulk
THINNEST = 0.02  # of a column's squared unit, in the pooled shape of the prior
STRAY = 1e-3  # tail probability in the core of a group, below which a row is counted as noise at first


class Bulk(NamedTuple):
    """Where most rows lie: an ellipsoid along the columns."""

    center: Array  # (p,)
    units: Array  # (p,) of the columns
    radius: float  # in these units

    @property
    def log_volume(self) -> float:
        """The logarithm of its volume."""
        return log_volume(len(self.units), 2 * float(np.sum(np.log(self.units * self.radius))))

    def radii(self, X: Array) -> Array:
        """How many radii from the centre rows are, (n,)."""
        return np.sqrt(np.sum(((X - self.center) / (self.units * self.radius)) ** 2, axis=1))


class Setting(NamedTuple):
    """What is the same for all starts."""

    model: StudentMixture  # without a prior
    n_components: int
    prior_rows: float  # in each component
    ridge: float  # times the squared units of the columns, added to the scatter of each component
    bulk: Bulk
    noise: bool
    dof: float | None  # None if it is estimated


class MixtureStart(NamedTuple):
    """Where a run begins, and the model it is made with."""

    params: MixtureParams
    model: StudentMixture
    merit: float = -np.inf  # of a run on the sample


def bulk_of(sample: Sample) -> Bulk:
    """By medians of columns, deviations and distances: half of the rows may be anywhere."""
    X, weight = sample
    center = _quantile(X, weight)
    away = np.abs(X - center)
    units = _quantile(away, weight)
    for j in np.flatnonzero(units == 0):  # most values are equal: let the nearest of the others speak
        some = away[:, j] > 0
        units[j] = _quantile(away[some, j], weight[some], 0.1) if np.any(some) else 1.0
    p = len(units)
    middle = float(_quantile(np.sum((away / units) ** 2, axis=1), weight))
    return Bulk(center, units, float(np.sqrt(max(middle, 1e-12) * chdtri(p, 0.05) / chdtri(p, 0.5))))


def _quantile(values: Array, weight: Array, share: float = 0.5) -> Array:
    return np.quantile(values, share, axis=0, weights=weight, method="inverted_cdf")


# ---- the choice between starts ----------------------------------------------------------------


def best_start(sample: Sample, labellings: Iterable[Array], setting: Setting) -> MixtureStart:
    """The best of the starts from several labellings, each with all rows and with the core of each group."""
    starts = [from_labels(sample, labels, setting, core) for labels in labellings for core in (True, False)]
    first = [_run(sample, start, setting, FIRST_ITER) for start in starts]
    first.sort(key=lambda start: -start.merit)
    return max(
        (_run(sample, start.params, setting, PILOT_ITER) for start in first[:FINALISTS]), key=lambda start: start.merit
    )


def _run(sample: Sample, params: MixtureParams, setting: Setting, max_iter: int) -> MixtureStart:
    """A run on the sample, with the prior at the pooled shape of its start."""
    source = ArraySource(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    model = with_prior(params, setting)
    fit = em(source, model, params, stop=SmallGain(PILOT_TOL), max_iter=max_iter)
    if fit.params.noise + fit.params.beyond > MOST_NOISE:
        fit = em(source, model, without_noise(params), stop=SmallGain(PILOT_TOL), max_iter=max_iter)
    return MixtureStart(fit.params, model, bounded_likelihood(sample, model, fit.params, setting.bulk))


def bounded_likelihood(sample: Sample, model: StudentMixture, params: MixtureParams, bulk: Bulk) -> float:
    """The penalised likelihood per row, in which rows far from the bulk cost no more than noise in it.

    So far rows, however many lie together, do not decide where the clusters are.
    """
    kernel = model.kernel(params)
    block = Block(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    log_density = np.asarray(model.engine_for(kernel).rows(block, kernel).log_density)
    if params.noise > 0:
        least = np.log(params.noise + params.beyond) - bulk.log_volume
        log_density = np.where(bulk.radii(sample.X) > FAR, np.maximum(log_density, least), log_density)
    log_prior = model.log_prior(kernel.factors, params)
    return float(sample.weight @ log_density + log_prior) / float(np.sum(sample.weight))


# ---- from labels to parameters ----------------------------------------------------------------


def with_prior(params: MixtureParams, setting: Setting) -> StudentMixture:
    """The model with a prior at the pooled shape of these parameters."""
    shape, p = setting.model.shape, params.centers.shape[1]
    rows = 0.0 if shape.tied else setting.prior_rows  # what is pooled already needs none
    if not setting.prior_rows and not setting.ridge:
        return setting.model
    squares = shape.diagonal(setting.bulk.units**2)
    weights = np.exp(params.log_weights - np.logaddexp.reduce(params.log_weights))
    pooled = np.tensordot(weights, params.covariances, 1) + THINNEST * squares
    constant = rows / 2 * (float(shape.log_sizes(pooled[None], p)[0]) * p + p)
    return replace(setting.model, prior=Prior(rows, rows * pooled + setting.ridge * squares, constant, setting.prior_rows))


def from_labels(sample: Sample, labels: Array, setting: Setting, core: bool = False) -> MixtureParams:
    """Centres and shapes of groups of rows, and noise.

    A row far from the median of its group counts little; with `core`, only the half of a group counts that is nearest
    to its centre, and what is improbable in that half's Gaussian is noise at first.
    """
    (X, weight), K, units = sample, setting.n_components, setting.bulk.units
    p = X.shape[1]
    dof = FIRST_DOF if setting.dof is None else setting.dof
    mass, centers, covariances = np.full(K, 1e-6), np.zeros((K, p)), np.zeros((K, p, p))
    strays = labels < 0
    for k in range(K):
        own = np.flatnonzero(labels == k)
        if not len(own):  # it begins at a row that is far from the other centres, but not the farthest
            others = centers[:k] if k else setting.bulk.center[None]
            d2 = np.min(np.sum(((X[:, None] - others) / units) ** 2, axis=2), axis=1)
            centers[k] = X[np.argsort(d2, kind="stable")[int(0.9 * (len(X) - 1))]]
            continue
        x, own_weight = X[own], weight[own]
        mass[k] = np.sum(own_weight)
        middle = _quantile(x, own_weight)
        width = 1.48 * _quantile(np.abs(x - middle), own_weight) + 1e-3 * units
        trust = own_weight * (dof + p) / (dof + np.sum(((x - middle) / width) ** 2, axis=1))
        centers[k], covariances[k] = _moments(x, trust, mass[k])
        if core and len(x) > 2 * (p + 2):
            for _ in range(2):
                d2 = _squares(x - centers[k], covariances[k], units)
                inner = d2 <= _quantile(d2, own_weight)
                centers[k], covariances[k] = _moments(x[inner], own_weight[inner], np.sum(own_weight[inner]))
            d2 = _squares(x - centers[k], covariances[k], units)
            factor = _quantile(d2, own_weight) / chdtri(p, 0.5)
            if factor > 0:  # else most rows of the group are equal
                covariances[k] *= factor
                strays[own] = d2 > factor * chdtri(p, STRAY)
    pooled = np.tensordot(mass / np.sum(mass), covariances, 1) + THINNEST * np.diag(units**2)
    rows = p + 2.0  # a start is shrunk in any case: few rows may have no volume
    covariances = (mass[:, None, None] * covariances + rows * pooled) / (mass + rows)[:, None, None]
    covariances = setting.model.bounded(setting.model.shape.of_matrices(covariances, mass), mass)
    params = MixtureParams(centers, covariances, np.full(K, dof), np.log(mass / np.sum(mass)))
    return with_noise(params, float(np.average(strays, weights=weight)), setting)


def _moments(x: Array, weight: Array, mass: float) -> tuple[Array, Array]:
    """The weighted mean, and the weighted scatter around it over `mass`."""
    center = weight @ x / np.sum(weight)
    away = x - center
    return center, (away * weight[:, None]).T @ away / mass


def _squares(away: Array, covariance: Array, units: Array) -> Array:
    """Squared Mahalanobis distances, (n,)."""
    root = np.linalg.cholesky(covariance + 1e-3 * THINNEST * np.diag(units**2))
    return np.sum(np.linalg.solve(root, away.T) ** 2, axis=0)


def with_noise(params: MixtureParams, share: float, setting: Setting) -> MixtureParams:
    """The same with noise, if there is to be any: half of it in the bulk."""
    if not setting.noise:
        return params
    shape, bulk = setting.model.shape, setting.bulk
    share = min(max(FIRST_NOISE, share), MOST_FIRST_NOISE)
    log_weights = params.log_weights - np.logaddexp.reduce(params.log_weights) + np.log1p(-share)
    ellipsoid = shape.diagonal((bulk.units * bulk.radius) ** 2)
    return params._replace(
        log_weights=log_weights, noise=share / 2, beyond=share / 2, bulk_center=bulk.center, bulk=ellipsoid
    )


def without_noise(params: MixtureParams) -> MixtureParams:
    """The same without noise."""
    log_weights = params.log_weights - np.logaddexp.reduce(params.log_weights)
    return params._replace(log_weights=log_weights, noise=0.0, beyond=0.0)
