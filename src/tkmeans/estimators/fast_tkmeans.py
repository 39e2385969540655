"""FastTKMeans: fast t-k-means by the rule of the authors' code."""

from collections.abc import Iterator
from functools import partial
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from tkmeans.docstrings import documented
from tkmeans.em import SmallMove, em
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import NO_DENSITY, Clusterer, Floats
from tkmeans.estimators.inputs import measure
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.fitting.starts import SCALE_FLOOR, starts
from tkmeans.models import Fast
from tkmeans.sources import Source
from tkmeans.stats import Params


@final
@documented("engine", "max_time", "verbose", "cluster_centers_", "labels_", "dof_", "agreement_", "n_iter_")
@documented("fast_*", "n_features_in_")
class FastTKMeans(Clusterer, ClusterMixin, BaseEstimator):
    """Fast t-k-means: the rule of the authors' code for a vanishing scale.

    The limit in the paper's equations cannot be run, because its centres fall onto rows. The memberships are those of
    fuzzy c-means with m = 1 + 2 / (dof + n_features). It finds good centres from poor starts on clean data, but far
    rows belong to all clusters alike and pull every centre: for outliers use ``TKMeans(dof=1.0)``, which is as quick.

    See Also
    --------
    TKMeans : With the scale estimated: robust, and with a density.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import FastTKMeans
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [8, 8], [8, 9], [9, 8]])
    >>> FastTKMeans(n_clusters=2, random_state=0).fit_predict(X)
    array([0, 0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        dof: float = 1.0,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        engine: str = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    cluster_centers_: Floats
    inertia_: float
    _checks = validation.SHARED | validation.LONG_FITS
    _checks |= {"dof": partial(validation.check_fixed_dof, hint=" (1.0 in the paper; TKMeans can estimate it)")}
    _lacks = NO_DENSITY

    def _plan(self, source: Source) -> Plan:
        measure(source)
        # The best has the least sum of squared distances, weighted by the memberships.
        return Plan(partial(self._runs, source), lambda fit: -float(np.sum(fit.stats.wd2)))

    def _model(self, engine: Any) -> Fast:
        return Fast(engine=engine)

    def _runs(self, source: Source, rng: np.random.RandomState) -> Iterator[Run]:
        model = self._model(self._engine(source))
        equal = np.full(self.n_clusters, -np.log(int(self.n_clusters)))
        for start in starts(self, source, float(self.dof), rng):
            params = Params(start.centers, SCALE_FLOOR[source.dtype.name], float(self.dof), equal)
            yield partial(em, source, model, params, stop=SmallMove(self.tol), max_iter=self.max_iter)
