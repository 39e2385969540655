"""The reference engine for sparse rows: that for dense ones, on a few rows with their zeros at a time.

`tkmeans.engines.native.sparse` returns the same numbers, quickly, and in double precision whatever the rows are.
"""

from collections.abc import Iterator
from functools import reduce
from types import ModuleType

import numpy as np

from tkmeans.engines import reference
from tkmeans.stats import Array, Block, Kernel, Params, Rows, Stats

NUMBERS_AT_ONCE = 2**20


def of(engine: ModuleType) -> ModuleType:
    """The part of an engine that reads sparse rows."""
    if engine is reference:
        import tkmeans.engines.sparse as sparse
    else:
        import tkmeans.engines.native.sparse as sparse  # type: ignore[no-redef]
    return sparse


def summarize(block: Block, params: Params, kernel: Kernel) -> Stats:
    """The sums of an E-step over one block."""
    return reduce(Stats.merge, (reference.summarize(part, params, kernel) for part in _parts(block)))


def rows(block: Block, params: Params, kernel: Kernel) -> Rows:
    """The model's answers for each row."""
    parts = (reference.rows(part, params, kernel) for part in _parts(block))
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def memberships(block: Block, params: Params, kernel: Kernel) -> Array:
    """The probability of every cluster for each row, (n, K): eqn:tau."""
    return np.concatenate([reference.memberships(part, params, kernel) for part in _parts(block)])


def distances(block: Block, params: Params) -> Array:
    """Euclidean distance of each row to every centre, (n, K), in the frame."""
    return np.concatenate([reference.distances(part, params) for part in _parts(block)])


def _parts(block: Block) -> Iterator[Block]:
    n_rows, n_features = block.X.shape
    step = max(1, NUMBERS_AT_ONCE // n_features)
    for first in range(0, n_rows, step):
        weight = None if block.weight is None else block.weight[first : first + step]
        yield Block(np.asarray(block.X[first : first + step]), weight, block.frame)
