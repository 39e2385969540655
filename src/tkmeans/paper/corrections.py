"""The same nine methods done right, from the same starts, and what our defaults make of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from tkmeans import FastTKMeans, StudentTMixture, TKMeans, engines
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.em import SmallMove, em
from tkmeans.models import Fast
from tkmeans.paper.authors.methods import METHODS, Run
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Frame, Params

# Rows, the released start and a seed to the outcome; each method takes what it needs of these.
Fitting = Callable[[Array, Array, int], Run]


def _of(estimator: Any, X: Array) -> Run:
    """What a fitted scikit-learn estimator found."""
    labels = estimator.fit_predict(X)
    centers = estimator.means_ if hasattr(estimator, "means_") else estimator.cluster_centers_
    return Run(np.asarray(labels), np.asarray(centers), int(estimator.n_iter_))


def _kmeans(X: Array, start: Array, seed: int) -> Run:
    return _of(KMeans(len(start), init=start, n_init=1, random_state=seed), X)


def _kmedoids(X: Array, start: Array, seed: int) -> Run:
    return _of(KMedoids(len(start), method="alternate", init=start, random_state=seed), X)


def _kmedians(X: Array, start: Array, seed: int) -> Run:
    return _of(KMedians(len(start), init=start, random_state=seed), X)


def _gmm(X: Array, start: Array, seed: int) -> Run:
    """scikit-learn's, which starts from k-means."""
    return _of(GaussianMixture(len(start), random_state=seed), X)


def _tmm(X: Array, start: Array, seed: int) -> Run:
    """Exact EM, from k-means like the GMM and with its tolerance, no step extrapolated."""
    means = KMeans(len(start), n_init=1, random_state=seed).fit(X).cluster_centers_
    return _of(StudentTMixture(len(start), means_init=means, tol=1e-3, max_iter=30, accelerate=False), X)


def _tkmeans(X: Array, start: Array, seed: int) -> Run:
    """The paper's equations, with nu from the exact equation."""
    return _of(TKMeans(len(start), init=start, cluster_weights="equal", random_state=seed), X)


def literal_limit(X: Array, start: Array, seed: int) -> Run:  # noqa: ARG001
    """alpha -> 0 taken literally: centres weighted by tau/D, which collapse onto rows."""
    frame = Frame(np.zeros(X.shape[1]), 1.0)
    params = Params(start, 1e-20, 1.0, np.full(len(start), -np.log(len(start))))
    model = Fast(power=1, engine=engines.select("auto"))
    source = ArraySource(X, None, frame)
    fit = em(source, model, params, stop=SmallMove(1e-6), max_iter=200, accelerate=False)
    kernel = model.kernel(fit.params)
    labels = [model.engine.rows(block, fit.params, kernel).label for block in source.blocks()]
    return Run(np.concatenate(labels), fit.params.centers, len(fit.history) - 1)


CORRECT: dict[str, Fitting] = {
    "k-means": _kmeans,
    "k-means++": _kmeans,
    "k-medoids": _kmedoids,
    "k-medians": _kmedians,
    "GMM": _gmm,
    "TMM": _tmm,
    "t-k-means": _tkmeans,
    "fast t-k-means": literal_limit,
    "fast t-k-means++": literal_limit,
}


def _default_tkmeans(X: Array, start: Array, seed: int) -> Run:
    return _of(TKMeans(len(start), random_state=seed), X)


def _default_fast(X: Array, start: Array, seed: int) -> Run:
    return _of(FastTKMeans(len(start), random_state=seed), X)


# Our estimators with nothing set but the number of clusters.
DEFAULTS: dict[str, Fitting] = {"t-k-means": _default_tkmeans, "fast t-k-means++": _default_fast}


def _released(method: str) -> Fitting:
    return lambda X, start, seed: METHODS[method].run(X, start)  # noqa: ARG005


# On rows in their own units: the published fast t-k-means++ row was made that way (deviations.md).
UNSCALED: dict[str, dict[str, Fitting]] = {
    "released unscaled": {"fast t-k-means++": _released("fast t-k-means++")},
    "defaults unscaled": {"t-k-means": _default_tkmeans},
}
COLUMNS: dict[str, dict[str, Fitting]] = {
    "released": {method: _released(method) for method in METHODS},
    "correct": CORRECT,
    "defaults": DEFAULTS,
    **UNSCALED,
}


def fitted(column: str, method: str, X: Array, start: Array, seed: int) -> Run:
    """One run of one method in one of the columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a run was short or a cluster empty is part of the result
        return COLUMNS[column][method](X, start, seed)
