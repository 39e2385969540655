"""k-medoids: centres are rows."""

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from tkmeans.baselines import hard_assignment as hard
from tkmeans.estimators.clusterer import Clusterer
from tkmeans.estimators.validation import check_choice
from tkmeans.fitted import Training
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.stats import Array, Outcome

METRICS, METHODS = ("euclidean", "cityblock", "sqeuclidean", "cosine"), ("swap", "alternate")


@final
@dataclass
class Medoids(hard.HardModel):
    """The centre is the row with the least sum of distances to its cluster."""

    def center(self, x: Array, weight: Array) -> Array:
        """The medoid of these rows."""
        return x[np.argmin(hard.distances_between(x, x, self.metric) @ weight)]


@final
class KMedoids(Clusterer, ClusterMixin, BaseEstimator):
    """k-medoids: every centre is one of the rows; those of :class:`KMedians` are medians.

    Parameters
    ----------
    n_clusters, max_iter : int, default=8 and 300
        The number of clusters, and the most sweeps over all rows.
    metric : {"euclidean", "cityblock", "sqeuclidean", "cosine"}, default="euclidean"
        The distance.
    method : {"swap", "alternate"}, default="swap"
        "swap" exchanges a medoid for another row whenever that helps (PAM, with the shortcuts of Schubert and
        Rousseeuw 2021); it needs all pairwise distances in memory. "alternate" labels rows and moves medoids in turn,
        like k-means: quicker, worse.
    init, random_state : {"k-means++", "random"} or array, default="k-means++", and as in scikit-learn, default=None
        Where to begin; of an array, the nearest rows are taken. Makes a start that is drawn reproducible.
    n_init : "auto" or int, default="auto"
        How many starts to try; that with the least sum of distances is kept. "auto" is 10 for "random", 1 otherwise.

    Attributes
    ----------
    cluster_centers_, medoid_indices_ : ndarrays of shape (n_clusters, n_features) and (n_clusters,)
        The medoids, and their row numbers in X. Clusters are numbered by size, the largest first.
    labels_, inertia_, n_iter_ : ndarray of shape (n_samples,), float and int
        The cluster of each row; the weighted sum of distances to the medoids; sweeps of the best run.
    n_features_in_, feature_names_in_ : int and ndarray of shape (n_features,)
        The number of features, and their names, where X had some.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans.baselines import KMedoids
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [8, 8], [8, 9], [9, 8]])
    >>> KMedoids(n_clusters=2, random_state=0).fit(X).medoid_indices_
    array([0, 3])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str = "euclidean",
        method: str = "swap",
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    _checks = hard.CHECKS | {"metric": partial(check_choice, choices=METRICS)}
    _checks |= {"method": partial(check_choice, choices=METHODS)}
    _accepts, _lacks, _family = hard.ACCEPTS, hard.LACKS, hard.HardCenters

    def _model(self, engine: Any) -> Medoids:
        return Medoids(self.metric)

    def _plan(self, source: Source) -> Plan:
        return hard.hard_plan(self, source, self._run_from, _medoids_among)

    def _run_from(self, sample: Sample, centers: Array) -> Run:
        medoids = hard.distances_between(centers, sample.X, "sqeuclidean").argmin(axis=1)
        if self.method == "alternate":
            return hard.alternating(Medoids(self.metric), sample, sample.X[medoids], self.max_iter)
        return partial(_run_of, sample, hard.distances_between(sample.X, sample.X, self.metric), medoids, self.max_iter)


def _run_of(sample: Sample, distances: Array, medoids: Array, max_iter: int, **_: Any) -> Outcome[Any, Any]:
    """A search for medoids as a run; its sweeps are not observed."""
    medoids, n_iter, converged = swapped(distances, sample.weight, medoids, max_iter)
    cost = float(sample.weight @ distances[:, medoids].min(axis=1))
    stats = SimpleNamespace(objective=-cost)
    return Outcome(hard.Centers(sample.X[medoids]), stats, [-cost] * (n_iter + 1), n_iter, converged)


def _medoids_among(training: Training, fit: Any, source: ArraySource, found: dict[str, Any]) -> dict[str, Any]:
    """The cost, and the row numbers of the medoids."""
    away = hard.distances_between(source.X, training.params.centers, "sqeuclidean")
    return hard.cost_of(training, fit, source, found) | {"medoid_indices_": away.argmin(axis=0)}


def swapped(distances: Array, weight: Array, medoids: Array, max_iter: int) -> tuple[Array, int, bool]:
    """Exchange a medoid for a row as soon as that lowers the cost; until a whole sweep finds nothing.

    What every row would gain as a new medoid, and what each medoid's removal would cost then, come from the distances
    to the nearest and second nearest medoid (FasterPAM).
    """
    medoids = medoids.copy()
    n_clusters, n_rows = len(medoids), len(distances)
    label, first, second = _two_nearest(distances, medoids)
    unchanged = 0  # rows tried since the last exchange
    for n_iter in range(1, max_iter + 1):
        for row in range(n_rows):
            to_row = distances[:, row]
            closer = to_row < first
            gain = weight @ np.where(closer, to_row - first, 0.0)
            # Rows whose medoid goes away: to the new one if that is nearest now, else to the second.
            leaves = np.where(closer, 0.0, np.minimum(to_row, second) - first)
            change = gain + np.bincount(label, weights=weight * leaves, minlength=n_clusters)
            worst = int(np.argmin(change))
            unchanged += 1
            if change[worst] < -1e-12 * (weight @ first):
                medoids[worst], unchanged = row, 0
                label, first, second = _two_nearest(distances, medoids)
            elif unchanged >= n_rows:
                return medoids, n_iter, True
    return medoids, max_iter, False


def _two_nearest(distances: Array, medoids: Array) -> tuple[Array, Array, Array]:
    """The nearest medoid of each row, the distance to it, and that to the next."""
    to_medoids = np.column_stack([distances[:, medoids], np.full(len(distances), np.inf)])  # (n, K + 1)
    first, second = np.partition(to_medoids, 1, axis=1)[:, :2].T
    return to_medoids.argmin(axis=1), first, second
