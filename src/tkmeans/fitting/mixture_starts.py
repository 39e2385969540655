"""Where EM of a mixture begins: labels become parameters, a few runs on a sample decide between them.

A start also fixes what a run does not estimate: the pooled shape of the prior, and where the noise lies.
"""

from __future__ import annotations

import os
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
FIRST_NOISE = 0.02
MOST_NOISE = 0.4  # of the rows; more are a cluster
PILOT_ITER, PILOT_TOL, ROUNDS = 60, 1e-4, 2
CORE = int(os.environ.get("CORE", 0))
FAR = float(os.environ.get("FAR", 3.0))  # radii of the bulk: whoever is farther away costs no more than noise in the bulk
SPREAD = float(os.environ.get("DELTA", 0.02))  # of a column's squared unit, in the pooled shape: what no cluster is thinner than, as far as a prior goes


class MixtureStart(NamedTuple):
    """Where a run begins, and the model it is made with."""

    params: MixtureParams
    model: StudentMixture
    merit: float = -np.inf  # of the pilot
    labels: Array = None
    plain: float = 0.0


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
    prior_rows: float  # in each component
    ridge: float  # times the squared units, added to the scatter of each component
    bulk: Bulk
    noise: bool
    dof: float | None  # None if it is estimated
    core: bool = True


def bulk_of(sample: Sample) -> Bulk:
    """By medians of columns, of deviations and of distances: half of the rows may be anywhere."""
    X, weight = sample

    def median(values: Array, weight: Array) -> Array:
        return np.quantile(values, 0.5, axis=0, weights=weight, method="inverted_cdf")

    center = median(X, weight)
    away = np.abs(X - center)
    units = median(away, weight)
    for j in np.flatnonzero(units == 0):  # most values are equal: let the others speak
        some = away[:, j] > 0
        if np.any(some):
            units[j] = np.quantile(away[some, j], float(os.environ.get("UQ", .1)), weights=weight[some], method="inverted_cdf")
        else:
            units[j] = 1.0
    p = len(units)
    middle = float(median(np.sum((away / units) ** 2, axis=1), weight))
    return Bulk(center, units, float(np.sqrt(max(middle, 1e-12) * chdtri(p, 0.05) / chdtri(p, 0.5))))


def pilot(sample: Sample, labels: Array, n_components: int, setting: Setting) -> MixtureStart:
    """A run on the sample from labels, with the prior and the noise brought up to date."""
    source = ArraySource(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    params, share = from_labels(sample, labels, n_components, setting)
    if setting.noise:
        params = with_noise(params, share, setting)
    for _ in range(ROUNDS):
        model = with_prior(params, setting)
        fit = em(source, model, params, stop=SmallGain(PILOT_TOL), max_iter=PILOT_ITER)
        params = fit.params
    if params.noise + params.beyond > MOST_NOISE:
        return pilot(sample, labels, n_components, setting._replace(noise=False))
    m, rows = merit(sample, model, params, setting)
    return MixtureStart(params, model, m, rows.label, fit.stats.objective / fit.stats.total)


def merit(sample: Sample, model: StudentMixture, params: MixtureParams, setting: Setting) -> float:
    """The penalised likelihood per row, in which rows far from the bulk cost no more than noise in the bulk.

    So far rows, however many lie together, do not decide where the clusters are.
    """
    kernel = model.kernel(params)
    block = Block(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    rows = model.engine_for(kernel).rows(block, kernel)
    log_density = np.asarray(rows.log_density)
    if params.noise > 0:
        far = setting.bulk.radii(sample.X) > FAR
        floor = np.log(params.noise + params.beyond) - setting.bulk.log_volume
        log_density = np.where(far, np.maximum(log_density, floor), log_density)
    total = sample.weight.sum()
    return float(sample.weight @ log_density + model.log_prior(kernel.factors, params.covariances)) / total, rows


def with_prior(params: MixtureParams, setting: Setting) -> StudentMixture:
    """The model with a prior at the pooled shape of these parameters."""
    shape, rows = setting.model.shape, 0.0 if setting.model.shape.tied else setting.prior_rows
    p = params.centers.shape[1]
    if not rows and not setting.ridge:
        return setting.model
    squares = shape.diagonal(setting.bulk.units**2)
    weights = np.exp(params.log_weights - np.logaddexp.reduce(params.log_weights))
    pooled = np.tensordot(weights, params.covariances, 1) + SPREAD * squares
    constant = rows / 2 * (float(shape.log_sizes(pooled[None], p)[0]) * p + p)
    return replace(setting.model, prior=Prior(rows, rows * pooled + setting.ridge * squares, constant))


def from_labels(sample: Sample, labels: Array, n_components: int, setting: Setting) -> MixtureParams:
    """Centres and shapes of groups of rows, in which rows far from the median of their group count little."""
    X, weight = sample
    n, p = X.shape
    shape, units = setting.model.shape, setting.bulk.units
    dof = FIRST_DOF if setting.dof is None else setting.dof
    mass, w = np.zeros(n_components), np.zeros(n_components)
    strays = labels < 0
    centers, covariances = np.zeros((n_components, p)), np.zeros((n_components, p, p))
    for k in range(n_components):
        own = labels == k
        if not np.any(own):  # begins where the others are not
            d2 = np.min(np.sum(((X[:, None] - centers[:k]) / units) ** 2, axis=2), axis=1) if k else np.zeros(n)
            centers[k], mass[k] = X[np.argsort(d2)[int(0.9 * (n - 1))]], 1e-6
            continue
        x, own_weight = X[own], weight[own]
        middle = np.median(x, axis=0)
        width = 1.48 * np.median(np.abs(x - middle), axis=0) + 1e-3 * units
        trust = own_weight * (dof + p) / (dof + np.sum(((x - middle) / width) ** 2, axis=1))
        mass[k], w[k] = own_weight.sum(), trust.sum()
        centers[k] = trust @ x / w[k]
        away = x - centers[k]
        covariances[k] = (away * trust[:, None]).T @ away / mass[k]
        if setting.core and len(x) > 2 * (p + 2):
            for _ in range(1):
                root = np.linalg.inv(np.linalg.cholesky(covariances[k] + 1e-3 * np.diag(units**2)))
                d2 = np.sum((away @ root.T) ** 2, axis=1)
                middle = np.quantile(d2, 0.5, weights=own_weight, method="inverted_cdf")
                core = d2 <= middle
                half = own_weight[core]
                centers[k] = half @ x[core] / half.sum()
                away = x - centers[k]
                covariances[k] = (away[core] * half[:, None]).T @ away[core] / half.sum()
            root = np.linalg.inv(np.linalg.cholesky(covariances[k] + 1e-6 * np.diag(units**2)))
            d2 = np.sum((away @ root.T) ** 2, axis=1)
            middle = np.quantile(d2, 0.5, weights=own_weight, method="inverted_cdf")
            covariances[k] *= middle / chdtri(p, 0.5)
            strays[own] = d2 / middle * chdtri(p, 0.5) > chdtri(p, 1e-3)
    pooled = np.tensordot(mass / mass.sum(), covariances, 1) + SPREAD * np.diag(units**2)
    rows = p + 2.0  # a start is shrunk in any case: few rows may have no volume
    covariances = (mass[:, None, None] * covariances + rows * pooled) / (mass + rows)[:, None, None]
    covariances = setting.model.bounded(shape.of_matrices(covariances, mass), mass)
    share = float(np.average(strays, weights=weight))
    return MixtureParams(centers, covariances, np.full(n_components, dof), np.log(mass / mass.sum())), share


def with_noise(params: MixtureParams, share: float, setting: Setting) -> MixtureParams:
    """The same with noise, half of it in the bulk."""
    shape, bulk = setting.model.shape, setting.bulk
    share = min(max(FIRST_NOISE, share), 0.3)
    return params._replace(
        log_weights=params.log_weights + np.log1p(-share),
        noise=share / 2,
        beyond=share / 2,
        bulk_center=bulk.center,
        bulk=shape.diagonal((bulk.units * bulk.radius) ** 2),
    )
