"""Inputs that nobody should pass and somebody will: rows, what they come in, weights and parameters.

A `Case` is made from a `random.Random`. Hypothesis hands in one that it controls, and so can shrink a
case; `benchmarks.trust` hands in one with a seed, so that a case can be had again by its number.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from nasty import CLOTHES, NONSENSE, TYPES, VALUES, WEIGHTS, WRONG_WEIGHTS, as_type, values_of

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids


class Case(NamedTuple):
    """One fit, and what must become of it."""

    kind: str  # what is hostile about it, in a few words
    estimator: Any
    X: Any
    weight: Any = None
    batches: int = 0  # so many calls of partial_fit in place of one of fit
    rows: Any = None  # what X says, as a plain array of floats with NaN for missing; None if it says nothing
    mass: Any = None  # what the weights say, likewise; None for one each
    refused: bool = False  # whether this must be refused
    given: Any = None  # ordinary rows to fit first, if X is only looked at


# ---- parameters ----------------------------------------------------------------------------


def _raising(X, n_clusters, random_state):
    raise ValueError("init of the user's own")


def _start(shape, value=0.0):
    return lambda X, n_clusters, random_state: np.full(shape(X, n_clusters), value)


NAMED = ["n_clusters", "n_components"]
COUNT = [0, -1, 2.5, "3", None, True, np.nan, 1j, [2], 10**9]
POSITIVE = [0.0, -1.0, np.nan, np.inf, "1", True, 1j, [1.0], np.array([1.0, 2.0])]
WORD = ["nonsense", "", 3, b"auto", ["auto"]]
WRONG = {
    "n_clusters": COUNT,
    "n_components": COUNT,
    "dof": [*POSITIVE, 1e-300, "guess", None],
    "tol": [-1e-9, np.nan, np.inf, "1", None, True, 1j],
    "reg_covar": POSITIVE,
    "max_iter": COUNT[:-1],
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

# Odd, but right: these lead to a result, or to a warning that the fit was cut short.
ODD = {
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


def _estimator(random: Random, *, tame: bool) -> Any:
    k = random.randint(1, 5)
    seed, max_iter = random.getrandbits(16), random.choice([2, 5, 20])
    dof = random.choice(["estimate", "estimate", 1.0, 4.0])
    name = random.choice(["TKMeans"] * 3 + ["FastTKMeans", "MiniBatchTKMeans", "StudentTMixture"] * 2 + ["baseline"])
    plain = {"random_state": seed, "max_iter": max_iter}
    inits = ["robust", "k-means++"] if tame else ["robust", "robust", "k-means++", "random", "uniform"]
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
        start = random.choice(["t-k-means", "k-means++", "random"])
        shared = random.random() < 0.3
        return StudentTMixture(k, covariance_type=kind, dof=dof, shared_dof=shared, init_params=start, **plain)
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


def case(random: Random) -> Case:
    """One hostile input of any kind."""
    return random.choice(KINDS)(random)


def _case_of_values(random: Random) -> Case:
    kind = random.choice(list(VALUES))
    X = values_of(random, kind)
    single = random.random() < 0.25
    if single:
        X = as_type(X, np.dtype("f4"))
    estimator, batches = _estimator(random, tame=False), 0
    if hasattr(estimator, "partial_fit") and random.random() < 0.5:
        batches = random.randint(1, 4)
    return Case(f"rows: {kind}", estimator, X, batches=batches, rows=X, refused=bool(np.any(np.isinf(X))))


def _case_of_clothes(random: Random) -> Case:
    values = random.choice(["ordinary", "duplicates", "holes", "far rows", "heavy tails"])
    name, dress = random.choice(list(CLOTHES.items()))
    rows = values_of(random, values)
    return Case(f"clothes: {name}", _estimator(random, tame=True), dress(rows), rows=rows)


def _case_of_types(random: Random) -> Case:
    name, dress = random.choice(list(TYPES.items()))
    X = dress(values_of(random, random.choice(["ordinary", "heavy tails", "huge", "digits lost", "holes"])))
    with np.errstate(over="ignore"):
        rows = X.astype(np.float32 if X.dtype.itemsize == 4 and X.dtype.kind == "f" else np.float64)
    return Case(f"type: {name}", _estimator(random, tame=True), X, rows=rows, refused=bool(np.any(np.isinf(rows))))


def _case_of_nonsense(random: Random) -> Case:
    name, dress = random.choice(list(NONSENSE.items()))
    return Case(f"no table: {name}", _estimator(random, tame=True), dress(values_of(random, "ordinary")), refused=True)


def _case_of_weights(random: Random) -> Case:
    X = values_of(random, random.choice(["ordinary", "duplicates", "holes", "far rows"]))
    wrong = random.random() < 0.4
    name, make = random.choice(list((WRONG_WEIGHTS if wrong else WEIGHTS).items()))
    weight = make(X, random)
    mass = None if wrong else np.broadcast_to(np.asarray(weight, float), len(X))
    if random.random() < 0.2:
        X = as_type(X, np.dtype("f4"))
        wrong = wrong or bool(np.any(np.isinf(X)))
    return Case(f"weights: {name}", _estimator(random, tame=True), X, weight, rows=X, mass=mass, refused=wrong)


def _case_of_parameters(random: Random) -> Case:
    X = values_of(random, "ordinary")
    estimator = _estimator(random, tame=True)
    wrong = random.random() < 0.6
    choices = {name: values for name, values in (WRONG if wrong else ODD).items() if name in estimator.get_params()}
    name = random.choice(list(choices))
    value = random.choice(choices[name])
    if not wrong and name in ("init", "means_init"):
        k = getattr(estimator, "n_clusters", None) or estimator.n_components
        value = _starting_points(value, X, k)
    estimator.set_params(**{name: value})
    if name == "init" and callable(value):
        estimator.set_params(n_init=1)
    refused = wrong and not (name == "n_jobs" and value is None)
    return Case(f"parameter: {name}", estimator, X, rows=X, refused=refused)


def _case_of_looking(random: Random) -> Case:
    """A sound fit, and then hostile rows to look at."""
    given = np.random.default_rng(random.getrandbits(32)).standard_normal((40, 3)) * random.choice(
        [1e-90, 1e-9, 1.0, 1e9, 1e45]
    )
    estimator = _estimator(random, tame=True)
    if random.random() < 0.5:
        name, dress = random.choice(list(NONSENSE.items()))
        return Case(f"look at no table: {name}", estimator, dress(given[:9]), refused=True, given=given)
    kind = random.choice(list(VALUES))
    rows = VALUES[kind](np.random.default_rng(random.getrandbits(32)), random.choice([1, 5, 30]), 3)
    if random.random() < 0.3:
        rows = as_type(rows, np.dtype("f4"))
    return Case(f"look at rows: {kind}", estimator, rows, rows=rows, refused=bool(np.any(np.isinf(rows))), given=given)


KINDS = [_case_of_values] * 6 + [_case_of_weights, _case_of_parameters] * 2
KINDS += [_case_of_clothes, _case_of_types, _case_of_nonsense, _case_of_looking]

hostile_cases = st.randoms(use_true_random=False).map(case)
