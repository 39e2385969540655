"""Checks of estimator parameters, and their error messages."""

import os
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from tkmeans import engines
from tkmeans.fitting.starts import SEEDINGS

LEAST_DOF = 1e-6

Check = Callable[[str, Any], None]  # complains of a parameter's value, by its name


def check_params(estimator: Any, checks: Mapping[str, Check]) -> None:
    """Complain about parameters that make no sense; defaults do."""
    defaults = type(estimator).__init__.__kwdefaults__ or {}
    for name, check in checks.items():
        if (value := getattr(estimator, name)) is not defaults.get(name, check):
            check(name, value)


def check_integer(name: str, value: Any, *, least: int, auto: bool = False, bits: int = 63) -> None:
    """Complain unless `value` is an integer of at least `least` and below 2**bits, or with `auto` this word."""
    if auto and isinstance(value, str) and value == "auto":
        return
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    if not whole or not least <= value < 2**bits:
        below, word = f", below 2**{bits}" * (whole and value > least), ' or "auto"' * auto
        wanted = f"an integer of at least {least}{below}{word}"
        raise (ValueError if whole else TypeError)(f"{name} must be {wanted}, got {value!r}")


def check_real(name: str, value: Any, *, positive: bool, hint: str = "") -> None:
    """Complain unless `value` is a finite number, positive or at least not negative."""
    wanted = "a positive number" if positive else "a number of at least 0"
    real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    too_large = isinstance(value, int) and value > sys.float_info.max  # and for other types float() is infinite
    if not real or too_large or not 0 <= float(value) < np.inf or (positive and value == 0):
        raise (ValueError if real else TypeError)(f"{name} must be {wanted}{hint}, got {value!r}")


def check_choice(name: str, value: Any, choices: Collection[str] = (), *, hint: str = "") -> None:
    """Complain unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}{hint}, got {value!r}")


def check_n_jobs(name: str, value: Any) -> None:
    """Complain unless `value` is None or a number of threads, as joblib counts them."""
    if value is not None and (not isinstance(value, Integral) or isinstance(value, (bool, np.bool_))):
        raise TypeError(f"{name} must be an integer or None, got {value!r}")
    if value == 0:
        raise ValueError(f"{name} must be positive, negative (-1 means all cores) or None, got 0")


def check_dof(name: str, value: Any) -> None:
    """Complain unless `value` is "estimate" or a positive number."""
    if isinstance(value, str):
        check_choice(name, value, ["estimate"], hint=" or a positive number (1.0 is the paper's fast setting)")
    else:
        check_fixed_dof(name, value, hint=' or "estimate" (1.0 is the paper\'s fast setting)')


def check_fixed_dof(name: str, value: Any, *, hint: str) -> None:
    """Complain unless `value` is a positive number, and not so small that a density has no numbers."""
    check_real(name, value, positive=True, hint=hint)
    if value < LEAST_DOF:
        raise ValueError(f"{name} must be at least {LEAST_DOF:g}, got {value!r}; 1.0 has the heaviest tails of use")


def check_ratio(name: str, value: Any) -> None:
    """Complain unless `value` is a number of at least 1, or infinite."""
    if not isinstance(value, Real) or value != np.inf:
        check_real(name, value, positive=True)
        if value < 1:
            raise ValueError(f"{name} must be at least 1, or inf for no bound, got {value!r}")


def check_auto(name: str, value: Any) -> None:
    """Complain unless `value` is "auto", True or False."""
    if not isinstance(value, (bool, np.bool_)):
        check_choice(name, value, ["auto"], hint=", True or False")


def check_switch(name: str, value: Any) -> None:
    """Complain unless `value` is True or False, or 1 or 0 in their place."""
    if not isinstance(value, (bool, np.bool_, Integral)) or value not in (0, 1):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_verbose(name: str, value: Any) -> None:
    """Complain unless `value` is True, False or a number of at least 0."""
    if not isinstance(value, (bool, np.bool_)):
        check_integer(name, value, least=0)


def check_path(name: str, value: Any) -> None:
    """Complain unless `value` is the path of a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, got {value!r}")
    if not os.fspath(value) or "\0" in str(value):
        raise ValueError(f"{name} must be a path, and {value!r} names no file")


def check_clusterer(name: str, value: Any, methods: tuple[str, ...] = ("predict", "fit_predict")) -> None:
    """Complain unless `value` is an estimator that clusters by one of these methods, fitted or not."""
    if isinstance(value, type) or not any(hasattr(value, method) for method in methods):
        raise TypeError(f"{name} must be a clusterer with {methods[0]}, such as TKMeans(3), got {value!r}")


def check_init(
    name: str, value: Any, *, choices: Collection[str] = SEEDINGS, hint: str = ", an array of centres or a callable"
) -> None:
    """Complain of a name that is none; what is no name is looked at when it is used."""
    if isinstance(value, str):
        check_choice(name, value, choices, hint=hint)


def optional(check: Check) -> Check:
    """The same check, for a parameter that may be None."""
    return lambda name, value: None if value is None else check(name, value)


at_least_one: Check = partial(check_integer, least=1)
one_or_auto: Check = partial(check_integer, least=1, auto=True)

# Of all clusterers that EM is run for, in the order in which complaints come.
SHARED: dict[str, Check] = dict.fromkeys(("n_clusters", "max_iter"), at_least_one)
SHARED |= {"tol": partial(check_real, positive=False), "engine": partial(check_choice, choices=engines.CHOICES)}
SHARED |= {"n_jobs": check_n_jobs, "n_init": one_or_auto, "init": check_init}
KMEANS: dict[str, Check] = {"algorithm": partial(check_choice, choices=["lloyd", "elkan"]), "copy_x": check_switch}
LONG_FITS: dict[str, Check] = {"max_time": optional(partial(check_real, positive=True, hint=" of seconds or None"))}
LONG_FITS |= {"checkpoint": optional(check_path), "verbose": check_verbose}
SEARCH: dict[str, Check] = {"bad_cells": check_auto, "min_cluster_size": optional(at_least_one)}
STUDENT: dict[str, Check] = {"dof": check_dof}
STUDENT |= {"cluster_weights": partial(check_choice, choices=["auto", "equal", "estimate"])}
