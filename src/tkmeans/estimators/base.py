"""What all estimators with centres share: validation, seeding, restarts and prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tkmeans import engines, seeding
from tkmeans.estimators.running import CallbackSupportMixin, told_to_callbacks
from tkmeans.estimators.uncertainty import UncertaintyMixin
from tkmeans.estimators.validation import (
    check_choice,
    check_enough_rows,
    check_features_observed,
    check_integer,
    check_real,
    check_spread,
    checked_sample_weight,
    observed_features,
    warn_of_early_end,
    warn_of_empty_rows,
    warn_user,
)
from tkmeans.models import CenterModel
from tkmeans.models.dof import first_dof
from tkmeans.search import robust_search
from tkmeans.sources import ArraySource, Sample
from tkmeans.sources.frames import measure
from tkmeans.stats import Array, Block, Fit, Frame, Params

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


# A cluster below this fraction of the average size is reported.
TINY_CLUSTER = 0.02


class Start(NamedTuple):
    """Where one run of EM begins."""

    centers: Array  # (K, p) in the frame
    scale: float
    dof: float
    weights_differ: bool | None = None  # None if that is not known yet


class CenterEstimator(
    CallbackSupportMixin,
    UncertaintyMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
    ABC,
):
    """A scikit-learn clusterer whose clusters are centres."""

    # Set by __init__ of the final classes, with scikit-learn's meaning.
    n_clusters: int
    dof: float | str
    init: Any
    n_init: int | str
    max_iter: int
    tol: float
    accelerate: bool
    engine: str
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _check_params(self) -> None:
        """Complain about parameters that make no sense."""

    @abstractmethod
    def _run(self, source: ArraySource, start: Start) -> Fit:
        """EM from one start."""

    @abstractmethod
    def _merit(self, fit: Fit) -> float:
        """What decides between runs from several starts: the larger, the better."""

    @abstractmethod
    def _keep_distances(self, d2: Array, n_seen: Array, weight: Array | None) -> None:
        """Fitted attributes that follow from the training rows' squared distances to their centres."""

    @abstractmethod
    def _model(self) -> CenterModel:
        """The fitted model, to predict with."""

    # ---- fitting -----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to cluster. float32 stays float32; anything else becomes float64. NaN
            marks a missing value: a row counts with the features it has, exactly. A row that
            has none does not count, and a warning names it.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. A row of weight 2 is that row twice; a row
            of weight 0 takes no part, but is labelled.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_shared_params()
        self._check_params()
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        return self._fit_rows(X, checked_sample_weight(sample_weight, X))

    @told_to_callbacks
    def _fit_rows(self, X: Array, weight: Array | None) -> Self:
        """Find the clusters of rows that have been checked."""
        check_features_observed(X, weight, getattr(self, "feature_names_in_", None))
        check_enough_rows(self.n_clusters, X, weight)
        frame = measure(X, weight)
        check_spread(frame.unit)
        with self._source(X, weight, frame) as source:
            best = max((self._run(source, start) for start in self._starts(source)), key=self._merit)
        self._keep(best, frame, X.dtype)
        self.labels_, d2 = self._label_training_rows(X, weight, best.stats.n)
        self.inertia_ = float(np.sum(d2) if weight is None else d2 @ weight)
        n_seen = observed_features(X)
        self._keep_distances(d2, n_seen, weight)
        warn_of_empty_rows(n_seen)
        self._warn_of_tiny_clusters(weight)
        if not best.converged:
            warn_of_early_end(self)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the clusters of X and say which one each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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

    def _warn_of_tiny_clusters(self, weight: Array | None) -> None:
        """A centre that hardly any row claims sits on an outlier, most likely."""
        sizes = np.bincount(self.labels_, weights=weight, minlength=self.n_clusters)
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
        check_choice("engine", self.engine, engines.CHOICES)
        if self.n_init != "auto":
            check_integer("n_init", self.n_init, least=1)
        if isinstance(self.init, str):
            check_choice("init", self.init, SEEDINGS, hint=", an array of centres or a callable")

    def _source(self, X: Array, weight: Array | None, frame: Frame) -> ArraySource:
        return ArraySource(X, weight, frame, n_threads=effective_n_jobs(self.n_jobs))

    def _starts(self, source: ArraySource) -> Iterator[Start]:
        """As many starts as `n_init` asks for, one at a time."""
        rng = check_random_state(0 if self._init_is_array() else self.random_state)  # an array leaves nothing to chance
        size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * self.n_clusters)
        sample = seeding.canonical(seeding.complete(source.sample(size, rng), self.n_clusters))
        if len(sample.X) < self.n_clusters:
            warn_user(f"X has only {len(sample.X)} distinct rows for n_clusters={self.n_clusters}: some will be empty.")
        floor = SCALE_FLOOR[source.X.dtype.name]
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

    def _initial_centers(self, source: ArraySource, sample: Sample, rng: np.random.RandomState) -> Array:
        if isinstance(self.init, str):
            return SEEDINGS[self.init](sample, self.n_clusters, rng)
        centers = self.init(source.X, self.n_clusters, random_state=rng) if callable(self.init) else self.init
        centers = check_array(centers, dtype=np.float64, input_name="init")
        wanted = (self.n_clusters, source.X.shape[1])
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

    def _label_training_rows(self, X: Array, weight: Array | None, soft_sizes: Array) -> list[Array]:
        """Number the clusters by size; label every row just as `predict` would, and its squared distance."""
        self._number_clusters(np.round(soft_sizes))  # most often right, and then one look is enough
        rows = self._look(X, "label", "d2")
        if self._number_clusters(np.bincount(rows[0], weights=weight, minlength=self.n_clusters)):
            rows = self._look(X, "label", "d2")
        return rows

    # ---- predicting ----------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """Say how probable each cluster is for each row (eqn:tau).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to look at.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
            Non-negative; every row sums to 1.
        """
        X = self._checked(X)
        model, params, frame = self._fitted(X.dtype)
        kernel = model.kernel(params)
        return self._collect(X, frame, lambda block: [model.engine.memberships(block, params, kernel)])[0]

    def transform(self, X: Any) -> Array:
        """Measure the distance of each row to every centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to measure.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        X = self._checked(X)
        model, params, frame = self._fitted(X.dtype)
        distances = self._collect(X, frame, lambda block: [model.engine.distances(block, params)])[0]
        distances *= X.dtype.type(frame.unit)
        return distances

    def robust_weights(self, X: Any) -> Array:
        """Say how far each row is trusted: the sum over clusters of tau times u.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to look at.

        Returns
        -------
        weights : ndarray of shape (n_samples,)
            About 1 for an ordinary row, near 0 for an outlier.
        """
        return self._look(self._checked(X), "trust")[0]

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")

    def _look(self, X: Array, *fields: str) -> list[Array]:
        """Fields of `Rows` for every row of X under the fitted model, in the user's units."""
        model, params, frame = self._fitted(X.dtype)
        kernel = model.kernel(params)

        def look(block: Block) -> list[Array]:
            rows = model.engine.rows(block, params, kernel)._asdict()
            rows["d2"] = rows["d2"].astype(np.float64) * frame.unit**2
            rows["log_density"] -= np.asarray(observed_features(block.X) * np.log(frame.unit), dtype=X.dtype)
            return [rows[field] for field in fields]

        return self._collect(X, frame, look)

    def _collect(self, X: Array, frame: Frame, function: Callable[[Block], list[Array]]) -> list[Array]:
        """The arrays that `function` gives for each block, joined."""
        whole: list[Array] = []
        start = 0
        with self._source(X, None, frame) as source:
            for parts in source.map(function):
                whole = whole or [np.empty((len(X), *part.shape[1:]), part.dtype) for part in parts]
                for array, part in zip(whole, parts, strict=True):
                    array[start : start + len(part)] = part
                start += len(parts[0])
        return whole

    def _fitted(self, dtype: Any) -> tuple[CenterModel, Params, Frame]:
        """The fitted attributes as a model, in a frame that fits the centres and rows of `dtype`."""
        frame = Frame(np.median(self.cluster_centers_, axis=0).astype(dtype), float(np.sqrt(self.scale_)))
        centers = frame.enter(self.cluster_centers_.astype(np.float64))
        return self._model(), Params(centers, 1.0, self.dof_, np.log(self.cluster_weights_)), frame

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags
