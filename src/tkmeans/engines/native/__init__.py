"""The reference engine's numbers at the machine's speed, in C++.

One block of rows in, statistics out, without the GIL, without threads and without state: threads are the caller's
business. Read `engine.cpp` for the pass over a block, `memberships.hpp` for tau and u, and `sums.hpp` for the sums.
"""

import os
from functools import partial
from typing import Any

import numpy as np

import tkmeans.engines.native._native as _native
from tkmeans.stats import CRUMBS_SINGLE, LARGEST_SINGLE, Array, Block, Kernel, Params, Rows, Stats

NAME = "native"
SINGLE_FROM = 8192  # rows; fewer are summed in double, or rounding, by instruction set, would decide when EM stops
doubles = partial(np.ascontiguousarray, dtype=np.float64)


def _choose_instruction_set() -> str:
    """The widest one this machine has, or what TKMEANS_INSTRUCTION_SET asks for."""
    available = _native.available_instruction_sets()
    wanted = os.environ.get("TKMEANS_INSTRUCTION_SET")
    if wanted is None:
        return available[-1]
    matches = [name for name in available if name == wanted or name.endswith(f"-{wanted}")]
    if not matches:
        raise ValueError(f"TKMEANS_INSTRUCTION_SET must be one of {', '.join(available)} here, got {wanted!r}")
    return matches[0]


_INSTRUCTION_SET = _choose_instruction_set()


def instruction_set() -> str:
    """The instruction set in use, such as "x86-64-v3"."""
    return _INSTRUCTION_SET


def new_search(
    rows: Array, weight: Array, n_clusters: int, dof: float, reach: float, seconds: float = np.inf, least: float = 0.0
) -> _native.Search:
    """A search (`search.hpp`), for `tkmeans.search.center_search`; it raises TimeoutError so many seconds from now.

    Noise begins at `reach` p times the scale, which is at `least` that.
    """
    rows, weight = (np.ascontiguousarray(values, np.float64) for values in (rows, weight))
    return _native.Search(_INSTRUCTION_SET, rows, weight, n_clusters, dof, reach * rows.shape[1], seconds, least)


def summarize(block: Block, params: Params, kernel: Kernel, *, skip_far: bool = True, sums: Any = None) -> Stats:
    """The sums of an E-step over one block.

    Memberships below 1e-16 may be left out, which changes nothing visible; ``skip_far=False`` is for those who measure
    just that. Zeros of shape (5, K) take up n, w, wd2, log_u and, of rows without weights, the sum of (tau u)^2 D.
    """
    X, origin, inverse_unit, model = _prepared(block, params, kernel)
    weight = None if block.weight is None else np.ascontiguousarray(block.weight, X.dtype)
    K, p = params.centers.shape
    sums = np.zeros((4, K)) if sums is None else sums
    observed, wx, wide = np.zeros((K, p)), np.zeros((K, p)), len(X) < SINGLE_FROM
    missing, cells, objective, entropy = _native.summarize(
        _INSTRUCTION_SET, X, weight, origin, inverse_unit, model, skip_far, wide, sums, observed, wx
    )
    n, w, wd2, log_u = sums[:4]
    observed = observed if missing else w[:, None]
    if X.dtype == np.float32:
        wx *= observed > CRUMBS_SINGLE
    return Stats(n, w, observed, wx, wd2, log_u, cells, objective, entropy)


def rows(block: Block, params: Params, kernel: Kernel, *, brief: bool = False) -> Rows:
    """The model's answers for each row; `brief` ones, the label and the distance, take a shorter way."""
    X, origin, inverse_unit, model = _prepared(block, params, kernel)
    n = X.shape[0]
    out = Rows(np.empty(n, np.int64), np.empty(n, X.dtype), *(np.empty(0 if brief else n, X.dtype) for _ in range(2)))
    _native.rows(_INSTRUCTION_SET, X, origin, inverse_unit, model, *out)
    return out


def memberships(block: Block, params: Params, kernel: Kernel) -> Array:
    """The probability of every cluster for each row, (n, K): eqn:tau."""
    X, origin, inverse_unit, model = _prepared(block, params, kernel)
    out = np.empty((X.shape[0], params.centers.shape[0]), X.dtype)
    _native.memberships(_INSTRUCTION_SET, X, origin, inverse_unit, model, out)
    return out


def distances(block: Block, params: Params) -> Array:
    """Euclidean distance of each row to every centre, (n, K), in the frame."""
    K, p = params.centers.shape
    X, origin, inverse_unit, model = _prepared(block, params, Kernel(1.0, 1, *np.ones((4, p + 1))))  # as good as any
    out = np.empty((X.shape[0], K), X.dtype)
    _native.distances(_INSTRUCTION_SET, X, origin, inverse_unit, model, out)
    return out


def _prepared(block: Block, params: Params, kernel: Kernel) -> Any:
    """The rows, the frame and the model as the native code takes them."""
    X = np.asarray(block.X)
    if X.dtype not in (np.float32, np.float64):
        raise TypeError(f"the native engine reads float32 and float64, got {X.dtype}")
    slope, power, exponent, log_norm, gain, log_u_bias, log_sums = kernel
    tables = exponent, log_norm, gain, log_u_bias
    model = _native.Model(params.centers, params.log_weights, *tables, slope, power, log_sums)
    origin, inverse_unit = np.ascontiguousarray(block.frame.origin, X.dtype), 1.0 / float(block.frame.unit)
    if X.dtype == np.float32:
        inverse_unit = min(inverse_unit, LARGEST_SINGLE)
    return np.ascontiguousarray(X), origin, np.full(X.shape[1], inverse_unit, X.dtype), model
