"""What people may pass, and what they are told otherwise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning

from tkmeans.estimators.numbers import as_numbers
from tkmeans.sources import Source, Survey
from tkmeans.sources.base import to_numpy
from tkmeans.stats import Array, namespace

# Between a user's line and a warning there is code of ours and, where it calls us, of scikit-learn.
_LIBRARIES = (Path(__file__).parents[1], Path(sklearn.__file__).parent)

# Weights beyond these, times the square of a far row's distance, leave what a number of that type can hold.
WEIGHTS = {"float64": (1e-50, 1e50), "float32": (1e-20, 1e10)}

# The spread of the rows. Squares of the horizon (`tkmeans.stats`) in this unit are numbers, and so is its inverse.
SPREADS = {"float64": (1e-120, 1e50), "float32": (1e-30, 1e30)}

LEAST_DOF = 1e-6


_heard: ContextVar[bool] = ContextVar("heard", default=True)


@contextmanager
def unheard() -> Iterator[None]:
    """Let nobody hear of doubtful fits in the block; unlike the filters of `warnings`, in this thread alone."""
    before = _heard.set(False)
    try:
        yield
    finally:
        _heard.reset(before)


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn of a doubtful fit, at the line of the user's code that led here."""
    if not _heard.get():
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _in_libraries(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _in_libraries(file: str) -> bool:
    return any(Path(file).is_relative_to(home) for home in _LIBRARIES)


def warn_of_early_end(estimator: Any, *, time_is_up: bool = False) -> None:
    """Say that a fit ran out of iterations or of time, and what to do."""
    good_enough = f", or tol={estimator.tol} if the answer is good enough" if hasattr(estimator, "tol") else ""
    limit, amount = "max_iter", f"{estimator.max_iter} iterations"
    if time_is_up:
        limit, amount = "max_time", f"{estimator.max_time} seconds ({estimator.n_iter_} iterations)"
    warn_user(f"{type(estimator).__name__} did not converge in {limit}={amount}; raise {limit}{good_enough}.")


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


def check_n_jobs(value: Any) -> None:
    """Complain unless `value` is None or a number of threads, as joblib counts them."""
    if value is not None and (not isinstance(value, Integral) or isinstance(value, (bool, np.bool_))):
        raise TypeError(f"n_jobs must be an integer or None, got {value!r}")
    if value == 0:
        raise ValueError("n_jobs must be positive, negative (-1 means all cores) or None, got 0")


def check_dof(value: Any) -> None:
    """Complain unless `value` is "estimate" or a positive number."""
    if isinstance(value, str):
        check_choice("dof", value, ["estimate"], hint=" or a positive number (1.0 is the paper's fast setting)")
    else:
        check_fixed_dof(value, hint=' or "estimate" (1.0 is the paper\'s fast setting)')


def check_fixed_dof(value: Any, *, hint: str) -> None:
    """Complain unless `value` is a positive number, and not so small that a density has no numbers."""
    check_real("dof", value, positive=True, hint=hint)
    if value < LEAST_DOF:
        raise ValueError(f"dof must be at least {LEAST_DOF:g}, got {value!r}; 1.0 has the heaviest tails of use")


def checked_sample_weight(sample_weight: Any, X: Array) -> Array | None:
    """Weights in X's type, one per row and not negative; None stands for one each."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    if not isinstance(X, np.ndarray):  # checked as an array of NumPy, and then taken to where X is
        xp = namespace(X)
        single = X.dtype == xp.float32
        weight = checked_weight(to_numpy(sample_weight), X.shape[0], np.float32 if single else np.float64)
        return xp.asarray(weight, dtype=X.dtype, device=X.device)
    return checked_weight(sample_weight, len(X), X.dtype)


def checked_weight(sample_weight: Any, n_rows: int, dtype: Any) -> Array:
    """Weights as an array of NumPy, one per row and not negative."""
    weight = np.asarray(as_numbers(sample_weight, "sample_weight"))
    if weight.dtype.kind == "c":
        raise TypeError("sample_weight holds complex numbers; say which real ones you mean")
    try:
        weight = np.ascontiguousarray(weight, dtype=None if weight.dtype.name in WEIGHTS else np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"sample_weight must be an array of numbers: {error}") from None
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one weight per row, got {weight.shape}")
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight must be finite; drop these rows or give them the weight 0")
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must not be negative, got {weight.min()}; a weight of 0 ignores a row")
    if not np.any(weight):
        raise ValueError("sample_weight must be positive for at least one row, got zeros only")
    _check_range(np.min(weight[weight > 0]), np.max(weight), np.dtype(dtype).name)
    return weight.astype(dtype, copy=False)


def _check_range(lightest: float, heaviest: float, dtype: str) -> None:
    """Complain of weights that leave no room for what is made of them."""
    least, most = WEIGHTS[dtype]
    if lightest < least or heaviest > most:
        raise ValueError(
            f"sample_weight must be 0 or between {least:g} and {most:g} for rows of {dtype}, got "
            f"weights from {lightest:.3g} to {heaviest:.3g}; divide them by a number of that size"
        )


def check_enough_rows(n_clusters: int, X: Array, weight: Array | None) -> None:
    """Complain if there are fewer rows than clusters."""
    _check_count(n_clusters, len(X) if weight is None else int(np.count_nonzero(weight)), weight is not None)


def check_survey(found: Survey, n_clusters: int, names: Array | None, dtype: str) -> None:
    """Complain of rows that no fit could be made of."""
    if np.any(found.infinite):
        raise ValueError(f"X has infinite values in {_features(found.infinite, names)}; clip them or mark them as NaN")
    if not (np.isfinite(found.total) and np.isfinite(found.least)):
        raise ValueError("sample_weight must be finite; drop these rows or give them the weight 0")
    if found.least < 0:
        raise ValueError(f"sample_weight must not be negative, got {found.least}; a weight of 0 ignores a row")
    if found.total == 0 and found.n_rows:
        raise ValueError("sample_weight must be positive for at least one row, got zeros only")
    _check_range(found.lightest, found.heaviest, dtype)
    _check_count(n_clusters, found.n_counted, found.n_counted < found.n_rows)
    lost = found.observed == 0
    if np.any(lost):
        raise ValueError(f"{_features(lost, names)} has no observed value in any row; drop it")


def check_columns(estimator: Any, source: Source, *, reset: bool) -> None:
    """Keep the number and names of the features, or complain if they are not those of the fit."""
    if reset:
        estimator.n_features_in_ = source.n_features
        estimator.__dict__.pop("feature_names_in_", None)
        if source.names is not None:
            estimator.feature_names_in_ = np.array(source.names, dtype=object)
    elif source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _check_count(n_clusters: int, n_rows: int, weighted: bool) -> None:
    if n_rows < n_clusters:
        counted = f"{n_rows} rows of positive sample_weight" if weighted else f"n_samples={n_rows}"
        raise ValueError(f"{counted} should be >= n_clusters={n_clusters}; choose at most {n_rows} clusters")


def _features(marked: Array, names: Any) -> str:
    return "feature " + ", ".join(str(j) if names is None else repr(str(names[j])) for j in np.flatnonzero(marked))


def check_spread(spread: float, dtype: str = "float64") -> None:
    """Complain if squared distances, up to those of the farthest row, would not fit into a number."""
    least, most = SPREADS[dtype]
    if not least < spread < most:
        raise ValueError(
            f"the spread of X is {spread:.3g}, and squared distances do not fit into {dtype} unless it is between "
            f"{least:g} and {most:g}; rescale X first"
        )


def observed_features(X: Array) -> Any:
    """How many features each row has: one number if all have all, so that complete data cost nothing."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if not bool(xp.isnan(xp.sum(X))):  # one pass, no mask; a sum that overflows both ways is looked at again
            return int(X.shape[1])
    missing = xp.isnan(X)
    return xp.sum(xp.astype(~missing, xp.int64), axis=1) if bool(xp.any(missing)) else int(X.shape[1])


def warn_of_empty_rows(n_empty: int, n_rows: int, first: Collection[int]) -> None:
    """Say what becomes of rows that have no observed value."""
    if n_empty:
        named = ", ".join(map(str, first)) + (", ..." if n_empty > len(first) else "")
        warn_user(
            f"{n_empty} of {n_rows} rows without a single observed value (row {named}): they do not move the "
            "clusters, and nothing tells which is theirs; their probabilities are the cluster weights, and their "
            "p-values NaN.",
            UserWarning,
        )
