"""Hostile inputs of a fit: rows, their container, weights and parameters.

A `HostileCase` is made from a `random.Random`. Hypothesis hands in one that it controls, and so can shrink a
case; `benchmarks.trust` hands in one with a seed, so that a case can be repeated by its number.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from support.hostile_values import (
    CONTAINERS,
    DTYPES,
    INVALID_TABLES,
    INVALID_WEIGHTS,
    ROW_KINDS,
    WEIGHTS,
    converted,
    rows_of_kind,
)
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids


class HostileCase(NamedTuple):
    """One fit, and what must become of it."""

    kind: str  # what is hostile about it
    estimator: Any
    X: Any
    weight: Any = None
    batches: int = 0  # so many calls of partial_fit in place of one of fit
    rows: Any = None  # the numbers in X as a plain array of floats, NaN for missing; None if X is no table
    mass: Any = None  # the weights as an array; None for one each
    refused: bool = False  # whether this must be refused
    given: Any = None  # ordinary rows to fit first, if X is only for predict and the like


# ---- parameters ----------------------------------------------------------------------------


def _raising(X, n_clusters, random_state):
    raise ValueError("init of the user's own")


def _start(shape, value=0.0):
    return lambda X, n_clusters, random_state: np.full(shape(X, n_clusters), value)


COUNT = [0, -1, 2.5, "3", None, True, np.nan, 1j, [2], 10**9]
POSITIVE = [0.0, -1.0, np.nan, np.inf, "1", True, 1j, [1.0], np.array([1.0, 2.0])]
WORD = ["nonsense", "", 3, b"auto", ["auto"]]
INVALID_PARAMETERS = {
    "n_clusters": COUNT,
    "n_components": COUNT,
    "dof": [*POSITIVE, 1e-300, "guess", None],
    "tol": [-1e-9, np.nan, np.inf, "1", None, True, 1j],
    "reg_covar": POSITIVE[1:],  # 0 is none
    "max_iter": COUNT[1:-1],  # 0 gives the start of a mixture
    "n_init": COUNT[:-1],
    "init": [
        *WORD[:2],
        np.array("k-means++"),
        5,
        _raising,
        _start(lambda X, K: (K + 1, X.shape[1])),
        _start(lambda X, K: (K, X.shape[1]), np.nan),
        _start(lambda X, K: (K, X.shape[1]), "text"),
        _start(lambda X, K: (K, X.shape[1]), 1j),
        _start(lambda X, K: (0, 0)),
        lambda X, n_clusters, random_state: None,
        lambda: None,
    ],
    "means_init": ["k-means++", 5, np.zeros((1, 9)), np.array([["a"]]), np.array([[np.nan]])],
    "init_params": WORD,
    "covariance_type": WORD,
    "cluster_weights": WORD,
    "engine": WORD,
    "metric": WORD,
    "method": WORD,
    "batch_size": COUNT[:-1],
    "init_size": [c for c in COUNT[:-1] if c is not None],
    "max_no_improvement": [c for c in COUNT[:-1] if c is not None],
    "half_life": POSITIVE,
    "random_state": [-1, "seed", 2.5, [1.5], 2**40, np.random.default_rng(0)],
    "n_jobs": [0, "two", 1.5],
}

# Unusual but valid: these lead to a result, or to a warning that the fit was cut short.
UNUSUAL_PARAMETERS = {
    "dof": [1e-5, 1e-3, 0.5, 3, np.float32(3), Fraction(5, 2), 1e6, 1e300, np.int64(4)],
    "tol": [0, 1e-300, 1e300, np.float32(1e-3)],
    "reg_covar": [1e-300, 1e-12, 1.0, 1e6, 1e300],
    "max_iter": [1, 2, np.int8(5)],
    "n_init": [2, np.int64(3)],
    "random_state": [0, 2**32 - 1, np.random.RandomState(3)],
    "half_life": [1e-300, 0.5, 1e300],
    "batch_size": [1, 3, 10**9],
    "init_size": [1, 7, 10**9],
    "n_jobs": [1, 2, -1, None],
    "engine": ["native", "reference"],
    "init": ["far away", "one point", "in one corner"],
    "means_init": ["far away", "one point", "in one corner"],
}


def _estimator(random: Random, *, ordinary: bool) -> Any:
    k = random.randint(1, 5)
    seed, max_iter = random.getrandbits(16), random.choice([2, 5, 20])
    dof = random.choice(["estimate", "estimate", 1.0, 4.0])
    name = random.choice(["TKMeans"] * 3 + ["FastTKMeans", "MiniBatchTKMeans", "StudentTMixture"] * 2 + ["baseline"])
    plain = {"random_state": seed, "max_iter": max_iter}
    inits = ["robust", "k-means++"] if ordinary else ["robust", "robust", "k-means++", "random", "uniform"]
    init = random.choice(inits)
    n_init = {"n_init": 2} if init in ("random", "uniform") else {}
    if name == "TKMeans":
        weights = random.choice(["auto", "equal", "estimate"])
        accelerate = random.random() < 0.7
        return TKMeans(k, dof=dof, cluster_weights=weights, accelerate=accelerate, init=init, **n_init, **plain)
    if name == "FastTKMeans":
        return FastTKMeans(k, dof=random.choice([0.5, 1.0, 4.0]), init=init, **n_init, **plain)
    if name == "MiniBatchTKMeans":
        sizes = random.choice([{}, {"batch_size": 8, "init_size": 10}])
        half_life = random.choice([None, 20.0])
        return MiniBatchTKMeans(k, dof=dof, half_life=half_life, init=init, **n_init, **sizes, **plain)
    if name == "StudentTMixture":
        kind = random.choice(["full", "tied", "diag", "spherical"])
        start = random.choice(["robust", "robust", "kmeans", "k-means++", "random", "random_from_data"])
        parts = {"shared_dof": random.random() < 0.7, "noise": random.choice(["auto", True, False])}
        parts |= {"size_ratio": random.choice([1.0, 25.0, np.inf]), "shrinkage": random.choice([0.1, 1.0])}
        return StudentTMixture(k, covariance_type=kind, dof=dof, init_params=start, **parts, **plain)
    start = random.choice(["k-means++", "random"])
    if random.random() < 0.5:
        return KMedians(k, init=start, n_init=2, **plain)
    metric = random.choice(["euclidean", "cityblock", "sqeuclidean", "cosine"])
    return KMedoids(k, metric=metric, method=random.choice(["swap", "alternate"]), init=start, n_init=2, **plain)


def _starting_points(name: str, X: np.ndarray, n_clusters: int) -> np.ndarray:
    if name == "far away":
        return np.full((n_clusters, X.shape[1]), 1e300)
    if name == "one point":
        return np.tile(X[:1], (n_clusters, 1))
    return X.max(axis=0) + np.arange(n_clusters)[:, None]


# ---- cases -----------------------------------------------------------------------------------


def hostile_case(random: Random) -> HostileCase:
    """One hostile input of any kind."""
    return random.choice(CASE_KINDS)(random)


def _case_of_values(random: Random) -> HostileCase:
    kind = random.choice(list(ROW_KINDS))
    X = rows_of_kind(random, kind)
    single = random.random() < 0.25
    if single:
        X = converted(X, np.dtype("f4"))
    estimator, batches = _estimator(random, ordinary=False), 0
    if hasattr(estimator, "partial_fit") and random.random() < 0.5:
        batches = random.randint(1, 4)
    return HostileCase(f"rows: {kind}", estimator, X, batches=batches, rows=X, refused=bool(np.any(np.isinf(X))))


def _case_of_containers(random: Random) -> HostileCase:
    values = random.choice(["ordinary", "duplicates", "holes", "far rows", "heavy tails"])
    name, convert = random.choice(list(CONTAINERS.items()))
    rows = rows_of_kind(random, values)
    return HostileCase(f"container: {name}", _estimator(random, ordinary=True), convert(rows), rows=rows)


def _case_of_types(random: Random) -> HostileCase:
    name, convert = random.choice(list(DTYPES.items()))
    X = convert(rows_of_kind(random, random.choice(["ordinary", "heavy tails", "huge", "digits lost", "holes"])))
    with np.errstate(over="ignore"):
        rows = X.astype(np.float32 if X.dtype.itemsize == 4 and X.dtype.kind == "f" else np.float64)
    return HostileCase(
        f"type: {name}", _estimator(random, ordinary=True), X, rows=rows, refused=bool(np.any(np.isinf(rows)))
    )


def _case_of_invalid_tables(random: Random) -> HostileCase:
    name, convert = random.choice(list(INVALID_TABLES.items()))
    return HostileCase(
        f"no table: {name}", _estimator(random, ordinary=True), convert(rows_of_kind(random, "ordinary")), refused=True
    )


def _case_of_weights(random: Random) -> HostileCase:
    X = rows_of_kind(random, random.choice(["ordinary", "duplicates", "holes", "far rows"]))
    wrong = random.random() < 0.4
    name, make = random.choice(list((INVALID_WEIGHTS if wrong else WEIGHTS).items()))
    weight = make(X, random)
    mass = None if wrong else np.broadcast_to(np.asarray(weight, float), len(X))
    if random.random() < 0.2:
        X = converted(X, np.dtype("f4"))
        wrong = wrong or bool(np.any(np.isinf(X)))
    return HostileCase(
        f"weights: {name}", _estimator(random, ordinary=True), X, weight, rows=X, mass=mass, refused=wrong
    )


def _case_of_parameters(random: Random) -> HostileCase:
    X = rows_of_kind(random, "ordinary")
    estimator = _estimator(random, ordinary=True)
    wrong = random.random() < 0.6
    choices = {
        name: values
        for name, values in (INVALID_PARAMETERS if wrong else UNUSUAL_PARAMETERS).items()
        if name in estimator.get_params()
    }
    name = random.choice(list(choices))
    value = random.choice(choices[name])
    if not wrong and name in ("init", "means_init"):
        k = getattr(estimator, "n_clusters", None) or estimator.n_components
        value = _starting_points(value, X, k)
    estimator.set_params(**{name: value})
    if name == "init" and callable(value):
        estimator.set_params(n_init=1)
    refused = wrong and not (name == "n_jobs" and value is None)
    return HostileCase(f"parameter: {name}", estimator, X, rows=X, refused=refused)


def _case_of_prediction(random: Random) -> HostileCase:
    """An ordinary fit, and then hostile rows for predict and the like."""
    given = np.random.default_rng(random.getrandbits(32)).standard_normal((40, 3)) * random.choice(
        [1e-90, 1e-9, 1.0, 1e9, 1e45]
    )
    estimator = _estimator(random, ordinary=True)
    if random.random() < 0.5:
        name, convert = random.choice(list(INVALID_TABLES.items()))
        return HostileCase(f"predict no table: {name}", estimator, convert(given[:9]), refused=True, given=given)
    kind = random.choice(list(ROW_KINDS))
    rows = ROW_KINDS[kind](np.random.default_rng(random.getrandbits(32)), random.choice([1, 5, 30]), 3)
    if random.random() < 0.3:
        rows = converted(rows, np.dtype("f4"))
    return HostileCase(
        f"predict rows: {kind}", estimator, rows, rows=rows, refused=bool(np.any(np.isinf(rows))), given=given
    )


CASE_KINDS = [_case_of_values] * 6 + [_case_of_weights, _case_of_parameters] * 2
CASE_KINDS += [_case_of_containers, _case_of_types, _case_of_invalid_tables, _case_of_prediction]

any_hostile_case = st.randoms(use_true_random=False).map(hostile_case)
