"""FastTKMeans: the paper's fast t-k-means and fast t-k-means++."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tkmeans import engines
from tkmeans.em import SmallMove
from tkmeans.estimators.base import SCALE_FLOOR, CenterEstimator, Start
from tkmeans.estimators.running import run_em
from tkmeans.estimators.validation import check_real, checked_sample_weight
from tkmeans.models import Fast
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Fit, Params


@final
class FastTKMeans(CenterEstimator):
    """Fast t-k-means: the limit of t-k-means for a vanishing scale, as published.

    The memberships are those of fuzzy c-means with m = 1 + 2 / (dof + n_features). It
    finds good centres from poor starts on clean data, but far rows belong to all
    clusters alike and pull every centre: for data with outliers use
    ``TKMeans(dof=1.0)``, which is as quick.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    dof : float, default=1.0
        The degrees of freedom nu, which is not estimated.
    init : {"k-means++", "robust", "random", "uniform"}, array or callable, default="k-means++"
        Where to begin. With "k-means++" this is the paper's fast t-k-means++, with
        "uniform" its fast t-k-means.
    n_init : "auto" or int, default="auto"
        How many starts to try; the one with the least inertia is kept. "auto" is 10 for
        "random", "uniform" and a callable, and 1 otherwise.
    max_iter : int, default=300
        The most iterations of one run.
    tol : float, default=1e-4
        A run ends when the centres move by less than this fraction of the data's spread.
    engine : {"auto", "native", "reference"}, default="auto"
        The code that visits the rows.
    n_jobs : int, default=None
        Threads to use, as elsewhere in scikit-learn. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Makes the start reproducible.
    verbose : int, default=0
        Print every iteration if positive.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres mu. Clusters are numbered by size, the largest first.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.
    inertia_ : float
        The weighted sum of squared distances to the nearest centre.
    scale_ : float
        The tiny number that stands for the vanishing scale and keeps a distance of 0 finite.
    dof_ : float
        The degrees of freedom nu.
    cluster_weights_ : ndarray of shape (n_clusters,)
        All equal.
    lower_bound_ : float
        The last value of what the memberships maximise; steps need not raise it.
    lower_bounds_ : list of float
        That value at the start and after every iteration.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether the best run ended before `max_iter`.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had some.

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
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.dof = dof
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        check_real("dof", self.dof, positive=True, hint=" (1.0 in the paper; TKMeans can estimate it)")

    def _run(self, source: ArraySource, start: Start) -> Fit:
        equal = np.full(self.n_clusters, -np.log(self.n_clusters))
        params = Params(start.centers, SCALE_FLOOR[source.X.dtype.name], float(self.dof), equal)
        stop = SmallMove(self.tol)
        return run_em(self, source, self._model(), params, stop=stop, max_iter=self.max_iter)

    def _merit(self, fit: Fit) -> float:
        """Against the sum of squared distances, weighted by the memberships."""
        return -float(np.sum(fit.stats.wd2))

    def _model(self) -> Fast:
        return Fast(engine=engines.select(self.engine))

    def _keep_distances(self, d2: Array, n_seen: Array, weight: Array | None) -> None:
        pass

    def predict(self, X: Any) -> Array:
        """Say which cluster each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of the most probable cluster.
        """
        return self._look(self._checked(X), "label")[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the negative inertia of the rows, as KMeans does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        score : float
            Minus the weighted sum of squared distances to the nearest centre.
        """
        check_is_fitted(self)
        X = self._checked(X)
        weight = checked_sample_weight(sample_weight, X)
        (d2,) = self._look(X, "d2")
        return -float(np.sum(d2) if weight is None else d2 @ weight)
