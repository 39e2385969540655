"""MiniBatchTKMeans: t-k-means for rows that arrive in batches."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self, final

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from tkmeans.docstrings import documented
from tkmeans.em import Plateau, em
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import Clusterer, Floats, transaction
from tkmeans.estimators.inputs import Accepts, checked_rows, in_memory
from tkmeans.estimators.stream_state import Distances, Stream, Waiting
from tkmeans.estimators.tkmeans import climbs, distances_kept, student, student_merit, student_plan
from tkmeans.fit_warnings import warn_of_empty_rows, warn_user
from tkmeans.fitted import Clusters, FittedModel, Sketch, Training
from tkmeans.fitting.restarts import Plan, Run, best_run
from tkmeans.fitting.starts import SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER, Start, n_starts, starts
from tkmeans.models import Stepwise, Student, Tracked
from tkmeans.models.dof import BOUNDS
from tkmeans.sources import ArraySource, Batches, Source
from tkmeans.stats import Array, Fit, Outcome, Params

# Rows that are fitted as a whole are fitted to the tolerance of TKMeans, or by default the first ones are.
FIRST_TOL, SHARE_OF_TOL = 1e-6, 1e-3

NOT_IN_MEMORY = "MiniBatchTKMeans takes batches from arrays in memory, of NumPy or SciPy; hand the blocks of larger "
NOT_IN_MEMORY += "data to partial_fit, or fit TKMeans, which reads files and dask collections"

_half_life = validation.optional(partial(validation.check_real, positive=True, hint=" of rows, or None"))


@final
@documented("batches_*", "stream_*", "engine", "agreement_", "n_features_in_")
class MiniBatchTKMeans(Clusterer, ClusterMixin, BaseEstimator):
    """Robust k-means for rows that arrive in batches, or are too many for one look at all of them.

    Use it like :class:`sklearn.cluster.MiniBatchKMeans`. The model is that of :class:`TKMeans`, learned by stepwise
    EM: of rows that have gone by only a few sums are kept, and these fade with time.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres mu. Clusters are numbered by size, the largest first; in a stream, as after `init_size` rows.

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

    cluster_centers_: Floats
    inertia_: float
    _checks = validation.SHARED | validation.STUDENT | {"batch_size": validation.at_least_one, "half_life": _half_life}
    _checks |= dict.fromkeys(("init_size", "max_no_improvement"), validation.optional(validation.at_least_one))
    _checks |= {"verbose": validation.check_verbose, "compute_labels": validation.check_switch}
    _accepts = Accepts(array_api=False, refusal=NOT_IN_MEMORY)
    _objective = "log-likelihood"
    _interruptible = False  # a stream cannot go on from parameters alone

    _stream: Stream
    _waiting: Waiting | None

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
        compute_labels: bool = True,
        reassignment_ratio: float = 0.01,
    ) -> None:
        self._keep(locals())

    def _model(self, engine: Any) -> Student:
        return Student(engine=engine, estimate_dof=self.dof == "estimate")

    # ---- all rows at hand ------------------------------------------------------------

    def _plan(self, source: Any) -> Plan:
        if self.init_size is not None and self.init_size < self.n_clusters:
            few = f"init_size={self.init_size} should be larger than n_clusters={self.n_clusters}"
            warn_user(f"{few}; as many rows as there are clusters are taken.", RuntimeWarning)
        fields = ("pvalue", "d2", "n_observed")
        return student_plan(self, source, partial(self._runs, source), extras=self._stream_after, fields=fields)

    def _runs(self, source: ArraySource, rng: np.random.RandomState) -> Iterator[Run]:
        """From every start EM over the rows or, if they are many, over the first ones and then over batches."""
        counted = np.arange(source.n_rows) if source.weight is None else np.flatnonzero(source.weight)
        for start in starts(self, source, None if self.dof == "estimate" else float(self.dof), rng):
            if self._takes_batches(len(counted)):
                yield partial(self._run_batches, source, counted, start)
            else:
                yield from climbs(self, source, start, tol=SHARE_OF_TOL * self.tol, accelerate=True)

    def _run_batches(self, source: Any, counted: Array, start: Start, *, observers: list[Any], resume: None) -> Fit:
        n_first = self._n_first()
        order = check_random_state(self.random_state).permutation(counted)
        with source.part(order[:n_first]) as first:
            runs = list(climbs(self, first, start, tol=FIRST_TOL, accelerate=True))
            begun = best_run(lambda _: iter(runs), student_merit(self), check_random_state(0), observers)
        if begun.interrupted:
            raise begun.interrupted
        batches = Batches(source, np.roll(order, -n_first), self.batch_size)
        model = self._stepwise(source, max(source.n_rows, source.total), begun.params)
        begin = Tracked(begun.params, begun.stats, begun.stats.total)
        stop = Plateau(self.tol, times=int(self.max_no_improvement or batches.per_pass))
        run = em(batches, model, begin, stop=stop, max_iter=int(self.max_iter) * batches.per_pass, observers=observers)
        params, memory, _ = run.params
        return Outcome(params, memory.faded(source.total / memory.total), *run[2:])

    def _stream_after(self, training: Training, fit: Fit, source: ArraySource, found: dict[str, Any]) -> dict[str, Any]:
        """What is kept of a fit besides what all estimators keep."""
        kept = Distances.of(training.rows["d2"], training.rows["n_observed"], source.weight)
        stream = Stream.after_fit(fit, training.order, source, kept, found["lower_bounds_"])
        found = distances_kept(training, fit, source, found) | stream.attributes() | {"_waiting": None}
        if self._takes_batches(source.n_counted):
            found["n_iter_"] = -(-stream.n_steps // -(-source.n_counted // int(self.batch_size)))  # in passes
        return found

    def _takes_batches(self, n_rows: int) -> bool:
        return n_rows > max(self._n_first(), self.batch_size)

    def _n_first(self) -> int:
        usual = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * int(self.n_clusters))
        return usual if self.init_size is None else int(max(self.init_size, self.n_clusters))

    def _stepwise(self, source: Source, n_rows: float, params: Params) -> Stepwise:
        weights_differ = {"equal": False, "estimate": True, "auto": bool(np.ptp(params.log_weights) > 1e-12)}
        want_entropy = self.cluster_weights == "auto" and n_starts(self.init, self.n_init) > 1
        model = student(self, source, n_rows, weights_differ[self.cluster_weights], want_entropy=want_entropy)
        return Stepwise(model=model, half_life=self.half_life)

    # ---- batch by batch ----------------------------------------------------------------

    @documented("y", returns="self : object\n    Fitted once there are `n_clusters` rows, and every feature was seen.")
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of rows.

        The first rows are kept, and searched for clusters anew whenever there are twice as many, until `init_size` of
        them have come. From then on a batch is looked at once and forgotten; after :meth:`fit` that is so at once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, as many as you like. NaN marks a missing value.
        """
        validation.check_params(self, self._checks)
        with transaction(self):
            X, weight = checked_rows(self, X, sample_weight, reset=not hasattr(self, "n_features_in_"), single=True)
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
            with in_memory(self, waiting.X, waiting.weight.astype(waiting.X.dtype)) as source:
                self._fit_source(source)
            found, _ = self._described(self._fitted_model, X, weight)
            waiting = waiting._replace(searched=waiting.counted)
            stream = self._stream._replace(n_rows=self._stream.n_rows + waiting.repeated, n_steps=waiting.n_batches)
            self.__dict__ |= found | stream.attributes()
            if enough and len(np.unique(self._fitted_model.params.centers, axis=0)) < self.n_clusters:
                waiting, enough = waiting.halved(), False  # of equal rows nothing can be learned
        elif waiting.searched:
            self._learn(X, weight)
        self._waiting = None if enough else waiting
        few = f"the {waiting.counted} rows so far are too few for n_clusters={self.n_clusters}"
        self._not_fitted = f"{few}, or have no value of some feature; go on with partial_fit"

    def _learn(self, X: Array, weight: Array | None) -> None:
        """One step of stepwise EM, published as a whole."""
        if not hasattr(self, "_stream"):
            lost = "a model file does not hold what a stream remembers"
            raise NotFittedError(f"{lost}; begin anew with fit, or pickle it")
        known, K = self._fitted_model.params, self.n_clusters_
        if self.n_clusters != K:
            raise ValueError(f"n_clusters={self.n_clusters}, but the stream has {K} clusters; begin anew with fit")
        X = X.astype(np.promote_types(X.dtype, known.centers.dtype), copy=False)
        stream, last = self._stream, self._stream.tracked.params  # of which the settings may fix some by now
        last = last._replace(dof=last.dof if self.dof == "estimate" else float(self.dof))
        if self.cluster_weights == "equal":
            last = last._replace(log_weights=np.full_like(last.log_weights, -np.log(len(last.log_weights))))
        stream = stream._replace(tracked=stream.tracked._replace(params=last))
        with in_memory(self, X, weight, stream.frame) as source:
            lifted = source.array_library == "scipy.sparse" and known.dof > BOUNDS[1]  # of very many columns
            source.least_dof = known.dof if lifted else 0.0
            stream = stream.learn(source, self._stepwise(source, stream.remembered, last), self.batch_size)
        params = Clusters.leaving(Outcome(*stream.tracked[:2], [], 0, False), stream.frame, X.dtype).params
        fitted = FittedModel(self._model(None), params, params.frame(X.dtype))
        found, distances = self._described(fitted, X, weight)
        found |= stream._replace(distances=stream.distances.then(distances)).attributes()
        found |= {name: vars(self)[name] for name in ("n_iter_", "converged_", "_waiting")}
        self.__dict__.pop("_training_distances", None)
        self._publish(fitted, found)

    def _described(self, fitted: FittedModel, X: Array, weight: Array | None) -> tuple[dict[str, Any], Distances]:
        """The fitted attributes that are about the rows of one batch, and their distances."""
        with in_memory(self, X, weight, fitted.frame) as source:
            fitted = replace(fitted, model=self._model(self._engine(source)))
            blocks = list(source.map(lambda block: fitted.fields(block, "z", "n_observed", "d2", "label")))
        _, n_observed, d2, label = map(np.concatenate, zip(*blocks, strict=True))
        if len(empty := np.flatnonzero(n_observed == 0)):
            warn_of_empty_rows(len(empty), len(d2), empty[:5].tolist())
        found = {"labels_": label, "inertia_": float(np.sum(d2) if weight is None else d2 @ weight)}
        self.__dict__.pop("outlier_pvalues_", None)
        return found | {"_outlier_pvalues": [block[:2] for block in blocks]}, Distances.of(d2, n_observed, weight)

    @cached_property
    def outlier_pvalues_(self) -> Floats:
        """Of the rows of the last batch; after :meth:`fit`, those of its rows take the place of this."""
        return np.concatenate([self._fitted_model.pvalues(*block) for block in self._outlier_pvalues])

    @cached_property
    def _training_distances(self) -> Sketch:
        """Of the latest rows of a stream; after :meth:`fit`, those of its rows take the place of this."""
        return self._stream.distances.sketch(self.n_features_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")
