"""Which classes a model file may hold, and what there is to keep of each.

A kind is a word of `_WORDS` or "sketch", with a type and a range; arrays have their shape in brackets: K clusters, p
features, n training rows. "?" marks what may be absent, as after an interrupted fit, or None, "|" alternatives.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import preprocessing

from tkmeans import baselines, estimators
from tkmeans.estimators.validation import LEAST_DOF
from tkmeans.fitted import Sketch
from tkmeans.persistence.encoding import ModelFileError
from tkmeans.stats import Array

Fields = dict[str, str]  # fitted attributes, and their kinds

_RECIPES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
ESTIMATORS, SCALERS = _RECIPES["estimators"], _RECIPES["scalers"]


def class_of(name: str) -> type[Any]:
    """The class of this name."""
    return next(getattr(home, name) for home in (estimators, baselines, preprocessing) if hasattr(home, name))


def kinds(name: str, params: dict[str, Any]) -> Fields:
    """The fitted attributes of a class with these parameters, and their kinds."""
    shape = _RECIPES["covariances"].get(params.get("covariance_type", ""), "")
    forms = {"covariances": shape, "covariance?": shape.replace("K,", "").replace("K", "1") + "?"}  # of one cluster
    return {field: forms.get(kind, kind) for field, kind in (ESTIMATORS | SCALERS)[name].items()}


def restored(field: str, value: Any, kind: str, sizes: dict[str, int]) -> Any:
    """A decoded value as the estimator has it, of its kind and shape; its first array tells the number of rows."""
    for each in kind.removesuffix("?").split("|"):
        word, _, inside = each.removesuffix("]").partition("[")
        dims, shape = (inside.split(","), np.shape(value)) if inside else ([], ())
        wanted = [1 if dim == "1" else sizes.setdefault(dim, n) for dim, n in zip(dims, shape, strict=False)]
        fits = len(shape) == len(dims) and [*shape] == wanted
        if fits and _is(value, word) and (word != "labels" or np.all(value < sizes["K"])):
            return _AS.get(word, lambda same: same)(value)
    known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    raise ModelFileError(f"has a {field} that is not {kind.removesuffix('?')} with {known}")


def _is(value: Any, word: str) -> bool:
    """Whether a value has the type and the range of this word, whatever its shape."""
    if word in _WORDS:
        kind, in_range = _WORDS[word]
        found = value.dtype.kind if isinstance(value, np.ndarray) else type(value)
        found = [*{*map(type, value)}] if found is list else found
        return found == kind and bool(np.all(in_range(value)))
    if not isinstance(value, dict) or set(value) != set(Sketch._fields):
        return False
    d2, mass = value["d2"], value["mass"]
    there = all(_is(each, "sizes") and each.dtype == np.float64 and each.ndim == 1 for each in (d2, mass))
    return there and 0 < len(d2) == len(mass) and bool(np.all(np.diff(d2) >= 0)) and 0 < np.sum(mass) < np.inf


def _of_covariance(matrices: Array) -> bool:
    """Whether matrices are symmetric with positive variances, and positive definite but for rounding."""
    variances = np.diagonal(matrices, axis1=-2, axis2=-1)
    if not np.all(np.isfinite(matrices)) or not np.all(_of_scale(variances)):
        return False
    deviations = np.sqrt(variances)
    correlations = matrices / deviations[..., :, None] / deviations[..., None, :]
    symmetric = np.allclose(correlations, correlations.swapaxes(-1, -2), rtol=0, atol=1e-9)
    return symmetric and bool(np.min(np.linalg.eigvalsh(correlations)) > -1e-10)


def _of_scale(x: Any) -> Any:
    return (x > 1e-280) & (x < 1e280)  # no variance of a fit is beyond, and what is computed of one stays a number


# The type, of a list that of its parts in brackets, of an array its letter; and the range.
_WORDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "number": (float, np.isfinite),
    "number from 0 on": (float, lambda x: 0 <= x < np.inf),
    "share": (float, lambda x: 0 <= x <= 1),
    "number above 0": (float, _of_scale),
    "degrees of freedom": (float, lambda x: LEAST_DOF <= x < np.inf),
    "count": (int, lambda x: 0 <= x < 2**63),
    "count from 1 on": (int, lambda x: 1 <= x < 2**63),
    "truth": (bool, np.isfinite),
    "numbers": ([float], np.isfinite),
    "noise shares": ([float], lambda x: len(x) == 2 and min(x) > 0 and sum(x) < 1),
    "names": ([str], len),
    "output": (dict, lambda x: [*x] == ["transform"] and x["transform"] in ("default", "pandas", "polars")),
    "floats": ("f", np.isfinite),
    "sizes": ("f", lambda x: (x >= 0) & (x < np.inf)),
    "scales": ("f", _of_scale),
    "dofs": ("f", lambda x: (x >= LEAST_DOF) & (x < np.inf)),
    "weights": ("f", lambda x: (x >= 0) & (abs(np.sum(x) - 1) < 1e-6)),
    "pvalues": ("f", lambda x: np.isnan(x) | ((x >= 0) & (x <= 1))),
    "matrices": ("f", _of_covariance),
    "ints": ("i", lambda x: x >= 0),
    "labels": ("i", lambda x: x >= 0),
}
_AS: dict[str, Callable[[Any], Any]] = {"names": lambda names: np.array(names, object), "sketch": lambda d: Sketch(**d)}
