"""k-medians: centres are coordinate-wise medians."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from tkmeans.baselines.hard_assignment import ACCEPTS, CHECKS, LACKS, HardCenters, HardModel, alternating, hard_plan
from tkmeans.estimators.clusterer import Clusterer
from tkmeans.fitting.restarts import Plan
from tkmeans.sources import Source
from tkmeans.stats import Array


@final
@dataclass
class Medians(HardModel):
    """City-block distances, and the centres that make their sum least."""

    metric: str = "cityblock"

    def center(self, x: Array, weight: Array) -> Array:
        """The weighted median of each feature."""
        return weighted_medians(x, weight)


def weighted_medians(x: Array, weight: Array) -> Array:
    """The median of each column, a row of weight 2 counting as two rows; midway where two values do."""
    order = np.argsort(x, axis=0, kind="stable")
    up = np.take_along_axis(x, order, axis=0)
    share = np.cumsum(weight[order], axis=0)
    half = share[-1] / 2
    lower = np.take_along_axis(up, np.argmax(share >= half, axis=0)[None], axis=0)[0]
    upper = np.take_along_axis(up, np.argmax(share > half, axis=0)[None], axis=0)[0]
    return lower / 2 + upper / 2


@final
class KMedians(Clusterer, ClusterMixin, BaseEstimator):
    """k-medians: k-means with city-block distances and medians.

    A classical robust variant, here to compare with. Medians resist outliers within a cluster, but nothing keeps a far
    outlier from becoming a cluster of its own. The centres of :class:`KMedoids` are rows.

    Parameters
    ----------
    n_clusters, max_iter : int, default=8 and 300
        The number of clusters, and the most iterations of one run.
    init, random_state : {"k-means++", "random"} or array, default="k-means++", and as in scikit-learn, default=None
        Where to begin; makes a start that is drawn reproducible.
    n_init : "auto" or int, default="auto"
        How many starts to try; that with the least sum of distances is kept. "auto" is 10 for "random", 1 otherwise.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The medians. Clusters are numbered by size, the largest first.
    labels_, inertia_, n_iter_ : ndarray of shape (n_samples,), float and int
        The cluster of each row; the weighted sum of city-block distances to the centres; iterations of the best run.
    n_features_in_, feature_names_in_ : int and ndarray of shape (n_features,)
        The number of features, and their names, where X had some.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans.baselines import KMedians
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [8, 8], [8, 9]])
    >>> KMedians(n_clusters=2, random_state=0).fit(X).cluster_centers_
    array([[0. , 0. ],
           [8. , 8.5]])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    _checks, _accepts, _lacks, _family = CHECKS, ACCEPTS, LACKS, HardCenters

    def _model(self, engine: Any) -> Medians:
        return Medians()

    def _plan(self, source: Source) -> Plan:
        return hard_plan(self, source, lambda sample, start: alternating(Medians(), sample, start, self.max_iter))
