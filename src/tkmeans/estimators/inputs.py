"""Validate X and sample_weight, and open X as a `Source`."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted, validate_data

from tkmeans.atomic import mapped_file
from tkmeans.sources import ArraySource, Source, Survey, TensorSource
from tkmeans.sources.base import BLOCK_ROWS, survey, to_numpy
from tkmeans.sources.number_checks import as_numbers
from tkmeans.sources.sparse import SparseSource
from tkmeans.sparse_rows import SparseRows, check_indices
from tkmeans.stats import Array, Block, namespace

# Weights beyond these, times the square of a far row's distance, leave what a number of that type can hold.
WEIGHTS = {"float64": (1e-50, 1e50), "float32": (1e-20, 1e10)}

# The spread of the rows. Squares of the horizon (`tkmeans.stats`) in this unit are numbers, and so is its inverse.
SPREADS = {"float64": (1e-120, 1e50), "float32": (1e-30, 1e30)}


class Accepts(NamedTuple):
    """What an estimator takes."""

    missing: bool = True  # NaN
    sparse: bool = True  # rows of scipy.sparse, which are complete
    single: bool = True  # float32 stays float32
    elsewhere: bool = True  # tensors, files and dask collections
    array_api: bool = True  # arrays of other libraries where scikit-learn's array_api_dispatch is on
    refusal: str | None = None  # of rows elsewhere that a fit does not take though predict does
    least_rows: int = 1
    check: Callable[[Any, Array], None] | None = None  # what else rows must be, of the estimator and the rows


def open_rows(estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool, method: str) -> Source:
    """The source of X, with the features and the frame of the fit; or, with `reset`, of rows that are to be fitted."""
    accepts: Accepts = estimator._accepts
    if not reset:
        check_is_fitted(estimator, msg=estimator._not_fitted)
    kind = "array" if type(X) is np.ndarray or not accepts.elsewhere else kind_of(X)
    file = None if getattr(X, "base", None) is None else mapped_file(X)
    if kind not in ("array", "tensor"):
        source = _outside_source(estimator, X, sample_weight, kind, reset=reset)
    else:
        if not reset and accepts.elsewhere and get_config()["array_api_dispatch"]:
            _check_library(estimator, X, method)
        double = type(X) is np.ndarray and X.dtype == np.float64
        single = accepts.single and (reset or double or estimator._fitted_model.params.fits_single(*SPREADS["float32"]))
        tensor = kind == "tensor"
        xp = namespace(X) if tensor else np
        X, weight = checked_rows(estimator, X, sample_weight, reset=reset, single=single, xp=xp)
        # What cannot read blocks from elsewhere looks at all rows at once.
        block_rows = None if accepts.elsewhere else max(len(X), 1)
        source = TensorSource(X, weight) if tensor else in_memory(estimator, X, weight, block_rows=block_rows)
        source.path = file  # that an array is mapped to
    if reset and kind != "array" and accepts.refusal is not None:  # before the first look, which may take hours
        source.__exit__()
        raise TypeError(accepts.refusal)
    if not reset:
        fitted = estimator._fitted_model
        source.frame = fitted.frame if fitted.frame.origin.dtype == source.dtype else fitted.params.frame(source.dtype)
        source.columns = getattr(fitted.params, "columns", None)
    return source


def in_memory(estimator: Any, X: Any, weight: Any, frame: Any = None, **options: Any) -> ArraySource | SparseSource:
    """The source of checked rows, dense or sparse, with the threads that the estimator asks for."""
    n_jobs = effective_n_jobs(getattr(estimator, "n_jobs", None)) if X.shape[0] > BLOCK_ROWS.get() else 1
    kind = SparseSource if isinstance(X, SparseRows) else ArraySource
    return kind(X, weight, frame, n_threads=n_jobs, **options)


def checked_rows(
    estimator: Any, X: Any, sample_weight: Any, *, reset: bool, single: bool, xp: Any = np
) -> tuple[Array, Array | None]:
    """Rows in memory and their weights, float32 or not; with `reset` their features become the estimator's."""
    accepts: Accepts = estimator._accepts
    plain = type(X) is np.ndarray and X.dtype in (np.float64, np.float32)
    sparse = not plain and (type(X).__module__.startswith("scipy.sparse") or hasattr(X, "sparse"))  # or of pandas
    if sparse:
        check_indices(X)
    wanted: dict[str, Any] = {"dtype": [xp.float64, xp.float32] if single else xp.float64, "reset": reset}
    wanted |= {"ensure_all_finite": "allow-nan" if accepts.missing else True}
    wanted |= {"ensure_min_samples": accepts.least_rows if reset else 1, "accept_sparse": accepts.sparse and "csr"}
    with np.errstate(over="ignore", invalid="ignore"):  # of a sum in which scikit-learn looks for NaN
        usual = plain and X.ndim == 2 and len(X) >= wanted["ensure_min_samples"] and (single or X.dtype == np.float64)
        usual = usual and X.size and (reset or X.shape[1] == estimator.n_features_in_)
        if not usual or hasattr(estimator, "feature_names_in_") or not np.isfinite(np.sum(X)):
            X = validate_data(estimator, X if plain else as_numbers(X, "X"), **wanted)
        elif reset:  # scikit-learn's way is a long one
            estimator.n_features_in_ = X.shape[1]
    if sparse and np.any(np.isnan(X.data)):
        raise ValueError("Input X contains NaN, but sparse rows have no missing values; pass X.toarray()")
    X = SparseRows.of(X) if sparse else X
    if accepts.check is not None:
        accepts.check(estimator, X)
    return X, None if sample_weight is None else checked_sample_weight(sample_weight, X)


def _outside_source(estimator: Any, X: Any, sample_weight: Any, kind: str, *, reset: bool) -> Source:
    """Of a file or a dask collection; keeps its features, or complains if they are not those of the fit."""
    names = None if reset or not hasattr(estimator, "feature_names_in_") else list(estimator.feature_names_in_)
    if kind == "dask":
        from tkmeans.sources.dask import DaskSource

        source: Source = DaskSource(X, sample_weight, names)
    else:
        from tkmeans.sources.files import DataFile, FileSource

        file = X if isinstance(X, DataFile) else DataFile(X)
        source = FileSource(file, None, effective_n_jobs(getattr(estimator, "n_jobs", None)), names)
    with ExitStack() as closing:
        closing.push(source)  # ends its threads if what prepares it goes wrong
        if reset:
            estimator.n_features_in_ = source.n_features
            estimator.__dict__.pop("feature_names_in_", None)
            if source.names is not None:
                estimator.feature_names_in_ = np.array(source.names, dtype=object)
        elif source.n_features != estimator.n_features_in_:
            wanted = f"{type(estimator).__name__} is expecting {estimator.n_features_in_} features as input"
            raise ValueError(f"X has {source.n_features} features, but {wanted}")
        else:
            source.guard = partial(_of_finite, source.names)
        if kind == "file" and sample_weight is not None:
            source.weight = checked_weight(sample_weight, source.n_rows, source.dtype)
        closing.pop_all()
    return source


def kind_of(X: Any) -> str:
    """Return "array", "tensor", "file" or "dask", without importing what X does not come from."""
    if (library := type(X).__module__.partition(".")[0]) in ("dask", "dask_expr"):
        return "dask"
    if isinstance(X, (str, os.PathLike)) or type(X).__module__ in ("tkmeans.sources.files", "pyarrow._dataset"):
        return "file"
    # Without this switch scikit-learn reads tensors as NumPy arrays, and so do we.
    follows_the_array_api = library in ("torch", "cupy") or (library != "numpy" and hasattr(X, "__array_namespace__"))
    return "tensor" if follows_the_array_api and get_config()["array_api_dispatch"] else "array"


def _check_library(estimator: Any, X: Any, method: str) -> None:
    """With scikit-learn's array_api_dispatch, rows must be where those of the fit were."""
    fitted, given = (
        "numpy" if kind_of(values) == "array" else f"{type(values).__module__.partition('.')[0]} on {values.device}"
        for values in (estimator.cluster_centers_, X)
    )
    if fitted != given:
        wanted = "must use the same namespace and device as those passed to fit()"
        found = f"{fitted} there, {given} here; convert X, or switch array_api_dispatch off"
        raise ValueError(f"Inputs passed to {type(estimator).__name__}.{method}() {wanted}: {found}")


def check_survey(found: Survey, size: str, n_clusters: int, names: Array | None, dtype: str) -> None:
    """Complain of rows that no fit could be made of; `size` is the name of the parameter `n_clusters`."""
    if np.any(found.infinite):
        raise ValueError(f"X has infinite values in {_features(found.infinite, names)}; clip them or mark them as NaN")
    if np.isnan(found.total) or np.isinf(found.least) or np.isinf(found.heaviest):
        raise ValueError("sample_weight must be finite; drop these rows or give them the weight 0")
    if found.least < 0:
        raise ValueError(f"sample_weight must not be negative, got {found.least}; a weight of 0 ignores a row")
    if found.total == 0 and found.n_rows:
        raise ValueError("sample_weight must be positive for at least one row, got zeros only")
    least, most = WEIGHTS[dtype]
    if found.lightest < least or found.heaviest > most:  # there is no room for what is made of them
        wanted = f"sample_weight must be 0 or between {least:g} and {most:g} for rows of {dtype}"
        weights = f"weights from {found.lightest:.3g} to {found.heaviest:.3g}"
        raise ValueError(f"{wanted}, got {weights}; divide them by a number of that size")
    if found.n_counted < n_clusters:
        weighted = found.n_counted < found.n_rows
        counted = f"{found.n_counted} rows of positive sample_weight" if weighted else f"n_samples={found.n_counted}"
        clusters = size.removeprefix("n_")
        raise ValueError(f"{counted} should be >= {size}={n_clusters}; choose at most {found.n_counted} {clusters}")
    if np.any(lost := found.observed == 0):
        raise ValueError(f"{_features(lost, names)} has no observed value in any row; drop it")


def _of_finite(names: Any, function: Callable[[Block], Any], block: Block) -> Any:
    """`function` of rows that no fit has surveyed; infinite values are refused as there."""
    if np.any((found := survey(block)).infinite):
        check_survey(found, "n_clusters", 0, names, "float64")
    return function(block)


def measure(source: Source) -> Array:
    """Give the source its frame, of these rows; complain if squared distances up to the farthest would be no number."""
    source.frame = source.measure()
    (least, most), spread = SPREADS[source.dtype.name], source.frame.unit
    if not least < spread < most:
        found = f"the spread of X is {spread:.3g}, and squared distances do not fit into {source.dtype.name}"
        raise ValueError(f"{found} unless it is between {least:g} and {most:g}; rescale X first")
    rows, source.measured = source.measured, None
    return rows


def _features(marked: Array, names: Any) -> str:
    return "feature " + ", ".join(str(j) if names is None else repr(str(names[j])) for j in np.flatnonzero(marked))


def checked_sample_weight(sample_weight: Any, X: Array) -> Array:
    """Weights in X's type, one per row and not negative."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    if not isinstance(X, (np.ndarray, SparseRows)):  # checked as an array of NumPy, and then taken to where X is
        xp = namespace(X)
        weight = checked_weight(to_numpy(sample_weight), X.shape[0], "float32" if X.dtype == xp.float32 else "float64")
        return xp.asarray(weight, dtype=X.dtype, device=X.device)
    return checked_weight(sample_weight, len(X), X.dtype)


def checked_weight(sample_weight: Any, n_rows: int, dtype: Any) -> Array:
    """Weights as an array of NumPy, one per row and not negative."""
    weight = np.asarray(as_numbers(sample_weight, "sample_weight"))
    if weight.dtype.kind == "c":
        raise TypeError("sample_weight holds complex numbers; choose real ones, as by .real or abs()")
    try:
        weight = np.ascontiguousarray(weight, dtype=None if weight.dtype.name in WEIGHTS else np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"sample_weight must be an array of numbers: {error}") from None
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one weight per row, got {weight.shape}")
    found = survey(Block(np.zeros((n_rows, 1)), weight, None))  # type: ignore[arg-type]
    check_survey(found, "n_clusters", 0, None, np.dtype(dtype).name)
    return weight.astype(dtype, copy=False)
