"""Warnings about a fit, attributed to the line of the user's code that led to it."""

import sys
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning

from tkmeans.stats import Array

# Between a user's line and a warning there is code of ours and, where it calls us, of scikit-learn.
_LIBRARIES = (Path(__file__).parent, Path(sklearn.__file__).parent)

TINY_CLUSTER = 0.02  # of an equal share of the rows: a cluster with less holds hardly any
CLEARLY_BETTER = 0.02  # nats per row: clusters better by more are the better ones, even if one search alone found them


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn of a doubtful fit, at the line of the user's code that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and any(Path(frame.f_code.co_filename).is_relative_to(home) for home in _LIBRARIES):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_of_early_end(estimator: Any, *, time_is_up: bool = False) -> None:
    """Warn that a fit ran out of iterations or of time, and what to do."""
    good_enough = f", or tol={estimator.tol} if the answer is good enough" if hasattr(estimator, "tol") else ""
    limit, amount = "max_iter", f"{estimator.max_iter} iterations"
    if time_is_up:
        limit, amount = "max_time", f"{estimator.max_time} seconds ({estimator.n_iter_} iterations)"
    words = f"{type(estimator).__name__} did not converge in {limit}={amount}; raise {limit}{good_enough}."
    warn_user(getattr(estimator, "_not_converged", "") + words)


def warn_of_empty_rows(n_empty: int, n_rows: int, first: Collection[int]) -> None:
    """Warn of rows that have no observed value."""
    named = ", ".join(map(str, first)) + (", ..." if n_empty > len(first) else "")
    found = f"{n_empty} of {n_rows} rows without a single observed value (row {named}): they do not influence"
    effect = "the clusters; their probabilities are the cluster weights, and their p-values are NaN."
    warn_user(f"{found} {effect}", UserWarning)


def warn_of_tiny_clusters(sizes: Array) -> None:
    """Warn of centres that hardly any row belongs to: most likely they lie on outliers."""
    if len(tiny := np.flatnonzero(sizes < TINY_CLUSTER * sizes.sum() / len(sizes))):
        named = ", ".join(f"{k} ({sizes[k]:g})" for k in tiny[:5]) + (", ..." if len(tiny) > 5 else "")
        found = f"{len(tiny)} of {len(sizes)} clusters hold hardly any or none of the {sizes.sum():g} rows: {named}."
        warn_user(f"{found} They may lie on outliers, or there are fewer clusters: try a smaller number.")
