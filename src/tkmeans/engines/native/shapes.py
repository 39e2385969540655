"""The numbers of `tkmeans.engines.shapes` at the machine's speed, in C++.

Like the rest of the native engine it has no state, takes no threads and does not hold the GIL. Read `shapes.cpp`
for the pass over a block, `shapes.hpp` for tau and u, and `shapes_sums.hpp` for the sums. Memberships below 1e-16
are left out of the sums, which changes nothing visible.
"""

from collections.abc import Callable

import numpy as np

import tkmeans.engines.native._native as _native
from tkmeans.engines import native
from tkmeans.shape_stats import ShapeKernel, ShapeRows, ShapeStats
from tkmeans.stats import Array, Block


def summarize(block: Block, kernel: ShapeKernel) -> ShapeStats:
    """The sums of an E-step over one block."""
    K, p = kernel.centers.shape
    width = 3 + p + kernel.factors.size // K
    out = _filled(_native.summarize_shapes, 4 + K * width, block, kernel)
    sums = out[4:].reshape(K, width)
    wx, scatter = sums[:, 3 : 3 + p], sums[:, 3 + p :].reshape(kernel.factors.shape)
    return ShapeStats(sums[:, 0], sums[:, 1], wx, scatter, sums[:, 2], *out[:4].tolist())


def rows(block: Block, kernel: ShapeKernel) -> ShapeRows:
    """The model's answers for each row."""
    n = block.X.shape[0]
    label, *others = _filled(_native.rows_of_shapes, 6 * n, block, kernel).reshape(6, n)
    return ShapeRows(label.astype(np.int64), *others)


def memberships(block: Block, kernel: ShapeKernel) -> Array:
    """The probability of every component for each row, (n, K); the noise has what is left to 1."""
    n, K = block.X.shape[0], len(kernel.centers)
    return _filled(_native.memberships_of_shapes, n * K, block, kernel).reshape(n, K)


def distances(block: Block, kernel: ShapeKernel) -> Array:
    """The distance of each row to every centre in the metric of its component, (n, K)."""
    n, K = block.X.shape[0], len(kernel.centers)
    return _filled(_native.distances_to_shapes, n * K, block, kernel).reshape(n, K)


def _filled(function: Callable[..., None], length: int, block: Block, kernel: ShapeKernel) -> Array:
    """What a native function makes of so many zeros. For it the noise is one component more."""
    X = np.asarray(block.X)
    if X.dtype not in (np.float32, np.float64):
        raise TypeError(f"the native engine reads float32 and float64, got {X.dtype}")
    weight = None if block.weight is None else native.doubles(block.weight)
    frame, noise = np.empty((2, len(block.frame.origin))), kernel.noise
    frame[0], frame[1] = block.frame.origin, 1.0 / np.asarray(block.frame.unit, np.float64)
    model = [kernel.centers, kernel.factors, np.array([kernel.height, kernel.exponent, kernel.slope, kernel.gain])]
    if noise is not None:
        parts = noise.center[None], noise.factor[None], [[noise.height], [noise.beyond], [1.0], [-1.0 * noise.box]]
        model = [np.concatenate(both, axis) for *both, axis in zip(model, parts, (0, 0, 1), strict=True)]
    out, arrays = np.zeros(length), map(native.doubles, (frame, *model))
    function(native.instruction_set(), np.ascontiguousarray(X), weight, *arrays, noise is not None, out)
    return out
