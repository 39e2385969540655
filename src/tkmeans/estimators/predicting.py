"""What a fitted clusterer says of rows, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tkmeans import engines
from tkmeans.estimators.looking import Lens, entropy, look
from tkmeans.estimators.numbers import checked_rows
from tkmeans.estimators.uncertainty import UncertaintyMixin
from tkmeans.estimators.validation import SPREADS, check_columns, checked_sample_weight, checked_weight
from tkmeans.models import CenterModel
from tkmeans.sources import Column, Seen, Source, as_source, kind_of
from tkmeans.sources.base import to_numpy
from tkmeans.sources.base import nearest_to_zero
from tkmeans.stats import LARGEST_SINGLE, Array, Block, Frame, Params, namespace


class Predicting(UncertaintyMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A clusterer whose fitted attributes are centres, a scale, a dof and weights."""

    n_clusters: int
    engine: str
    n_jobs: int | None

    @abstractmethod
    def _model(self, engine: Any) -> CenterModel:
        """The fitted model, to predict with."""

    def predict_proba(self, X: Any) -> Any:
        """Say how probable each cluster is for each row (eqn:tau).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or dask collection
            The rows to look at.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
            Non-negative; every row sums to 1. For a path, the Parquet file they were written to.
        """
        with self._checked(X, "predict_proba") as source:
            lens = self._lens(source)
            column = Column("probability", source.dtype, self._n_features_out)
            return self._answer(source, lens.memberships, column)

    def transform(self, X: Any) -> Any:
        """Measure the distance of each row to every centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or dask collection
            The rows to measure.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances. For a path, the Parquet file they were written to.
        """
        with self._checked(X, "transform") as source:
            lens = self._lens(source)
            column = Column("distance", source.dtype, self._n_features_out)
            return self._answer(source, lens.distances, column)

    def robust_weights(self, X: Any) -> Any:
        """Say how far each row is trusted: the sum over clusters of tau times u.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or dask collection
            The rows to look at.

        Returns
        -------
        weights : ndarray of shape (n_samples,)
            About 1 for an ordinary row, near 0 for an outlier. For a path, the Parquet file
            they were written to.
        """
        with self._checked(X, "robust_weights") as source:
            return self._look(source, "trust", Column("robust_weight", source.dtype))

    def _entropy(self, X: Any) -> Any:
        with self._checked(X, "assignment_entropy") as source:
            return self._answer(
                source, partial(entropy, self._lens(source)), Column("assignment_entropy", source.dtype)
            )

    # ---- from what people pass to rows in a frame ------------------------------------

    def _open(self, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
        """The source of X, whose features are those of the fit, or become them with `reset`."""
        kind = kind_of(X)
        n_threads = effective_n_jobs(self.n_jobs)
        if kind in ("array", "tensor"):
            xp = np if kind == "array" else namespace(X)
            floats = [xp.float64, xp.float32] if reset or self._fits_single() else xp.float64
            X = checked_rows(self, X, reset=reset, dtype=floats, missing=True)
            return as_source(X, checked_sample_weight(sample_weight, X), n_threads=n_threads)
        names = None if reset else getattr(self, "feature_names_in_", None)
        weight = sample_weight if kind == "dask" else None
        source = as_source(X, weight, n_threads=n_threads, names=None if names is None else list(names))
        with closing_if_it_fails(source):
            check_columns(self, source, reset=reset)
            if kind == "file" and sample_weight is not None:
                source.weight = checked_weight(sample_weight, source.n_rows, source.dtype)
        return source

    def _fits_single(self) -> bool:
        """Whether the fitted parameters can be told in single precision."""
        least, most = SPREADS["float32"]
        farthest = float(np.max(np.abs(to_numpy(self.cluster_centers_))))
        return least < np.sqrt(self.scale_) * 1e5 < most * 1e5 and farthest < LARGEST_SINGLE

    def _checked(self, X: Any, method: str, sample_weight: Any = None) -> Source:
        """The source of rows to look at, in the frame of the fitted model."""
        check_is_fitted(self)
        self._check_library(X, method)
        source = self._open(X, sample_weight, reset=False)
        with closing_if_it_fails(source):
            source.frame = self._fitted_frame(source.dtype)
        return source

    def _check_library(self, X: Any, method: str) -> None:
        """With scikit-learn's array_api_dispatch, rows must be where those of the fit were."""
        if not get_config()["array_api_dispatch"] or kind_of(X) not in ("array", "tensor"):
            return
        fitted, given = (_library_and_device(values) for values in (self.cluster_centers_, X))
        if fitted != given:
            raise ValueError(
                f"Inputs passed to {type(self).__name__}.{method}() must use the same namespace and device as those "
                f"passed to fit(): {fitted} there, {given} here; convert X, or switch array_api_dispatch off"
            )

    def _look(self, source: Source, field: str, column: Column, out: Any = None) -> Any:
        """One field of every row under the fitted model, in the user's units."""
        return self._answer(source, partial(look, self._lens(source), (field,)), column, out)

    def _answer(self, source: Source, function: Callable[[Block], Seen], column: Column, out: Any = None) -> Any:
        """Something for each row: in the kind of array the rows came in, or for a file, in a file beside it."""
        out = source.beside(column.name) if out is None else out
        if out is None:
            return source.collect(function, [column])[0][0]
        from tkmeans.sources.writing import write_parquet

        return write_parquet(source, function, column, out)

    # ---- the fitted attributes as a model --------------------------------------------

    def _fitted_frame(self, dtype: Any) -> Frame:
        """A frame that fits the centres and rows of `dtype`."""
        return Frame(nearest_to_zero(to_numpy(self.cluster_centers_)).astype(dtype), float(np.sqrt(self.scale_)))

    def _lens(self, source: Source) -> Lens:
        model, frame = self._model(self._engine(source)), source.frame
        centers = to_numpy(self.cluster_centers_).astype(np.float64)
        params = Params(frame.enter(centers), 1.0, self.dof_, np.log(to_numpy(self.cluster_weights_)))
        return Lens(model, params, model.kernel(params), frame, centers)

    def _engine(self, source: Source) -> Any:
        """The engine asked for, or the one that runs on arrays of any library."""
        if source.array_library == "numpy":
            return engines.select(self.engine)
        if self.engine == "native":
            raise ValueError(
                f'engine="native" reads NumPy arrays, got one of {source.array_library}; use "auto", which runs '
                "the reference engine where the array is"
            )
        return engines.reference

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        tags.array_api_support = True
        return tags


@contextmanager
def closing_if_it_fails(source: Source) -> Iterator[None]:
    """End a source's threads if what prepares it goes wrong."""
    try:
        yield
    except BaseException:
        source.__exit__()
        raise


def _library_and_device(X: Any) -> str:
    if kind_of(X) == "array":
        return "numpy"
    return f"{type(X).__module__.partition('.')[0]} on {X.device}"


def label_column(source: Source) -> Column:
    """Labels of many rows take as little room as they can."""
    return Column("cluster", np.int32 if source.lean else np.int64)


def to_user(source: Source, values: Array) -> Array:
    """A fitted attribute as an array of the library that the rows came in."""
    like: Callable[[Array], Array] | None = getattr(source, "like", None)
    return values if like is None else like(values)
