"""From what people pass to numbers, without a silent cast on the way.

scikit-learn's own validation reads text as numbers where it can, dates as seconds, and what is under
the mask of a masked array as data. Here the first two are refused, and what is masked is missing.
"""

import os
from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils import check_array

from tkmeans.sources.base import to_numpy
from tkmeans.stats import Array

_NO_NUMBERS = {"U": "text", "S": "text", "T": "text", "M": "dates", "m": "durations", "V": "records", "O": "values"}


def checked_centers(centers: Any, name: str, shape: tuple[int, int], size: str = "n_clusters") -> Array:
    """Centres that a parameter of this name holds or gives."""
    centers = checked_points(centers if isinstance(centers, list) else to_numpy(centers), name)
    if centers.shape != shape:
        what = "clusters" if centers.shape[0] != shape[0] else "features of the data"
        theirs = f"The parameter 'means' should have the shape of {shape}: "
        if name == "init":
            theirs = f"The shape of the initial centers {centers.shape} does not match the number of {what}: "
        raise ValueError(f"{theirs}{name} must have shape {shape} ({size}, n_features), got {centers.shape}")
    return centers


def checked_points(points: Any, name: str, most: float = np.inf) -> Array:
    """Points that a parameter of this name holds, such as centres to start from, none of them beyond `most`."""
    points = check_array(as_numbers(points, name), dtype=np.float64, input_name=name)
    if np.max(np.abs(points)) > most:
        raise ValueError(f"{name} must be at most {most:g} in size, for its squares to be numbers; rescale it")
    return points


def checked_weights(weights: Any, n_components: int) -> Array:
    """Weights of components: non-negative and summing to 1, or a ValueError as GaussianMixture has it."""
    weights = reals(weights, "weights_init")
    shape_checked(weights, "weights", (n_components,))
    if np.any(weights < 0) or np.any(weights > 1):
        fault = f"in the range [0, 1], but got max value {np.min(weights):.5f}, min value {np.max(weights):.5f}"
    elif not np.isclose(np.sum(weights), 1.0):
        fault = f"normalized, but got sum(weights) = {np.sum(weights):.5f}"
    else:
        return weights
    raise ValueError(f"The parameter 'weights' should be {fault}; divide weights_init by its sum")


def reals(values: Any, name: str) -> Array:
    """Finite real numbers that a parameter of this name holds."""
    array = np.asarray(as_numbers(values, name))
    if array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite real numbers, got {values!r}")
    return array.astype(np.float64)


def checked_precisions(precisions: Any, kind: str, K: int, p: int) -> Array:
    """Inverses of scale matrices of a kind, positive definite, or a ValueError as GaussianMixture has it."""
    precisions = reals(precisions, "precisions_init")
    shape = {"full": (K, p, p), "tied": (p, p), "diag": (K, p), "spherical": (K,)}[kind]
    shape_checked(precisions, f"{kind} precision", shape)
    if kind in ("diag", "spherical"):
        if not np.all(precisions > 0):
            raise ValueError(f"'{kind} precision' should be positive, got {np.min(precisions)} in precisions_init")
        return precisions
    stack = precisions.reshape(-1, p, p)
    if not np.allclose(stack, stack.swapaxes(1, 2)) or not np.all(np.linalg.eigvalsh(stack) > 0):
        raise ValueError(f"'{kind} precision' should be symmetric, positive-definite; precisions_init is not")
    return precisions


def shape_checked(values: Array, name: str, shape: tuple[int, ...]) -> None:
    """Complain of another shape, as GaussianMixture does."""
    if values.shape != shape:
        raise ValueError(f"The parameter '{name}' should have the shape of {shape}, but got {values.shape}")


def as_numbers(values: Any, name: str) -> Any:
    """The values, of which none is text or a date; as an array with NaN for missing where a list or mask was given."""
    in_files = type(values).__module__ in ("tkmeans.sources.files", "pyarrow._dataset")
    if in_files or isinstance(values, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a table of numbers, got {values!r}; where files are not taken, load it first")
    if hasattr(values, "to_arrow_table"):  # a query of DuckDB
        values = values.to_arrow_table()
    elif type(values).__name__ == "LazyFrame":  # of polars
        values = values.collect()
    if isinstance(values, (list, tuple)):
        others = (value for value in values if not isinstance(value, np.ndarray))
        if not any(hasattr(value, "__array_namespace__") for value in others):  # not another library's
            try:
                values = np.asarray(values)
            except ValueError as error:
                raise ValueError(f"{name} must be a table with rows of equal length; {error}") from None
    if isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind in "biuf":
            return np.ma.filled(values if values.dtype.kind == "f" else values.astype(np.float64), np.nan)
        values = values.filled()
    if isinstance(values, np.ndarray):
        _refuse_what_is_no_number(values, name)
        if values.dtype.kind != "f":
            return values
        # In this machine's byte order, so that single precision is seen to be that, and none longer than double: one
        # that is too large for double precision becomes infinite, and is refused as such.
        dtype = np.dtype(np.float64) if values.dtype.itemsize > 8 else values.dtype.newbyteorder("=")
        with np.errstate(over="ignore"):
            return values.astype(dtype, copy=False)
    columns = getattr(values, "columns" if hasattr(values, "dtypes") else "column_names", ())  # of a frame, or of Arrow
    check_names(columns, name)
    for column in columns:
        if getattr(getattr(values[column], "dtype", None), "kind", "O") not in "biuf":
            _refuse_what_is_no_number(np.asarray(values[column]), f"{name} in column {column!r}")
    return values


def check_names(columns: Any, name: str) -> None:
    """Refuse a frame in which several columns have one name."""
    if repeated := [column for column, times in Counter(columns).items() if times > 1]:
        raise ValueError(f"{name} has several columns with the name {repeated[0]!r}; rename or drop one of them")


def _refuse_what_is_no_number(values: Array, name: str) -> None:
    kind = values.dtype.kind
    found: Any = "" if kind in "OV" or not values.size else f" such as {str(values.flat[0])!r}"
    if kind == "O":
        others = [value for value in values.flat if value is not None and not hasattr(value, "__float__")]
        others += [value for value in values.flat if isinstance(value, int) and abs(value) >= 2**1023]
        if not others:
            return
        sample = f"one of {others[0].bit_length()} bits" if isinstance(others[0], int) else f"{others[0]!r:.60}"
        kind, found = "U", f" such as {sample}"
        if not isinstance(others[0], (str, bytes)):
            kind, found = "O", f"{found} (an argument must be a string or a real number)"
    if kind in _NO_NUMBERS:
        way = "put NaN in its place" if "<NA>" in found else "convert it to numbers, as by astype(float)"
        raise TypeError(f"{name} holds {_NO_NUMBERS[kind]}{found}; {way}")
