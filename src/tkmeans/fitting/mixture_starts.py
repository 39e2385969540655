"""Where EM of a mixture begins: a search, a seeding, an earlier fit or what the user gives.

A start also fixes what a run does not estimate: the pooled shape of the prior, and the ellipsoid of the noise.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.fit_warnings import warn_user
from tkmeans.fitting import relations
from tkmeans.fitting import starts as of_centers
from tkmeans.fitting.incomplete_rows import complete, without_bad_cells
from tkmeans.fitting.mixture_choice import chosen_start
from tkmeans.fitting.mixture_setting import (
    FOREVER,
    Setting,
    bulk_of,
    from_labels,
    judged,
    with_noise,
    with_prior,
    without_noise,
)
from tkmeans.fitting.observers import TimeLimit
from tkmeans.models.covariances import SHAPES, Ellipsoid
from tkmeans.models.mixture import MixtureParams, StudentMixture
from tkmeans.models.protocols import log_shares
from tkmeans.search import same_clusters, seeding
from tkmeans.search.shape_search import FARTHEST
from tkmeans.sources import Sample, Source
from tkmeans.sources.base import canonical, limits, out_of_bounds, quantile, usual
from tkmeans.sources.number_checks import checked_centers, checked_precisions, checked_weights
from tkmeans.stats import Array

SAMPLE_ROWS = 4000  # that a start is chosen on, at least


def starts(
    settings: Any, source: Source, before: Any, rng: np.random.RandomState
) -> Iterator[tuple[StudentMixture, MixtureParams]]:
    """As many starts as an estimator asks for, each with its model; `before` are the components of an earlier fit."""
    K, given = int(settings.n_components), settings.means_init is not None
    robust = settings.init_params == "robust" and not given
    size = max(SAMPLE_ROWS, of_centers.SAMPLE_ROWS_PER_CLUSTER * K)
    row = min(1.0, source.total / max(source.n_counted, 1))  # weights that sum to 1 do not make rows few
    whole = source.sample(size, np.random.RandomState(0) if settings.init_params == "robust" else rng)
    whole, n_rows = whole._replace(weight=whole.weight / row), source.total / row
    spread = usual(whole) if robust else None
    rows = without_bad_cells(whole, K, spread) if robust and settings.bad_cells else whole
    known = None if np.any(np.isnan(rows.X)) else spread
    sample = canonical(complete(rows, K, whole.X, max(1.0, n_rows / size)))
    if len(sample.X) < K:
        warn_user(f"X has only {len(sample.X)} distinct rows for n_components={K}: some will be empty.")
    ridge = min(float(settings.reg_covar), 1e12) * n_rows / K  # with more, shapes are round to the last digit
    prior = min(float(settings.shrinkage), 1e12) * (sample.X.shape[1] + 2)
    dof = None if settings.dof == "estimate" else float(settings.dof)
    one, model = np.min(whole.weight[whole.weight > 0], initial=1.0), settings._model(settings._engine(source))
    bulk = bulk_of(sample, known, relations.rounding(source), one)
    reach = FARTHEST * bulk.units  # what is farther is as far
    far, sample = sample.X, sample._replace(X=np.clip(sample.X, bulk.center - reach, bulk.center + reach))
    unlimited = settings.max_time is None or source.resumed
    limit = source.search_limit = FOREVER if unlimited else TimeLimit(of_centers.SEARCH_TIME * settings.max_time)
    setting = Setting(model, K, prior, ridge, bulk, settings.noise, dof, n_rows, limit, known)
    few = isinstance(model.shape, Ellipsoid) and len(sample.X) < K * (sample.X.shape[1] + 1)  # scatters are singular
    sought = setting._replace(model=replace(model, shape=SHAPES["diag"])) if few else setting
    of_weights = setting._replace(prior_rows=prior * row, ridge=ridge * row)
    width = source.frame.unit * np.max(bulk.units) * bulk.radius
    form = before and (before.shape, before.columns, *before.centers.shape)  # and of rows in about this unit:
    goes_on = form == (model.shape, source.columns, K, sample.X.shape[1])
    goes_on = goes_on and 1e-4 < np.max(before.covariances) ** 0.5 / width < 3
    members = list[Array]()  # of the starts that were searched for
    for number in range(1 if given or goes_on else settings.n_init):
        if goes_on:
            params = _gone_on(before.entered(source.frame), setting)
        elif robust:
            search = partial(chosen_start, setting=sought, seed=number)
            if least := int(settings.min_cluster_size or 0):
                search = partial(of_centers.without_heaps, search, partial(_members, sought), K, least / source.total)
            params, agreement = search(sample)
            if few:
                shapes = model.shape.of_matrices(params.covariances, np.exp(params.log_weights))
                params = params._replace(covariances=shapes, bulk=model.shape.diagonal(params.bulk + 0 * bulk.units))
            source.agreement = source.agreement or agreement
            if settings.n_init > 1:
                members.append(_members(setting, sample, (params, None)))
            if any(same_clusters(members[-1], each, sample.weight) for each in members[:-1]):
                continue  # EM would end in these again
        else:
            params = from_labels(sample, _seeded(settings, source, sample, setting, rng), setting)
        clipped = (np.abs(params.centers - bulk.center) > 0.9 * reach) & (not goes_on)
        for k in np.flatnonzero(np.any(clipped, axis=1)):  # where its rows are, which the sample has held nearer
            if np.any(own := _members(setting, sample, (params, None)) == k):
                params.centers[k] = np.where(clipped[k], quantile(far[own], sample.weight[own]), params.centers[k])
        if robust and settings.bad_cells and number == 0:
            low, high = limits(whole, params.centers, spread)
            if np.any(out_of_bounds(whole.X, low, high)):
                bounds = np.full((2, source.n_features), [[-np.inf], [np.inf]])
                bounds[:, source.columns or slice(None)] = source.frame.leave(low), source.frame.leave(high)
                source.bounds = bounds[0], bounds[1]
        params = params if goes_on else _as_given(settings, source, params, setting)
        yield with_prior(params, of_weights), params


def _members(setting: Setting, sample: Sample, found: tuple[MixtureParams, Any]) -> Array:
    """The component of each row, -1 for noise."""
    _, labels, noise = judged(sample, with_prior(found[0], setting), found[0])
    return np.where(noise > 0.5, -1, labels)


def _gone_on(params: MixtureParams, setting: Setting) -> MixtureParams:
    """Where an earlier fit ended, as near as the settings of this one allow."""
    (K, p), model = params.centers.shape, setting.model
    dof = np.clip(params.dof, *model.dof_bounds(p)) if setting.dof is None else np.full(K, setting.dof)
    covariances = model.bounded(params.covariances, np.exp(params.log_weights))
    params = params._replace(dof=np.full(K, np.median(dof)) if model.shared_dof else dof, covariances=covariances)
    if not setting.noise:
        return without_noise(params)
    return with_noise(params, 0.0, setting) if setting.noise != "auto" and not params.noise else params


def _seeded(settings: Any, source: Source, sample: Sample, setting: Setting, rng: np.random.RandomState) -> Array:
    """Labels by the nearest of given or drawn centres, every column in its unit."""
    in_units = sample._replace(X=sample.X / setting.bulk.units)
    if settings.means_init is not None:
        shape = (settings.n_components, source.n_features)
        centers = checked_centers(settings.means_init, "means_init", shape, "n_components")
        centers = source.frame.enter(centers[:, source.columns or slice(None)]) / setting.bulk.units
    elif len(sample.X) <= settings.n_components:
        return np.arange(len(sample.X))
    else:
        centers = SEEDINGS[settings.init_params](in_units, settings.n_components, rng)
    return centers if centers.ndim == 1 else np.argmin(cdist(in_units.X, centers, "sqeuclidean"), axis=1)


def _kmeans(sample: Sample, n_components: int, rng: np.random.RandomState) -> Array:
    from sklearn.cluster import KMeans  # 10 MB that other starts can do without

    return KMeans(n_components, n_init=1, random_state=rng).fit(sample.X, sample_weight=sample.weight).labels_


SEEDINGS: dict[str, Any] = {
    "kmeans": _kmeans,
    "k-means++": seeding.kmeans_plusplus,
    "random": lambda sample, n_components, rng: rng.randint(n_components, size=len(sample.X)),
    "random_from_data": seeding.random_rows,
}


def _as_given(settings: Any, source: Source, params: MixtureParams, setting: Setting) -> MixtureParams:
    """What the user has given instead of what was found."""
    K, p, kind = settings.n_components, source.n_features, settings.covariance_type
    if settings.means_init is not None:
        centers = checked_centers(settings.means_init, "means_init", (K, p), "n_components")
        params = params._replace(centers=source.frame.enter(centers[:, source.columns or slice(None)]))
    if settings.weights_init is not None:
        log_weights = log_shares(checked_weights(settings.weights_init, K))
        params = params._replace(log_weights=log_weights + np.log1p(-params.noise - params.beyond))
    if settings.precisions_init is not None:
        precisions = checked_precisions(settings.precisions_init, kind, K, p)
        covariances = np.linalg.inv(precisions) if kind in ("full", "tied") else 1 / precisions
        form = (K, 1) if kind == "spherical" else (K, *covariances.shape[kind != "tied" :])
        covariances = np.broadcast_to(covariances.reshape(-1, *form[1:]), form)
        covariances = setting.model.shape.part(covariances, source.columns or slice(None))
        mass = np.exp(params.log_weights)
        params = params._replace(covariances=setting.model.bounded(covariances / source.frame.unit**2, mass))
    return params
