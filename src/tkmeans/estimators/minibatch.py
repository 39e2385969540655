"""MiniBatchTKMeans: t-k-means for rows that arrive in batches."""

from __future__ import annotations

from functools import partial
from typing import Any, Self, final

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from tkmeans.em import Plateau
from tkmeans.estimators.base import SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER, Start
from tkmeans.estimators.longfit import Runs
from tkmeans.estimators.looking import Review, review
from tkmeans.estimators.numbers import checked_rows
from tkmeans.estimators.running import run_em
from tkmeans.estimators.streams import Distances, Latest, Waiting, pull_variance
from tkmeans.estimators.student import StudentEstimator, n_rows_of
from tkmeans.estimators.validation import (
    check_integer,
    check_real,
    checked_sample_weight,
    warn_of_empty_rows,
)
from tkmeans.estimators.whole import all_or_nothing
from tkmeans.models import Stepwise, Tracked
from tkmeans.outliers import comparable, sketch
from tkmeans.sources import ArraySource, Batches, Column, Source
from tkmeans.stats import Array, Fit, Frame, Outcome, Params, Stats

# Rows that are fitted as a whole are fitted to the tolerance of TKMeans.
FIRST_TOL = 1e-6

# How many of the latest batches' log-likelihoods are kept.
LATEST_BATCHES = 1000


@final
class MiniBatchTKMeans(StudentEstimator):
    """Robust k-means for rows that arrive in batches, or are too many for one look at all of them.

    Use it like :class:`sklearn.cluster.MiniBatchKMeans`. The model is that of
    :class:`TKMeans`, the degrees of freedom included; it is learned by stepwise EM: of rows
    that have gone by only a few sums are kept, and these fade with time.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    dof : "estimate" or float, default="estimate"
        The degrees of freedom nu: how heavy the tails are. See :class:`TKMeans`.
    cluster_weights : {"auto", "equal", "estimate"}, default="auto"
        Whether clusters are equally probable beforehand. "auto" decides on the first rows.
    init : {"robust", "k-means++", "random", "uniform"}, array or callable, default="robust"
        Where to begin. See :class:`TKMeans`.
    n_init : "auto" or int, default="auto"
        How many starts to try; the best is kept.
    init_size : int, default=None
        So many rows are fitted as a whole before the first batch (and all, if a batch holds
        them), and :meth:`partial_fit` keeps rows until there are so many. None is as many as
        the search for a start looks at: 3000, or 150 for each cluster if that is more.
    batch_size : int, default=1024
        The rows of a batch, in :meth:`fit`. In a stream, the rows after which what counts
        as recent (`center_drift_` and the like) counts half.
    max_iter : int, default=100
        The most passes over X in :meth:`fit`.
    tol : float, default=1e-3
        The gain in log-likelihood per row that is too small to go on for.
    max_no_improvement : int, default=10
        :meth:`fit` ends when so many batches are on average no more likely, by `tol`, than
        as many before them. None compares whole passes over X.
    half_life : float, default=None
        For streams that change: the number of rows after which a row counts half. None
        forgets only as the stream grows: a row that came when it was half as long counts half.
    engine : {"auto", "native", "reference"}, default="auto"
        The code that visits the rows.
    n_jobs : int, default=None
        Threads to use, as elsewhere in scikit-learn. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Makes the start, and the batches of :meth:`fit`, reproducible.
    verbose : int, default=0
        Print every iteration if positive.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres mu. Clusters are numbered by size, the largest first; in a stream they
        keep the numbers that they have after `init_size` rows.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row of X, or of the last batch.
    inertia_ : float
        The weighted sum of squared distances to the nearest centre, of X or the last batch.
    outlier_pvalues_ : ndarray of shape (n_samples,)
        How probable a distance at least this large is for a row of the nearest cluster, for
        X or the last batch.
    scale_ : float
        The squared scale alpha that all clusters share.
    dof_ : float
        The degrees of freedom nu.
    cluster_weights_ : ndarray of shape (n_clusters,)
        The probability of each cluster.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        How many rows are remembered of each cluster; rows that fade count in part.
    lower_bound_ : float
        The log-likelihood per row, over all that is remembered.
    lower_bounds_ : list of float
        The log-likelihood per row of every batch (in a stream: of the last 1000), each
        judged before it was learned from.
    recent_sizes_ : ndarray of shape (n_clusters,)
        How many recent rows each cluster has.
    center_drift_ : ndarray of shape (n_clusters,)
        How far one look at recent rows would move each centre (with heavy tails somewhat less
        than they have moved). 0 after :meth:`fit`.
    drift_pvalues_ : ndarray of shape (n_clusters,)
        How probable a drift at least this large is if nothing has changed.
    n_iter_ : int
        Passes over X in :meth:`fit`.
    n_steps_ : int
        Batches learned from.
    n_samples_seen_ : int
        Rows given so far.
    converged_ : bool
        Whether :meth:`fit` ended before `max_iter`.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had some.

    See Also
    --------
    TKMeans : All rows in every iteration: exact, and quick up to millions of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import MiniBatchTKMeans
    >>> from tkmeans.datasets import make_contaminated
    >>> X, y = make_contaminated(20000, n_clusters=3, outlier_fraction=0.1, random_state=0)
    >>> X = X[np.random.default_rng(0).permutation(len(X))]
    >>> model = MiniBatchTKMeans(n_clusters=3, random_state=0)
    >>> for batch in np.array_split(X, 20):
    ...     model = model.partial_fit(batch)
    >>> model.cluster_centers_.shape, model.n_samples_seen_
    ((3, 2), 22000)
    """

    accelerate = True  # of the EM on the first rows

    _frame: Frame
    _tracked: Tracked
    _waiting: Waiting | None
    _latest: Latest
    _latest_distances: Distances

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        dof: float | str = "estimate",
        cluster_weights: str = "auto",
        init: Any = "robust",
        n_init: int | str = "auto",
        init_size: int | None = None,
        batch_size: int = 1024,
        max_iter: int = 100,
        tol: float = 1e-3,
        max_no_improvement: int | None = 10,
        half_life: float | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.dof = dof
        self.cluster_weights = cluster_weights
        self.init = init
        self.n_init = n_init
        self.init_size = init_size
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.half_life = half_life
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("batch_size", self.batch_size, least=1)
        if self.init_size is not None:
            check_integer("init_size", self.init_size, least=1)
        if self.max_no_improvement is not None:
            check_integer("max_no_improvement", self.max_no_improvement, least=1)
        if self.half_life is not None:
            check_real("half_life", self.half_life, positive=True, hint=" of rows, or None")

    # ---- all rows at hand ------------------------------------------------------------

    def _fit_source(self, source: Source, resume: Any) -> Self:
        if not isinstance(source, ArraySource):
            raise TypeError(
                "MiniBatchTKMeans takes batches from arrays in memory; hand the blocks of larger data to partial_fit, "
                "or fit TKMeans, which reads files and dask collections"
            )
        if resume is not None:
            raise TypeError("MiniBatchTKMeans writes no checkpoints to resume from; go on with partial_fit")
        super()._fit_source(source, resume)
        self.n_steps_ = self.n_iter_
        self.n_samples_seen_ = source.n_rows
        counted = source.n_rows if source.weight is None else int(np.count_nonzero(source.weight))
        if self._takes_batches(counted):
            batches_per_pass = -(-counted // self.batch_size)
            self.n_iter_ = -(-self.n_steps_ // batches_per_pass)
        self._keep_drift()
        return self

    def _run(self, source: Source, start: Start, runs: Runs) -> None:
        """EM over the first rows, and then over one batch after another."""
        assert isinstance(source, ArraySource)
        counted = np.arange(source.n_rows) if source.weight is None else np.flatnonzero(source.weight)
        if not self._takes_batches(len(counted)):
            self._climb(source, start, FIRST_TOL, runs)
            return
        n_first = self._n_first()
        order = check_random_state(self.random_state).permutation(counted)
        with source.part(order[:n_first]) as first:
            first_runs = Runs(self, first, runs.rng, self._merit, None)
            self._climb(first, start, FIRST_TOL, first_runs)
        begun = first_runs.best()
        batches = Batches(source, np.roll(order, -n_first), self.batch_size)
        run = run_em(
            self,
            batches,
            self._stepwise(source, n_rows_of(source), begun.params),
            Tracked(begun.params, begun.stats, begun.stats.total),
            stop=Plateau(self.tol, times=self.max_no_improvement or batches.per_pass),
            max_iter=self.max_iter * batches.per_pass,
        )
        params, memory, _ = run.params
        scaled = memory.faded(source.total / memory.total)
        runs.keep(Outcome(params, scaled, run.history, run.n_passes, run.converged))

    def _keep_what_there_is(self, runs: Runs, source: Source) -> None:
        """After Ctrl-C: nothing, because a stream cannot go on from parameters alone."""

    def _takes_batches(self, n_rows: int) -> bool:
        return n_rows > max(self._n_first(), self.batch_size)

    def _n_first(self) -> int:
        if self.init_size is not None:
            return max(self.init_size, self.n_clusters)
        return max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * self.n_clusters)

    def _stepwise(self, source: Source, n_rows: float, params: Params) -> Stepwise:
        weights_differ = {"equal": False, "estimate": True, "auto": bool(np.ptp(params.log_weights) > 1e-12)}
        want_entropy = self.cluster_weights == "auto" and self._n_init() > 1
        student = self._student(source, n_rows, weights_differ[self.cluster_weights], want_entropy=want_entropy)
        return Stepwise(model=student, half_life=self.half_life)

    # ---- batch by batch ----------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of rows.

        The first rows are kept, and searched for clusters anew whenever there are twice as
        many, until `init_size` of them have come. From then on a batch is looked at once
        and forgotten; after :meth:`fit` that is so at once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, as many as you like. NaN marks a missing value.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : object
            The estimator. It is fitted once there are `n_clusters` rows, and a value of
            every feature.
        """
        self._check_shared_params()
        self._check_params()
        with all_or_nothing(self):
            return self._partial_fit(X, sample_weight)

    def _partial_fit(self, X: Any, sample_weight: Any) -> Self:
        first = not hasattr(self, "n_features_in_")
        X = checked_rows(self, X, reset=first, dtype=[np.float64, np.float32], missing=True)
        weight = checked_sample_weight(sample_weight, X)
        waiting: Waiting | None = getattr(self, "_waiting", None)
        if waiting is None and self.__sklearn_is_fitted__():
            self._learn(X, weight)
        else:
            self._gather(waiting, X, weight)
        return self

    def _gather(self, waiting: Waiting | None, X: Array, weight: Array | None) -> None:
        """Keep the first rows; search them when it is time, and learn from the new ones otherwise."""
        weights = np.ones(len(X)) if weight is None else weight
        waiting = Waiting(X, weights) if waiting is None else waiting.joined(X, weights)
        enough = waiting.counted >= self._n_first()
        if enough or (waiting.counted >= 2 * waiting.searched and waiting.can_start(self.n_clusters)):
            self._fit_rows(waiting.X, waiting.weight.astype(waiting.X.dtype))
            self._describe(X, weight)
            waiting = waiting._replace(searched=waiting.counted)
        elif waiting.searched:
            self._learn(X, weight)
        self._waiting = None if enough else waiting

    def _learn(self, X: Array, weight: Array | None) -> None:
        """One step of stepwise EM."""
        if self.n_clusters != len(self.cluster_centers_):
            was = len(self.cluster_centers_)
            raise ValueError(f"n_clusters={self.n_clusters}, but the stream has {was} clusters; begin anew with fit")
        X = X.astype(np.promote_types(X.dtype, self.cluster_centers_.dtype), copy=False)
        before = self._tracked
        remembered = max(before.rows, self.n_samples_seen_) * before.memory.total / before.rows
        with self._source(X, weight, self._frame) as source:
            model = self._stepwise(source, remembered, before.params)
            stats = source.reduce(model.e_step(before))
            variance = sum(source.map(partial(pull_variance, model=model.model, params=before.params)))
        self._latest = self._latest.after(stats, variance, self.batch_size)
        self._tracked = model.m_step(stats, before)
        self._keep_params(self._tracked.params, self._frame, X.dtype)
        self.lower_bounds_ = [*self.lower_bounds_, self._per_row(stats)][-LATEST_BATCHES:]
        self.n_steps_ += 1
        self.n_samples_seen_ += len(X)
        self._keep_drift()
        self._latest_distances = self._latest_distances.then(self._describe(X, weight))
        d2, n_seen_each, weights = self._latest_distances
        self._training_distances = sketch(*comparable(d2, n_seen_each, self.n_features_in_, weights))

    def _describe(self, X: Array, weight: Array | None) -> Distances:
        """Keep the fitted attributes that are about the rows of one batch; their squared distances."""
        columns = [Column("cluster", np.int64), *(Column(name, np.float64) for name in self._row_fields)]
        with self._source(X, weight, self._fitted_frame(X.dtype)) as source:
            rows, found = source.collect(partial(review, self._lens(source), ("label", *self._row_fields)), columns)
            seen = source.survey()
        self.labels_, self.outlier_pvalues_, d2, n_seen = rows
        self.inertia_ = found.inertia
        warn_of_empty_rows(seen.n_empty, seen.n_rows, seen.first_empty)
        return Distances.of(d2, n_seen, weight)

    def _source(self, X: Array, weight: Array | None, frame: Frame) -> ArraySource:
        return ArraySource(X, weight, frame, n_threads=effective_n_jobs(self.n_jobs))

    # ---- what is kept ------------------------------------------------------------------

    def _keep(self, fit: Fit, frame: Frame, dtype: Any) -> None:
        super()._keep(fit, frame, dtype)
        self._frame = frame
        self._tracked = Tracked(fit.params, fit.stats, fit.stats.total)
        self._latest = Latest.nothing(fit.stats)
        self._waiting = None

    def _reorder(self, order: Array) -> None:
        super()._reorder(order)
        params, memory, rows = self._tracked
        params = params._replace(centers=params.centers[order], log_weights=params.log_weights[order])
        self._tracked = Tracked(params, memory.take(order), rows)

    def _keep_drift(self) -> None:
        self.lower_bound_ = self._per_row(self._tracked.memory)
        self.cluster_sizes_ = self._tracked.memory.n
        self.recent_sizes_ = self._latest.stats.n
        self.center_drift_ = np.linalg.norm(self._latest.shifts(), axis=1) * self._frame.unit
        self.drift_pvalues_ = self._latest.pvalues()

    _row_fields = ("pvalue", "d2", "n_seen")

    def _keep_review(self, found: Review, rows: dict[str, Array], source: Source) -> None:
        super()._keep_review(found, rows, source)
        self._latest_distances = Distances.of(rows["d2"], rows["n_seen"], source.weight)

    def _per_row(self, stats: Stats) -> float:
        """The log-likelihood per row, in the user's units."""
        return float(stats.objective - stats.cells * np.log(self._frame.unit)) / stats.total

    # ---- whether there is a model yet -----------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    def _checked(self, X: Any, method: str, sample_weight: Any = None) -> Source:
        waiting = getattr(self, "_waiting", None)
        if waiting is not None and not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"the {waiting.counted} rows so far are too few for n_clusters={self.n_clusters}, or have no value of "
                "some feature; go on with partial_fit"
            )
        return super()._checked(X, method, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags
