"""The base class of all estimators: fit, predict, densities and outliers, on a `FittedModel`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tkmeans import engines, fit_warnings
from tkmeans.atomic import check_not_input, mapped_file
from tkmeans.docstrings import documented
from tkmeans.em import Observer
from tkmeans.estimators.inputs import Accepts, check_survey, measure, open_rows
from tkmeans.estimators.notebook_view import html_repr, mimebundle
from tkmeans.estimators.validation import Check, check_choice, check_integer, check_params, check_path, check_real
from tkmeans.fit_warnings import warn_of_tiny_clusters
from tkmeans.fitted import Clusters, Evidence, FittedModel, by_size
from tkmeans.fitting.checkpoints import Checkpoint, fingerprint, resuming
from tkmeans.fitting.observers import Checkpointer, TimeLimit, Verbose, sklearn_callbacks
from tkmeans.fitting.restarts import Plan, best_run
from tkmeans.outliers import OutlierModel, astray, has_noise, labels_of, noise_of, strays_of, warn_of_clumps
from tkmeans.sources import Answer, ArraySource, Column, Source, TensorSource
from tkmeans.sources.arrays import write_parquet
from tkmeans.sources.base import out_of_bounds, to_numpy
from tkmeans.sources.sparse import SparseSource
from tkmeans.stats import Array, Block

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """There are no callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        """There are no callbacks to end."""
        return method


F = TypeVar("F", bound=Callable[..., Any])
_READY: WeakKeyDictionary[FittedModel, FittedModel] = WeakKeyDictionary()  # with an engine, to answer again

NO_DENSITY = frozenset({"score_samples", "aic", "bic", "icl", "sample"})  # what is lacking where there is none
NO_DENSITY |= {"outliers", "outlier_pvalues", "noise_probability"}
# Questions that leave out bad cells. How probable a row is, and whether it is an outlier, is asked of the whole row.
FORGIVING = ("label", "memberships", "distances", "entropy", "trust")

# Of NumPy for rows in memory; for other rows their library's, and for those in a file its path.
Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]


def unless_lacking(method: F) -> F:
    """Decorate a method that only some estimators have; the others name it in `_lacks`."""
    return available_if(lambda estimator: method.__name__ not in estimator._lacks)(method)


class Clusterer(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn estimator as a face on a `FittedModel`: parameters, a docstring and a plan make a final one."""

    _checks: ClassVar[Mapping[str, Check]]  # of the parameters
    _accepts: ClassVar[Accepts] = Accepts()
    _lacks: ClassVar[frozenset[str]] = frozenset()  # methods of this class that make no sense for the estimator
    _family: ClassVar[Any] = Clusters  # the record of the parameters, see `tkmeans.fitted`
    _numbered_by_rows: ClassVar[bool] = True  # rather than by the sizes of the fit
    _size: ClassVar[str] = "n_clusters"  # the parameter that K is
    _objective: ClassVar[str] = "objective"  # to the reader of a progress report
    _interruptible: ClassVar[bool] = True  # whether Ctrl-C leaves the best parameters so far
    _not_fitted: str | None = None  # why there is no model yet, in place of scikit-learn's message

    labels_: Labels
    n_iter_: int
    n_features_in_: int
    _fitted_model: FittedModel
    _published: frozenset[str]
    _html_repr = _repr_html_inner = html_repr
    _repr_mimebundle_ = mimebundle

    def _keep(self, given: dict[str, Any]) -> None:
        """Keep the parameters of `__init__`, unchanged and under their names, as scikit-learn wants it."""
        self.__dict__.update({name: value for name, value in given.items() if name not in ("self", "__class__")})

    @abstractmethod
    def _model(self, engine: Any) -> Any:
        """The model to answer with."""

    @abstractmethod
    def _plan(self, source: Source) -> Plan:
        """What to try on these rows, and how to choose; gives the source its frame."""

    # ---- fitting -----------------------------------------------------------------

    @documented("fit_*", returns="self : object\n    The fitted estimator.")
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, resume: Any = None) -> Self:
        """Find the clusters of X."""
        check_params(self, self._checks)
        if resume is not None and not hasattr(self, "checkpoint"):
            raise TypeError(f"{type(self).__name__} writes no checkpoints to resume from; fit without resume")
        if resume is not None:
            check_path("resume", resume)
        with transaction(self), open_rows(self, X, sample_weight, reset=True, method="fit") as source:
            self.__dict__.pop("selection_", None)
            if isinstance(size := getattr(self, self._size), str):
                self.selection_ = self._selection(source, 1, None, None)
                setattr(self, self._size, self.selection_.best)
            try:
                self._fit_source(source, resume)
            finally:
                setattr(self, self._size, size)
        return self

    def _selection(self, source: Source, least_rows: int, numbers: Any, shapes: Any, *options: Any) -> Any:
        """The number of clusters, chosen among ellipses with noise, whatever shapes are fitted then."""
        from tkmeans.estimators.student_t_mixture import StudentTMixture
        from tkmeans.fitting.relations import leave_out_related
        from tkmeans.fitting.selections import UP_TO_20, compared

        if isinstance(source, SparseSource):
            raise TypeError('X is sparse, and "auto" looks at every value; pass X.toarray(), or a number of clusters')
        survey, names = source.survey(), getattr(self, "feature_names_in_", None)
        check_survey(survey, "n_clusters", least_rows, names, source.dtype.name)
        source.n_counted = survey.n_counted
        mixture: Any = self if isinstance(self, StudentTMixture) else StudentTMixture()
        leave_out_related(source, measure, shapes or [mixture.covariance_type], float(mixture.reg_covar))
        p = len(source.columns or range(source.n_features))
        few = mixture.covariance_type == "full" and survey.n_counted < p * (p + 3) / 2  # rows for a single ellipse
        shapes = shapes or ["diag" if few else mixture.covariance_type]
        found = compared(source, numbers or UP_TO_20, shapes, mixture, *options)
        source.columns = source.relations = None
        return found

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit_source(self, source: Source, resume: Any = None) -> None:
        """Find the clusters of a source whose features have been checked, and publish them."""
        watched: Any = sklearn_callbacks(self, source) if getattr(self, "_skl_callbacks", None) else nullcontext([])
        with watched as observers:
            survey, names = source.survey(), getattr(self, "feature_names_in_", None)
            check_survey(survey, self._size, getattr(self, self._size), names, source.dtype.name)
            source.n_counted = survey.n_counted
            plan, init = self._plan(source), getattr(self, "init", "")
            by_chance = isinstance(init, str) or callable(init)  # an array leaves nothing to chance
            if not by_chance and self.n_init not in ("auto", 1):
                words = f"performing only one init in {type(self).__name__} instead of n_init={self.n_init}"
                fit_warnings.warn_user(f"Explicit initial center position passed: {words}.", RuntimeWarning)
            rng = check_random_state(self.random_state if by_chance else 0)
            observers = [*observers, *self._observers(source)]
            left = None if resume is None else Checkpoint.read(resume, self._fingerprint(source))
            source.resumed = left is not None and (left.run is not None or left.best is not None)
            with nullcontext() if left is None else resuming(self, resume):
                fit = best_run(plan.runs, plan.merit, rng, observers, left)
                self._publish_fit(plan, fit, source)
            if survey.n_empty:
                fit_warnings.warn_of_empty_rows(survey.n_empty, survey.n_rows, survey.first_empty)
            if source.agreement is not None and self._size == "n_clusters":  # the starts of a mixture are less apart
                (n_searches, n_agreeing, margin), K = source.agreement, self.n_clusters
                if 2 * n_agreeing < n_searches and margin < fit_warnings.CLEARLY_BETTER:
                    some = f"{n_searches - n_agreeing} of {n_searches} searches found other clusters, the best of them"
                    doubt = f"worse by {margin:.2g} nats per row: n_clusters={K} may not be what these rows"
                    others = f"n_clusters={max(K - 1, 1)} and {K + 1}, or see select_clusters."
                    fit_warnings.warn_user(f"{some} {doubt} have. Compare {others}", UserWarning)
            if source.search_limit is not None and source.search_limit.has_cut:
                what = f"{type(self).__name__}: max_time={self.max_time} seconds ended the search for a start"
                fit_warnings.warn_user(f"{what}, so that there may be better clusters; raise max_time.")
            elif not fit.converged:
                time_is_up = any(isinstance(observer, TimeLimit) and observer.is_up for observer in observers)
                fit_warnings.warn_of_early_end(self, time_is_up=time_is_up)

    @documented("seen", "y", returns="labels : ndarray of shape (n_samples,)\n    The number of each row's cluster.")
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Labels:
        """Find the clusters of X and return the label of each row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _observers(self, source: Source) -> Iterator[Observer]:
        """Those that the parameters ask for."""
        if getattr(self, "verbose", 0):
            yield Verbose(type(self).__name__, self._objective)
        if getattr(self, "checkpoint", None) is not None:
            given = getattr(source, "weight", None), getattr(self, "init", None), getattr(self, "means_init", None)
            for file in (source.path, *map(mapped_file, given)):
                check_not_input(self.checkpoint, file)
            yield Checkpointer(self.checkpoint, self._fingerprint(source), source)
        if getattr(self, "max_time", None) is not None:
            yield TimeLimit(float(self.max_time))

    def _fingerprint(self, source: Source) -> dict[str, Any]:
        return fingerprint(type(self).__name__, self.get_params(), source)

    def _publish_fit(self, plan: Plan, fit: Any, source: Source) -> None:
        """The fitted attributes, in the user's coordinates; without those of each row if the fit was interrupted."""
        model, dtype, training = self._model(self._engine(source)), source.dtype, None
        params, sizes, log_volume = self._family.leaving(fit, source.frame, dtype, model)
        params = params if source.relations is None else params._replace(relations=source.relations)
        if getattr(self, "means_init", None) is not None:
            sizes = None  # components stay in the order in which they were given
        bounds = [value - log_volume for value in fit.history]
        found = {"lower_bounds_": bounds, "lower_bound_": bounds[-1]}
        found |= {"n_iter_": len(bounds) - 1, "converged_": fit.converged}
        if source.agreement is not None:
            n_searches, n_agreeing, margin = source.agreement
            found |= {"agreement_": n_agreeing / n_searches, "n_searches_": n_searches}
            found |= {"margin_": margin} if np.isfinite(margin) else {}
        if source.bounds is not None:
            found["cell_bounds_"] = np.nan_to_num(np.array(source.bounds, np.float64))
        if not fit.interrupted:
            try:
                names = ("label",) if source.lean else ("label", *plan.row_fields)
                fitted = FittedModel(model, params, params.frame(dtype))
                tallied = "outliers" not in self._lacks
                training = fitted.training(source, names, sizes, by_rows=self._numbered_by_rows, tallied=tallied)
                of_rows = {"labels_": training.rows["label"], "inertia_": training.review.inertia}
                of_rows |= {"outlier_pvalues_": training.rows["pvalue"]} if "pvalue" in training.rows else {}
                of_rows |= plan.extras(training, fit, source, found) if plan.extras else {}
                if np.min(training.review.sizes) < np.mean(training.review.sizes) / 2:
                    warn_of_tiny_clusters(training.review.sizes)
            except KeyboardInterrupt as fault:
                training, fit = None, fit._replace(interrupted=fault)
        if training is not None:
            params, found = training.params, found | of_rows
        elif not self._interruptible:
            raise fit.interrupted
        elif sizes is not None:
            params = params.take(by_size(params.centers, sizes))
        self._publish(FittedModel(self._model(None), params, params.frame(dtype)), found, source)
        if training is None:
            checkpoint = getattr(self, "checkpoint", None)
            words = f"{type(self).__name__} was interrupted after {found['n_iter_']} iterations. The best parameters "
            words += "so far are on the estimator, and predict works; labels_ and what else describes the training "
            words += "rows is missing." + f" fit(X, resume={str(checkpoint)!r}) goes on." * (checkpoint is not None)
            raise Interrupted(words, self, fit.interrupted) from None

    def _publish(self, fitted: FittedModel, found: dict[str, Any], source: Source | None = None) -> None:
        """Take the place of what an earlier fit has left, in one swap."""
        attributes = fitted.params.attributes()
        like = getattr(source, "like", None) or np.asarray  # makes arrays of the library that the rows came in
        # Copies: who edits an attribute changes no answer.
        attributes |= {name: like(value.copy()) for name, value in attributes.items() if isinstance(value, np.ndarray)}
        attributes |= {name: value for name, value in found.items() if name not in self._lacks}
        attributes["_fitted_model"] = fitted
        kept = {name: value for name, value in vars(self).items() if name not in getattr(self, "_published", ())}
        self.__dict__ = kept | attributes | {"_published": frozenset(attributes)}

    def _restore(self, found: dict[str, Any]) -> None:
        """Become what a model file tells of: the fitted attributes that `_publish` had published."""
        params = self._family.from_attributes(found, model := self._model(None))
        self.__dict__ |= {name: found.pop(name) for name in ("n_features_in_", "feature_names_in_") if name in found}
        self._publish(FittedModel(model, params, params.frame(params.centers.dtype)), found)

    # ---- clusters of rows --------------------------------------------------------------

    @documented("predicted_*", returns="row_labels")
    def predict(self, X: Any, *, outlier_label: int | None = None, out: Any = None) -> Labels:
        """Predict the cluster of each row."""
        with self._open(X, "predict", "label" if outlier_label is None else "noise") as source:
            fitted = self._reading(source)
            label = partial(fitted.ask, "label")
            if outlier_label is not None:
                check_integer("outlier_label", outlier_label, least=-(2**31), bits=31)  # those of files have 32
                label = partial(labels_of, fitted, self._strays(0.5), 0.5, outlier_label)
            return answer(source, label, Column("cluster", source.label_dtype), out)

    @documented("X", returns="row_distances")
    def transform(self, X: Any) -> Floats:
        """Compute the distance of each row to every centre."""
        return self._ask(X, "transform", "distances", "distance", wide=True)

    @unless_lacking
    @documented("X", returns="probabilities : ndarray of shape (n_samples, n_clusters)\n    Every row sums to 1.")
    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each cluster for each row (eqn:tau)."""
        return self._ask(X, "predict_proba", "memberships", "probability", wide=True)

    @unless_lacking
    @documented("X", returns="weights : ndarray of shape (n_samples,)\n    Near 1 for an ordinary row, 0 for outliers.")
    def robust_weights(self, X: Any) -> Floats:
        """Compute the influence of each row on the fit: the sum over clusters of tau times u."""
        return self._ask(X, "robust_weights", "trust", "robust_weight")

    @unless_lacking
    @documented("X", returns="row_entropy")
    def assignment_entropy(self, X: Any) -> Floats:
        """Compute how uncertain the cluster of each row is: the entropy of its probabilities.

        Examples
        --------
        Two groups; what is in between belongs to both:

        >>> import numpy as np
        >>> from tkmeans import TKMeans
        >>> rows = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
        >>> model = TKMeans(n_clusters=2, dof=5.0, random_state=0).fit(rows)
        >>> model.assignment_entropy([[1.0], [4.0], [5.0]]).round(2)
        array([0.  , 0.26, 0.69])
        """
        return self._ask(X, "assignment_entropy", "entropy", "assignment_entropy")

    # ---- outliers ----------------------------------------------------------------------

    @unless_lacking
    @documented("X", "outliers_*", returns="row_flags")
    def outliers(self, X: Any, *, rule: str = "strays", level: float | None = None) -> NDArray[np.bool_]:
        """Flag the rows that are outliers.

        Warns
        -----
        UserWarning
            If many outliers lie together, as those of a cluster that was missed do.

        Examples
        --------
        >>> from tkmeans import TKMeans
        >>> from tkmeans.datasets import make_contaminated
        >>> X, y = make_contaminated(n_clusters=4, outlier_fraction=0.05, random_state=0)
        >>> found = TKMeans(n_clusters=4, random_state=0).fit(X).outliers(X)
        >>> int(found.sum()), int((found & (y == -1)).sum())
        (150, 150)
        """
        check_choice("rule", rule, ["strays", "tail"])
        level = {"strays": 0.5, "tail": 0.01}[rule] if level is None else level
        check_real("level", level, positive=True)
        if level >= 1:
            raise ValueError(f"level must be a probability below 1, got {level!r}")
        with open_rows(self, X, reset=False, method="outliers") as source:
            fitted, column = self._reading(source), Column("outlier", np.bool_)
            if rule == "tail":
                return answer(source, lambda block: Answer((fitted.fields(block, "pvalue")[0] < level,)), column)
            found = answer(source, partial(astray, fitted, self._strays(level), level), column)
            if isinstance(source, (ArraySource, TensorSource)):  # others are too many to look at
                strays = source.rows(numbers := np.flatnonzero(to_numpy(found)))
                whole = ~np.any(out_of_bounds(strays, *self._limits(source)), axis=1)  # known to be single cells
                strays = strays[:, source.columns or slice(None)]
                whole &= ~np.any(np.isnan(strays), axis=1)
                radius = 3 * np.sqrt(strays.shape[1] * fitted.params.scale)
                least = getattr(self, "min_cluster_size", None) or 0
                warn_of_clumps(strays[whole], numbers[whole], radius, fitted.params.centers, least)
        return found

    @unless_lacking
    @documented("X", returns="probability : ndarray of shape (n_samples,)\n    Near 1 for rows of no cluster.")
    def noise_probability(self, X: Any) -> Floats:
        """Compute the probability that each row is noise: that it belongs to no cluster.

        Without a noise component it is the probability of being a stray, by the model of :meth:`outliers`.
        """
        with self._open(X, "noise_probability", "noise") as source:
            judge = partial(noise_of, self._reading(source), self._strays(0.5))
            return answer(source, judge, Column("noise_probability", source.dtype))

    @unless_lacking
    @documented("X", returns="row_pvalues")
    def outlier_pvalues(self, X: Any) -> Floats:
        """Compute the probability of so large a distance for a row of the nearest cluster.

        Under the model the squared distance over p times the scale has an F distribution with p and nu degrees of
        freedom: the tail probability is exact.
        """
        return self._ask(X, "outlier_pvalues", "pvalue", "outlier_pvalue", np.float64)

    def _strays(self, level: float) -> OutlierModel | None:
        """The strays among the training rows; None where a noise component answers."""
        if "outliers" in self._lacks:
            raise TypeError(f"{type(self).__name__} does not look for outliers; predict without outlier_label")
        if has_noise(self._fitted_model):
            return None
        if not hasattr(self, "_training_distances"):
            raise NotFittedError("the distances of the training rows are lost, as after Ctrl-C; fit again, or resume")
        return strays_of(self._fitted_model, self._training_distances, level)

    def _limits(self, source: Source) -> Array:
        """Below the first row and above the second a value is a bad cell, (2, p)."""
        return to_numpy(getattr(self, "cell_bounds_", np.outer([-np.inf, np.inf], np.ones(source.n_features))))

    @available_if(lambda estimator: hasattr(estimator, "bad_cells"))  # type: ignore[untyped-decorator]
    @documented("in_memory", returns="bad_cells_found")
    def find_bad_cells(self, X: Any) -> Any:
        """Find the values that are treated as missing: far from all others of their column in the training rows.

        Examples
        --------
        >>> import numpy as np
        >>> from tkmeans import TKMeans
        >>> X = np.random.default_rng(0).normal(size=(100, 4)) + np.repeat([[0], [9]], 50, axis=0)
        >>> X[7, 2] = 1e6
        >>> model = TKMeans(n_clusters=2).fit(X)
        >>> np.argwhere(model.find_bad_cells(X))
        array([[7, 2]])
        """
        with open_rows(self, X, reset=False, method="find_bad_cells") as source:
            if isinstance(source, SparseSource):
                raise TypeError("X is sparse, and bad cells are found among its zeros, too; pass X.toarray()")
            (low, high), source.columns = self._limits(source), None
            column = Column("bad", np.bool_, source.n_features)
            return answer(source, lambda block: Answer((out_of_bounds(block.X, low, high),)), column)

    # ---- the density ---------------------------------------------------------------

    @unless_lacking
    @documented("X", returns="log_density : ndarray of shape (n_samples,)\n    The logarithm of the mixture's density.")
    def score_samples(self, X: Any) -> Floats:
        """Compute the log-likelihood of each row."""
        return self._ask(X, "score_samples", "log_density", "log_density")

    @documented("seen", "y")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute how well the rows fit: the larger, the better.

        Returns
        -------
        score : float
            The mean log-likelihood of the rows, as of GaussianMixture, by which a cross-validated search can compare
            values of `n_clusters`; without a density (:class:`FastTKMeans`, the baselines) minus the inertia.
        """
        if "score_samples" not in self._lacks:
            found = self._evidence(X, "score", sample_weight)
            return found.objective / found.total
        with open_rows(self, X, sample_weight, reset=False, method="score") as source:
            return -source.reduce(partial(self._reading(source).reviewed, False)).inertia

    @unless_lacking
    @documented("seen", returns="aic : float\n    Smaller is better.")
    def aic(self, X: Any) -> float:
        """Compute the Akaike information criterion of the model on the rows X."""
        return self._evidence(X, "aic").aic

    @unless_lacking
    @documented("seen", returns="bic : float\n    Smaller is better.")
    def bic(self, X: Any) -> float:
        """Compute the Bayesian information criterion of the model on the rows X."""
        return self._evidence(X, "bic").bic

    @unless_lacking
    @documented("seen", returns="icl : float\n    Smaller is better.")
    def icl(self, X: Any) -> float:
        """Compute the integrated classification likelihood of the model on the rows X.

        It is the BIC plus twice the entropy of the memberships, so that it also counts how well the clusters are
        separated. It is what to choose K by.
        """
        return self._evidence(X, "icl").icl

    @unless_lacking
    @documented(returns="labelled")
    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the clusters of the fitted model; of a noise component none are drawn.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        """
        check_is_fitted(self)
        check_integer("Invalid value for 'n_samples': it", n_samples, least=1)
        return self._fitted_model.params.draw(n_samples, check_random_state(self.random_state))

    def _evidence(self, X: Any, method: str, sample_weight: Any = None) -> Evidence:
        with self._open(X, method, "evidence", sample_weight) as source:
            return self._reading(source).posterior.evidence(source)

    # ---- the record behind the face ----------------------------------------------------

    def _ask(self, X: Any, method: str, question: str, name: str, dtype: Any = None, *, wide: bool = False) -> Any:
        """One answer of the fitted model for each row, or for each row and cluster, under the name of a column."""
        with self._open(X, method, question) as source:
            column = Column(name, dtype or source.dtype, self._n_features_out if wide else None)
            return answer(source, partial(self._reading(source).ask, question), column)

    def _open(self, X: Any, method: str, question: str, sample_weight: Any = None) -> Source:
        """The rows to answer a question about, without bad cells if the fit's answer is asked for."""
        source = open_rows(self, X, sample_weight, reset=False, method=method)
        if hasattr(self, "cell_bounds_") and question in FORGIVING:
            source.bounds = tuple(to_numpy(self.cell_bounds_))
        return source

    def _reading(self, source: Source) -> FittedModel:
        """The fitted model, to read these rows with the engine asked for."""
        fitted, engine = self._fitted_model, self._engine(source)
        ready = _READY.get(fitted)
        if ready is None or ready.frame is not source.frame or getattr(ready.model, "engine", engine) is not engine:
            model = replace(fitted.model, engine=engine) if hasattr(fitted.model, "engine") else fitted.model
            ready = _READY[fitted] = FittedModel(model, fitted.params, source.frame)
        return ready

    def _engine(self, source: Source) -> Any:
        """The engine asked for, or the one that runs on arrays of any library."""
        name = getattr(self, "engine", "auto")
        if source.array_library == "numpy":
            return engines.select(name)
        if isinstance(source, SparseSource):
            return source.engine(engines.select(name))
        if name == "native":
            way_out = 'use "auto", which runs the reference engine where the array is'
            raise ValueError(f'engine="native" reads NumPy arrays, got one of {source.array_library}; {way_out}')
        return engines.reference

    def __sklearn_clone__(self) -> Self:
        """A copy to be fitted elsewhere, many times perhaps: it does not write to this one's checkpoint."""
        copy: Self = super().__sklearn_clone__()
        copy.__dict__.update({"checkpoint": None} if hasattr(copy, "checkpoint") else {})  # a subclass may not take it
        return copy

    @property
    def n_clusters_(self) -> int:
        """The number of clusters, given or chosen."""
        return len(self._fitted_model.params.centers)

    _n_features_out = n_clusters_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if self._accepts.single else ["float64"]
        tags.input_tags.sparse = self._accepts.sparse
        tags.input_tags.allow_nan = self._accepts.missing
        tags.array_api_support = self._accepts.array_api and self._accepts.elsewhere
        return tags


def answer(source: Source, function: Callable[[Block], Answer], column: Column, out: Any = None) -> Any:
    """Something for each row: in the kind of array the rows came in, or for a file, in a file beside it."""
    if out is not None:
        check_path("out", out)
    elif (out := source.beside(column.name)) is None:
        return source.collect(function, [column])[0][0]
    return write_parquet(source, function, column, out)


# ---- a fit happens as a whole or not at all ------------------------------------------------


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a fit that has left its best parameters on the estimator, and reports it."""

    def __init__(self, message: str, estimator: Any, fault: BaseException) -> None:
        super().__init__(message)
        self.estimator, self.fault = estimator, fault


@contextmanager
def transaction(estimator: Any) -> Iterator[None]:
    """Give the estimator back what it had, unless the block ends well: a half-fitted one would be worse than none."""
    before = dict(vars(estimator))  # attributes are replaced by a fit, never changed in place
    try:
        yield
    except BaseException as fault:  # Ctrl-C too
        if isinstance(fault, Interrupted) and fault.estimator is estimator:
            raise
        estimator.__dict__ = before
        if isinstance(fault, Interrupted):  # in a fit that this one has begun with, of which nothing is left
            raise fault.fault from None
        raise
