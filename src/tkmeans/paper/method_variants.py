"""The variants of each method that are compared: as released, with correct equations, with our defaults."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from tkmeans import FastTKMeans, StudentTMixture, TKMeans, engines
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.em import SmallMove, StoppingRule, em
from tkmeans.models import Fast
from tkmeans.paper.authors.methods import METHODS, Run
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Frame, Outcome, Params

# Rows, the released start and a seed to the outcome; each method takes what it needs of these.
Fitting = Callable[[Array, Array, int], Run]


def _by(estimator: Callable[[Array, int], Any]) -> Fitting:
    """What an estimator made for a start and a seed finds."""

    def fit(X: Array, start: Array, seed: int) -> Run:
        made = estimator(start, seed)
        labels = made.fit_predict(X)
        centers = made.means_ if hasattr(made, "means_") else made.cluster_centers_
        return Run(np.asarray(labels), np.asarray(centers), int(made.n_iter_))

    return fit


def _tmm(X: Array, start: Array, seed: int) -> Run:
    """Exact EM, from k-means like the GMM and with its tolerance, no step extrapolated."""
    means = KMeans(len(start), n_init=1, random_state=seed).fit(X).cluster_centers_
    plain: dict[str, Any] = {
        "noise": False,
        "shrinkage": 0.0,
        "size_ratio": np.inf,
        "shared_dof": False,
        "reg_covar": 1e-6,
    }
    mixture = StudentTMixture(len(start), means_init=means, tol=1e-3, max_iter=30, accelerate=False, **plain)
    return _by(lambda *_: mixture)(X, start, seed)


def limit(X: Array, start: Array, power: int, stop: StoppingRule, max_iter: int) -> Outcome[Any, Any]:
    """alpha -> 0 with centres weighted by tau/D^power; 1 is the limit taken literally, 0 as it was released."""
    params = Params(start, 1e-20, 1.0, np.full(len(start), -np.log(len(start))))
    source = ArraySource(X, None, Frame(np.zeros(X.shape[1]), 1.0))
    model = Fast(power=power, engine=engines.select("auto"))
    return em(source, model, params, stop=stop, max_iter=max_iter, accelerate=False)


def _literal_limit(X: Array, start: Array, seed: int) -> Run:  # noqa: ARG001
    """Centres collapse onto rows."""
    fit = limit(X, start, 1, SmallMove(1e-6), 200)
    centers = fit.params.centers
    return Run(cdist(X, centers, "sqeuclidean").argmin(axis=1), centers, len(fit.history) - 1)


def _released(method: str) -> Fitting:
    return lambda X, start, seed: METHODS[method].run(X, start)  # noqa: ARG005


_kmeans = _by(lambda start, seed: KMeans(len(start), init=start, n_init=1, random_state=seed))
_default_tkmeans = _by(lambda start, seed: TKMeans(len(start), random_state=seed))

# On rows in their own units: the published fast t-k-means++ row was made that way (deviations.md).
UNSCALED: dict[str, dict[str, Fitting]] = {
    "released unscaled": {"fast t-k-means++": _released("fast t-k-means++")},
    "defaults unscaled": {"t-k-means": _default_tkmeans},
}
COLUMNS: dict[str, dict[str, Fitting]] = {
    "released": {method: _released(method) for method in METHODS},
    "correct": {
        "k-means": _kmeans,
        "k-means++": _kmeans,
        "k-medoids": _by(lambda start, seed: KMedoids(len(start), method="alternate", init=start, random_state=seed)),
        "k-medians": _by(lambda start, seed: KMedians(len(start), init=start, random_state=seed)),
        "GMM": _by(lambda start, seed: GaussianMixture(len(start), random_state=seed)),  # starts from k-means
        "TMM": _tmm,
        "t-k-means": _by(  # the paper's equations, with nu from the exact equation
            lambda start, seed: TKMeans(len(start), init=start, cluster_weights="equal", random_state=seed)
        ),
        "fast t-k-means": _literal_limit,
        "fast t-k-means++": _literal_limit,
    },
    # Our estimators with nothing set but the number of clusters.
    "defaults": {
        "t-k-means": _default_tkmeans,
        "fast t-k-means++": _by(lambda start, seed: FastTKMeans(len(start), random_state=seed)),
    },
    **UNSCALED,
}


def fitted(column: str, method: str, X: Array, start: Array, seed: int) -> Run:
    """One run of one method in one of the columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a run was short or a cluster empty is part of the result
        return COLUMNS[column][method](X, start, seed)
