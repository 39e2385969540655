"""What all estimators with centres share in fitting: validation, seeding and restarts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from tkmeans import engines
from tkmeans.estimators.longfit import Runs, TimeUp
from tkmeans.estimators.looking import Review, look, review, reviewed
from tkmeans.estimators.numbers import checked_points
from tkmeans.estimators.predicting import Predicting, label_column, to_user
from tkmeans.estimators.running import CallbackSupportMixin, told_to_callbacks
from tkmeans.estimators.validation import (
    check_choice,
    check_integer,
    check_n_jobs,
    check_real,
    check_spread,
    check_survey,
    warn_of_early_end,
    warn_of_empty_rows,
    warn_user,
)
from tkmeans.estimators.whole import Interrupted, all_or_nothing
from tkmeans.models.dof import first_dof
from tkmeans.search import TINY_CLUSTER, robust_search, seeding
from tkmeans.sources import ArraySource, Column, Sample, Source
from tkmeans.sources.base import to_numpy
from tkmeans.stats import Array, Fit, Frame, Params

SEEDINGS: dict[str, seeding.Seeding] = {
    "robust": seeding.kmeans_plusplus,  # where the native engine, which has the search, is missing
    "k-means++": seeding.kmeans_plusplus,
    "random": seeding.random_rows,
    "uniform": seeding.uniform,
}

# Rows that a seeding looks at: enough to see every cluster that is not tiny.
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER = 3000, 150

# The scale never falls below this fraction of the data's squared spread, where squared
# distances have no digits left.
SCALE_FLOOR = {"float64": 1e-20, "float32": 1e-10}


class Start(NamedTuple):
    """Where one run of EM begins."""

    centers: Array  # (K, p) in the frame
    scale: float
    dof: float
    weights_differ: bool | None = None  # None if that is not known yet


class CenterEstimator(CallbackSupportMixin, ClusterMixin, Predicting):
    """A scikit-learn clusterer whose clusters are centres."""

    # Set by __init__ of the final classes, with scikit-learn's meaning.
    dof: float | str
    init: Any
    n_init: int | str
    max_iter: int
    tol: float
    accelerate: bool
    random_state: Any
    verbose: int

    @abstractmethod
    def _check_params(self) -> None:
        """Complain about parameters that make no sense."""

    @abstractmethod
    def _run(self, source: Source, start: Start, runs: Runs) -> None:
        """EM from one start: one run, or more if there is a choice."""

    @abstractmethod
    def _merit(self, fit: Fit) -> float:
        """What decides between runs from several starts: the larger, the better."""

    def _keep_review(self, found: Review, rows: dict[str, Array], source: Source) -> None:
        """Fitted attributes that follow from the distances of the training rows; none here."""

    # What a fit keeps of every training row besides its label.
    _row_fields: tuple[str, ...] = ()

    # What the objective is, to the reader of a progress report.
    _objective: str = "objective"

    # ---- fitting -----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, resume: Any = None) -> Self:
        """Find the clusters of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or dask collection
            The rows to cluster. float32 stays float32; anything else becomes float64. NaN
            marks a missing value: a row counts with the features it has, exactly. A path names
            a .npy, Parquet, Feather or CSV file or a directory of them, which may be larger
            than memory (:class:`tkmeans.DataFile` chooses columns); a dask array or
            dataframe is visited where it is.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. A row of weight 2 is that row twice; a row
            of weight 0 takes no part, but is labelled.
        resume : path, default=None
            A checkpoint of the same fit, to go on from there. The result is the same, to the
            last bit, as if it had not been interrupted.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_shared_params()
        self._check_params()
        with all_or_nothing(self), self._open(X, sample_weight, reset=True) as source:
            return self._fit_source(source, resume)

    def _fit_rows(self, X: Array, weight: Array | None) -> Self:
        """Find the clusters of an array that has been checked."""
        with ArraySource(X, weight, n_threads=effective_n_jobs(self.n_jobs)) as source:
            return self._fit_source(source, None)

    @told_to_callbacks
    def _fit_source(self, source: Source, resume: Any) -> Self:
        """Find the clusters of a source whose features have been checked."""
        found = source.survey()
        check_survey(found, self.n_clusters, getattr(self, "feature_names_in_", None), source.dtype.name)
        source.frame = source.measure()
        check_spread(source.frame.unit, source.dtype.name)
        rng = check_random_state(0 if self._init_is_array() else self.random_state)  # an array leaves nothing to chance
        runs = Runs(self, source, rng, self._merit, resume)
        training = source.frame
        try:
            self._make_runs(source, runs)
            self._keep(runs.best(), training, source.dtype)
            self._review_training_rows(source, runs.best().stats.n)
        except KeyboardInterrupt:
            source.frame = training
            self._keep_what_there_is(runs, source)
            raise
        self._give_back(source)
        warn_of_empty_rows(found.n_empty, found.n_rows, found.first_empty)
        if not self.converged_:
            warn_of_early_end(self, time_is_up=runs.time_is_up)
        return self

    def _make_runs(self, source: Source, runs: Runs) -> None:
        """EM from every start, as long as there is time."""
        try:
            for start in self._starts(source, runs.rng):
                self._run(source, start, runs)
        except TimeUp:
            pass

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the clusters of X and say which one each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or dask collection
            The rows to cluster.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of each row's cluster.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def _keep_what_there_is(self, runs: Runs, source: Source) -> None:
        """After Ctrl-C: the best parameters so far, without another pass over the rows."""
        if not runs.has_any():
            return
        best = runs.best()
        self._keep(best, source.frame, source.dtype)
        self._number_clusters(np.round(best.stats.n))
        self._give_back(source)
        for name in ("labels_", "inertia_", "outlier_pvalues_", "_training_distances"):
            self.__dict__.pop(name, None)  # of an earlier fit
        checkpoint = getattr(self, "checkpoint", None)
        raise Interrupted(
            f"{type(self).__name__} was interrupted after {self.n_iter_} iterations. The best parameters so far are on "
            "the estimator, and predict works; labels_ and what else describes the training rows is missing"
            + ("." if checkpoint is None else f". fit(X, resume={str(checkpoint)!r}) goes on."),
            self,
        ) from None

    def _warn_of_tiny_clusters(self, sizes: Array) -> None:
        """A centre that hardly any row claims sits on an outlier, most likely."""
        tiny = np.flatnonzero((sizes > 0) & (sizes < TINY_CLUSTER * sizes.sum() / self.n_clusters))
        if len(tiny):
            named = ", ".join(f"{k} ({sizes[k]:g})" for k in tiny[:5]) + (", ..." if len(tiny) > 5 else "")
            warn_user(
                f"{len(tiny)} of {self.n_clusters} clusters hold hardly any of the {sizes.sum():g} rows: {named}. "
                "They may sit on outliers: try fewer clusters, another random_state or a larger n_init."
            )

    def _check_shared_params(self) -> None:
        check_integer("n_clusters", self.n_clusters, least=1)
        check_integer("max_iter", self.max_iter, least=1)
        check_real("tol", self.tol, positive=False)
        if getattr(self, "max_time", None) is not None:
            check_real("max_time", self.max_time, positive=True, hint=" of seconds or None")
        check_choice("engine", self.engine, engines.CHOICES)
        check_n_jobs(self.n_jobs)
        if self.n_init != "auto":
            check_integer("n_init", self.n_init, least=1)
        if isinstance(self.init, str):
            check_choice("init", self.init, SEEDINGS, hint=", an array of centres or a callable")

    def _starts(self, source: Source, rng: np.random.RandomState) -> Iterator[Start]:
        """As many starts as `n_init` asks for, one at a time."""
        size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * self.n_clusters)
        sample = seeding.canonical(seeding.complete(source.sample(size, rng), self.n_clusters))
        if len(sample.X) < self.n_clusters:
            warn_user(f"X has only {len(sample.X)} distinct rows for n_clusters={self.n_clusters}: some will be empty.")
        floor = SCALE_FLOOR[source.dtype.name]
        for _ in range(self._n_init()):
            if isinstance(self.init, str) and self.init == "robust" and engines.select("auto").NAME == "native":
                found = robust_search(sample, self.n_clusters, rng, None if self.dof == "estimate" else float(self.dof))
                yield Start(found.centers, max(found.scale, floor), found.dof, found.weights_differ)
            else:
                centers = self._initial_centers(source, sample, rng)
                scale = max(seeding.starting_scale(sample, centers), floor)
                yield Start(centers, scale, first_dof(sample.X.shape[1]))

    def _init_is_array(self) -> bool:
        return not isinstance(self.init, str) and not callable(self.init)

    def _n_init(self) -> int:
        if self._init_is_array():
            return 1
        if self.n_init == "auto":
            return 10 if callable(self.init) or self.init in ("random", "uniform") else 1
        return int(self.n_init)

    def _initial_centers(self, source: Source, sample: Sample, rng: np.random.RandomState) -> Array:
        if isinstance(self.init, str):
            return SEEDINGS[self.init](sample, self.n_clusters, rng)
        centers = self.init
        if callable(self.init):
            centers = self.init(source.example(sample), self.n_clusters, random_state=rng)
        centers = checked_points(to_numpy(centers), "init")
        wanted = (self.n_clusters, source.n_features)
        if centers.shape != wanted:
            raise ValueError(f"init must give centres of shape {wanted} (n_clusters, n_features), got {centers.shape}")
        return source.frame.enter(centers)

    # ---- from the frame to the user ------------------------------------------------

    def _keep(self, fit: Fit, frame: Frame, dtype: Any) -> None:
        """The fitted attributes, in the user's coordinates."""
        log_unit = np.log(frame.unit) * fit.stats.cells / np.sum(fit.stats.n)
        self._keep_params(fit.params, frame, dtype)
        self.lower_bounds_ = [value - log_unit for value in fit.history]
        self.lower_bound_ = self.lower_bounds_[-1]
        self.n_iter_ = len(fit.history) - 1
        self.converged_ = fit.converged

    def _keep_params(self, params: Params, frame: Frame, dtype: Any) -> None:
        self.cluster_centers_ = frame.leave(params.centers).astype(dtype)
        self.scale_ = params.scale * frame.unit**2
        self.dof_ = params.dof
        self.cluster_weights_ = np.exp(params.log_weights)

    def _number_clusters(self, sizes: Array) -> bool:
        """Largest first, ties by coordinates; whether that changed anything."""
        order = np.lexsort([*self.cluster_centers_.T[::-1], -sizes])
        self._reorder(order)
        return not np.array_equal(order, np.arange(len(order)))

    def _reorder(self, order: Array) -> None:
        """Number the clusters anew."""
        self.cluster_centers_ = self.cluster_centers_[order]
        self.cluster_weights_ = self.cluster_weights_[order]

    def _give_back(self, source: Source) -> None:
        """Arrays of the library that the rows came in."""
        self.cluster_centers_ = to_user(source, self.cluster_centers_)
        self.cluster_weights_ = to_user(source, self.cluster_weights_)

    def _visit_training_rows(self, source: Source, fields: tuple[str, ...], columns: list[Column]) -> Any:
        """Fields of all rows, and their review."""
        lens = self._lens(source)
        if not source.lazy:
            return source.collect(partial(review, lens, fields), columns)
        rows = [source.collect(partial(look, lens, (f,)), [c])[0][0] for f, c in zip(fields, columns, strict=True)]
        return rows, source.reduce(partial(reviewed, lens))

    def _review_training_rows(self, source: Source, soft_sizes: Array) -> None:
        """Number the clusters by size; label every row just as `predict` would."""
        training, source.frame = source.frame, self._fitted_frame(source.dtype)
        self._number_clusters(np.round(soft_sizes))  # most often right, and then one look is enough
        fields = ("label",) if source.lean else ("label", *self._row_fields)
        columns = [label_column(source), *(Column(name, np.float64) for name in fields[1:])]
        for last in (False, False, True):
            rows: Any = None  # not two sets of them, if there are many
            rows, found = self._visit_training_rows(source, fields, columns)
            if last or not self._number_clusters(found.sizes):  # rows between two clusters may change sides for ever
                break
        source.frame = training
        self.labels_, self.inertia_ = rows[0], found.inertia
        self._keep_review(found, dict(zip(fields[1:], rows[1:], strict=True)), source)
        self._warn_of_tiny_clusters(found.sizes)
