"""The reference engine's numbers for sparse rows of any type, in double precision, in C++ (`sparse.cpp`)."""

from collections.abc import Callable

import numpy as np

import tkmeans.engines.native._native as _native
from tkmeans.engines import native
from tkmeans.stats import Array, Block, Kernel, Params, Rows, Stats


def summarize(block: Block, params: Params, kernel: Kernel) -> Stats:
    """The sums of an E-step over one block."""
    K, p = params.centers.shape
    out = _filled(_native.summarize_sparse, 2 + K * (4 + p), block, params, kernel)
    n, w, wd2, log_u = out[2 : 2 + 4 * K].reshape(4, K)
    objective, entropy = out[:2].tolist()
    return Stats(n, w, w[:, None], out[2 + 4 * K :].reshape(K, p), wd2, log_u, float(n.sum() * p), objective, entropy)


def rows(block: Block, params: Params, kernel: Kernel, *, brief: bool = False) -> Rows:  # noqa: ARG001
    """The model's answers for each row."""
    n, dtype = block.X.shape[0], block.X.dtype
    label, *others = _filled(_native.rows_of_sparse, 4 * n, block, params, kernel).reshape(4, n)
    return Rows(label.astype(np.int64), *(values.astype(dtype) for values in others))


def memberships(block: Block, params: Params, kernel: Kernel) -> Array:
    """The probability of every cluster for each row, (n, K): eqn:tau."""
    return _pairs(_native.memberships_of_sparse, block, params, kernel)


def distances(block: Block, params: Params) -> Array:
    """Euclidean distance of each row to every centre, (n, K), in the frame."""
    return _pairs(_native.distances_of_sparse, block, params, Kernel(1.0, 1, *np.ones((4, 1))))


def _pairs(function: Callable[..., None], block: Block, params: Params, kernel: Kernel) -> Array:
    n, K = block.X.shape[0], len(params.centers)
    return _filled(function, n * K, block, params, kernel).reshape(n, K).astype(block.X.dtype)


def _filled(function: Callable[..., None], length: int, block: Block, params: Params, kernel: Kernel) -> Array:
    """What a native function makes of so many zeros."""
    X, frame = block.X, block.frame
    weight = None if block.weight is None else np.ascontiguousarray(block.weight, X.dtype)
    tables = (kernel.exponent, kernel.log_norm, kernel.gain, kernel.log_u_bias)  # rows are complete: the last entries
    centers = params.centers + frame.origin.astype(np.float64) / frame.unit  # the origin moves the centres, not rows
    model = map(native.doubles, (centers, params.log_weights, [kernel.slope, *(table[-1] for table in tables)]))
    out, rows = np.zeros(length), (X.value, X.column, X.first, weight, 1.0 / float(frame.unit))
    function(native.instruction_set(), *rows, *model, bool(kernel.power), out)
    return out
