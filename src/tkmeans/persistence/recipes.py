"""Which classes a model file may hold, and what there is to keep of each.

A field's kind is one of "number", "number from 0 on", "count" (an integer), "truth", "numbers" (a list), "names",
"sketch", "floats" and "ints" (arrays), with the shape in brackets: K clusters, p features, n training rows.
"?" marks what may be absent, as after an interrupted fit, or None, "|" alternatives.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tkmeans.fitted import Sketch
from tkmeans.persistence.encoding import ModelFileError

Fields = dict[str, str]


class Recipe(NamedTuple):
    """Where a class lives, and its fitted attributes."""

    home: str
    fitted: Fields
    size: str = "n_clusters"  # the parameter that K is


_ALL: Fields = {"n_features_in_": "count", "feature_names_in_": "names[p]?"}
_HARD = _ALL | {"cluster_centers_": "floats[K,p]", "labels_": "ints[n]?", "inertia_": "number?", "n_iter_": "count"}
_UP = "number from 0 on"
_PATH = {"lower_bound_": "number", "lower_bounds_": "numbers", "converged_": "truth"}
_PATH |= {"agreement_": "number?", "n_searches_": "count?", "margin_": "number?"}
_SOFT = _HARD | _PATH | {"scale_": _UP, "dof_": _UP, "cluster_weights_": "floats[K]"}
_STRAYS = {"cell_bounds_": "floats[2,p]?", "outlier_pvalues_": "floats[n]?", "_training_distances": "sketch?"}
_MIXTURE = _ALL | _PATH | {"n_iter_": "count", "weights_": "floats[K]", "means_": "floats[K,p]", "dof_": "floats[K]"}
_MIXTURE |= {"labels_": "ints[n]?", "covariances_": "covariances", "noise_weight_": "number"} | _STRAYS
_MIXTURE |= {"noise_center_": "floats[p]?", "noise_covariance_": "covariance?", "_noise_shares": "numbers?"}
_STREAM = {"n_steps_": "count", "n_samples_seen_": "count", "cluster_sizes_": "floats[K]", "recent_sizes_": "floats[K]"}
_STREAM |= {"center_drift_": "floats[K]", "drift_pvalues_": "floats[K]"}
_SEEN = {"n_samples_seen_": "count|number|ints[p]|floats[p]"}

ESTIMATORS = {
    "TKMeans": Recipe("tkmeans.estimators", _SOFT | _STRAYS),
    "FastTKMeans": Recipe("tkmeans.estimators", _SOFT),
    "MiniBatchTKMeans": Recipe("tkmeans.estimators", _SOFT | _STRAYS | _STREAM),
    "StudentTMixture": Recipe("tkmeans.estimators", _MIXTURE, "n_components"),
    "KMedians": Recipe("tkmeans.baselines", _HARD),
    "KMedoids": Recipe("tkmeans.baselines", _HARD | {"medoid_indices_": "ints[K]?"}),
}

_SCALED = {
    "StandardScaler": _SEEN | dict.fromkeys(("mean_", "var_", "scale_"), "floats[p]?"),
    "RobustScaler": dict.fromkeys(("center_", "scale_"), "floats[p]?"),
    "MinMaxScaler": _SEEN | dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "floats[p]"),
}
SCALERS = {name: Recipe("sklearn.preprocessing", _ALL | fields) for name, fields in _SCALED.items()}

_COVARIANCES = {"full": "floats[K,p,p]", "tied": "floats[p,p]", "diag": "floats[K,p]", "spherical": "floats[K]"}


def class_of(name: str) -> type[Any]:
    """The class of a recipe."""
    return getattr(import_module((ESTIMATORS | SCALERS)[name].home), name)


def kinds(name: str, params: dict[str, Any]) -> Fields:
    """The fitted attributes of a class with these parameters, and their kinds."""
    fitted = (ESTIMATORS | SCALERS)[name].fitted
    shape = _COVARIANCES.get(params.get("covariance_type", ""), "")
    forms = {"covariances": shape, "covariance?": shape.replace("K,", "").replace("K", "1") + "?"}  # of one cluster
    return {field: forms.get(kind, kind) for field, kind in fitted.items()}


def restored(field: str, value: Any, kind: str, sizes: dict[str, int]) -> Any:
    """A decoded value as the estimator has it; complain if it is not of its kind and shape.

    The number of training rows is learnt from the first array that has one.
    """
    for each in kind.removesuffix("?").split("|"):
        word, _, dims = each.removesuffix("]").partition("[")
        if _is(value, word) and (not dims or _has_shape(value, dims.split(","), sizes)):
            return _AS.get(word, lambda same: same)(value)
    known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    raise ModelFileError(f"has a {field} that is not {kind.removesuffix('?')} with {known}")


def _has_shape(value: Any, dims: list[str], sizes: dict[str, int]) -> bool:
    shape = np.shape(value)
    return len(shape) == len(dims) and all(shape[i] == sizes.setdefault(dim, shape[i]) for i, dim in enumerate(dims))


def _is(value: Any, kind: str) -> bool:
    """Whether a value is of this kind, whatever its shape."""
    if kind in _SCALARS:
        return type(value) is _SCALARS[kind] and not (kind == _UP and value < 0)
    if kind in _LISTS:
        return isinstance(value, list) and all(type(part) is _LISTS[kind] for part in value)
    if kind in _ARRAYS:
        return isinstance(value, np.ndarray) and value.dtype.kind == _ARRAYS[kind]
    if not isinstance(value, dict) or set(value) != set(Sketch._fields):
        return False
    d2, mass = value["d2"], value["mass"]
    return _is(d2, "floats") and _is(mass, "floats") and d2.ndim == 1 and len(d2) > 0 and d2.shape == mass.shape


_SCALARS: dict[str, Any] = {"number": float, _UP: float, "count": int, "truth": bool}
_LISTS, _ARRAYS = {"numbers": float, "names": str}, {"floats": "f", "ints": "i"}
_AS: dict[str, Callable[[Any], Any]] = {"names": lambda names: np.array(names, object), "sketch": lambda d: Sketch(**d)}
