"""The stability of clusters: which of them come back when the rows are drawn anew.

The module is not called `stability`, because `tkmeans.stability` is the function.
"""

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _is_fitted

from tkmeans.docstrings import documented
from tkmeans.estimators.inputs import checked_sample_weight
from tkmeans.estimators.validation import check_clusterer, check_integer, check_n_jobs
from tkmeans.plots.diagnostic_displays import DOUBTFUL, STABLE, StabilityDisplay
from tkmeans.stats import Array

Progress = Callable[[int, int], None]  # called with how much is done, and of how much


@documented("similarity_*")
@dataclass(frozen=True, eq=False)
class Stability:
    """How well each cluster came back from the resamples."""

    jaccard: Array
    clusters: Array
    sizes: Array

    @property
    def mean(self) -> Array:
        """The mean similarity of each cluster."""
        return self.jaccard.mean(axis=0)

    @property
    def rating(self) -> Array:
        """What each cluster is: "stable" (a mean of at least 0.75), "doubtful" or "unstable" (below 0.6)."""
        return np.array(["unstable", "doubtful", "stable"])[np.digitize(self.mean, [DOUBTFUL, STABLE])]

    def __repr__(self) -> str:
        title = f"Stability of {len(self.clusters)} clusters over {len(self.jaccard)} resamples"
        columns = (self.clusters, self.sizes, self.mean, self.jaccard.min(axis=0), self.rating)
        lines = ("{:7d}  {:8g}  {:.3f}  {:.3f}  {}".format(*row) for row in zip(*columns, strict=True))
        return "\n".join([title, "cluster      rows   mean  worst  rating", *lines])

    @documented("ax", returns="display : tkmeans.plots.StabilityDisplay")
    def plot(self, ax: Any = None) -> Any:
        """Draw the similarities of each cluster."""
        return StabilityDisplay(jaccard=self.jaccard, sizes=self.sizes).plot(ax=ax)


@documented("resampled_*", "draws", returns="resampling")
def stability(
    estimator: Any,
    X: Any,
    *,
    n_resamples: int = 100,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
) -> Stability:
    """Find out which clusters to believe, by clustering resamples of the rows.

    A cluster that is in the data is found again when rows are drawn anew, with replacement. In every resample each
    cluster is compared with the most similar one that is found there, among the rows drawn (Hennig's bootstrap).

    A stable cluster need not be a meaningful one: one cluster for everything is perfectly
    stable. But an unstable one is to do with the sample, or with a wrong number of clusters.

    References
    ----------
    C. Hennig, "Cluster-wise assessment of cluster stability", Computational Statistics & Data Analysis 52 (2007).
    """
    check_integer("n_resamples", n_resamples, least=1)
    check_n_jobs("n_jobs", n_jobs)
    check_clusterer("estimator", estimator)
    if isinstance(X, (str, os.PathLike)) or not hasattr(X, "__len__"):
        raise TypeError(f"X must hold rows in memory, to draw from, got {X!r}; read it first")
    (X,) = indexable(X)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    weight = None if sample_weight is None else checked_sample_weight(sample_weight, np.empty((n_rows, 0)))
    reference = _labels(estimator if _is_fitted(estimator) else _fitted_copy(estimator, X, weight), X)
    if reference.shape != (n_rows,):
        raise ValueError(f"estimator was fitted to {len(reference)} rows and X has {n_rows}; give both the same rows")
    counted = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    clusters = np.unique(reference[counted[reference[counted] >= 0]])
    if not len(clusters):
        raise ValueError(f"{type(estimator).__name__} found no cluster in X, so there is none to judge")
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_resamples)
    # The fit to all rows has warned of the data. Here and not in the fits: they may be threads.
    with warnings.catch_warnings(action="ignore"):
        given = estimator, X, weight, reference, clusters, counted
        fits = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_similarities)(*given, seed) for seed in seeds)
        jaccard = []
        for done, similarities in enumerate(fits, start=1):
            jaccard.append(similarities)
            show_progress(done, n_resamples, "stability", progress)
    ones = np.ones(n_rows) if weight is None else weight
    return Stability(np.array(jaccard), clusters, np.array([ones[reference == cluster].sum() for cluster in clusters]))


def show_progress(done: int, total: int, title: str, progress: bool | Progress) -> None:
    """Call `progress`, or if it is True write a line on standard error."""
    if callable(progress):
        progress(done, total)
    elif progress:
        print(f"\r{title}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def best_jaccard(reference: Array, labels: Array, clusters: Array, weight: Array) -> Array:
    """For each cluster in `reference` the similarity of the most similar one in `labels`; negative labels are none."""
    ours, row = np.unique(reference, return_inverse=True)
    theirs, column = np.unique(labels, return_inverse=True)
    both = coo_array((weight, (row, column)), (len(ours), len(theirs))).toarray()
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    best = np.max(both / either, axis=1, where=theirs >= 0, initial=0.0)
    places = np.minimum(np.searchsorted(ours, clusters), len(ours) - 1)
    return np.where(ours[places] == clusters, best[places], 0.0)  # 0 for a cluster of which no row is left


def _similarities(
    estimator: Any, X: Any, weight: Array | None, reference: Array, clusters: Array, counted: Array, seed: int
) -> Array:
    """Draw rows, cluster them, and compare."""
    drawn = np.random.RandomState(seed).choice(counted, len(counted))
    X = _safe_indexing(X, drawn)
    labels = _labels(_fitted_copy(estimator, X, None if weight is None else weight[drawn]), X)
    rows, first = np.unique(drawn, return_index=True)  # a row that was drawn twice is one row
    ones = np.ones(len(rows)) if weight is None else weight[rows]
    return best_jaccard(reference[rows], labels[first], clusters, ones)


def _fitted_copy(estimator: Any, X: Any, weight: Array | None) -> Any:
    name = f"{estimator.steps[-1][0]}__sample_weight" if hasattr(estimator, "steps") else "sample_weight"
    return plain_copy(estimator).fit(X, **({} if weight is None else {name: weight}))


def plain_copy(estimator: Any) -> Any:
    """A clone that neither writes the user's checkpoints nor ends when his time is up, in a pipeline too."""
    copy = clone(estimator)
    params = [name for name in copy.get_params() if name.split("__")[-1] in ("checkpoint", "max_time")]
    return copy.set_params(**dict.fromkeys(params))


def _labels(fitted: Any, X: Any) -> Array:
    """By `predict`; density-based clusterers have none and know only the rows they were fitted to."""
    return np.asarray(fitted.predict(X) if hasattr(fitted, "predict") else fitted.labels_)
