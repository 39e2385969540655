"""What people may pass, and what they are told otherwise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning

from tkmeans.stats import Array

# Between a user's line and a warning there is code of ours and, where it calls us, of scikit-learn.
_LIBRARIES = (Path(__file__).parents[1], Path(sklearn.__file__).parent)


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn of a doubtful fit, at the line of the user's code that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _in_libraries(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _in_libraries(file: str) -> bool:
    return any(Path(file).is_relative_to(home) for home in _LIBRARIES)


def warn_of_early_end(estimator: Any) -> None:
    """Say that a fit ran out of iterations, and what to do."""
    good_enough = f", or tol={estimator.tol} if the answer is good enough" if hasattr(estimator, "tol") else ""
    warn_user(
        f"{type(estimator).__name__} did not converge in max_iter={estimator.max_iter} iterations; "
        f"raise max_iter{good_enough}."
    )


def check_integer(name: str, value: Any, *, least: int) -> None:
    """Complain unless `value` is an integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer of at least {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")


def check_real(name: str, value: Any, *, positive: bool, hint: str = "") -> None:
    """Complain unless `value` is a finite number, positive or at least not negative."""
    wanted = "a positive number" if positive else "a number of at least 0"
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be {wanted}{hint}, got {value!r}")
    if not np.isfinite(float(value)) or value < 0 or (positive and value == 0):
        raise ValueError(f"{name} must be {wanted}{hint}, got {value!r}")


def check_choice(name: str, value: Any, choices: Collection[str], *, hint: str = "") -> None:
    """Complain unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        named = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {named}{hint}, got {value!r}")


def check_dof(value: Any) -> None:
    """Complain unless `value` is "estimate" or a positive number."""
    if isinstance(value, str):
        check_choice("dof", value, ["estimate"], hint=" or a positive number (1.0 is the paper's fast setting)")
    else:
        check_real("dof", value, positive=True, hint=' or "estimate" (1.0 is the paper\'s fast setting)')


def checked_sample_weight(sample_weight: Any, X: Array) -> Array | None:
    """Weights in X's type, one per row and not negative; None stands for one each."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    weight = np.ascontiguousarray(sample_weight, dtype=X.dtype)
    if weight.shape != (len(X),):
        raise ValueError(f"sample_weight must have shape ({len(X)},), one weight per row, got {weight.shape}")
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight must be finite; drop these rows or give them the weight 0")
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must not be negative, got {weight.min()}; a weight of 0 ignores a row")
    if not np.any(weight):
        raise ValueError("sample_weight must be positive for at least one row, got zeros only")
    return weight


def check_enough_rows(n_clusters: int, X: Array, weight: Array | None) -> None:
    """Complain if there are fewer rows than clusters."""
    n_rows = len(X) if weight is None else int(np.count_nonzero(weight))
    if n_rows < n_clusters:
        counted = f"n_samples={n_rows}" if weight is None else f"{n_rows} rows of positive sample_weight"
        raise ValueError(f"{counted} should be >= n_clusters={n_clusters}; choose at most {n_rows} clusters")


def check_features_observed(X: Array, weight: Array | None, names: Array | None) -> None:
    """Complain if a feature is missing in every row that counts."""
    if not _has_nan(X):
        return
    lost = np.all(np.isnan(X if weight is None else X[weight > 0]), axis=0)
    if np.any(lost):
        named = ", ".join(str(j) if names is None else repr(str(names[j])) for j in np.flatnonzero(lost))
        raise ValueError(f"feature {named} has no observed value in any row; drop it")


def check_spread(spread: float) -> None:
    """Complain if squared distances would not fit into a float64."""
    if not 1e-140 < spread < 1e140:
        raise ValueError(f"the spread of X is {spread:.3g}, whose square float64 cannot hold; rescale X first")


def observed_features(X: Array) -> Any:
    """How many features each row has: one number if all have all, so that complete data cost nothing."""
    return np.sum(~np.isnan(X), axis=1) if _has_nan(X) else X.shape[1]


def warn_of_empty_rows(n_seen: Any) -> None:
    """Say what becomes of rows that have no observed value; `n_seen` as `observed_features` gives it."""
    empty = np.flatnonzero(np.asarray(n_seen) == 0)
    if len(empty):
        named = ", ".join(str(row) for row in empty[:5]) + (", ..." if len(empty) > 5 else "")
        warn_user(
            f"{len(empty)} of {len(n_seen)} rows without a single observed value (row {named}): they do not move the "
            "clusters, and nothing tells which is theirs; their probabilities are the cluster weights, and their "
            "p-values NaN.",
            UserWarning,
        )


def _has_nan(X: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(np.sum(X)):  # one pass, no mask; a sum that overflows both ways is looked at again
            return False
    return bool(np.any(np.isnan(X)))
