"""Rows that are in memory already: fixed blocks of them, mapped over threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import TypeVar, final

import numpy as np

from tkmeans.sources.base import Sample
from tkmeans.stats import Array, Block, Frame, S

# Blocks have the same size whatever the number of threads and are merged in order,
# so results do not depend on it, to the last bit. Large enough that what Python does
# per block is negligible, small enough to keep every thread busy.
BLOCK_ROWS = 8192

T = TypeVar("T")


@final
class ArraySource:
    """A NumPy array, visited in blocks by one or more threads; use as a context manager."""

    def __init__(
        self,
        X: Array,
        weight: Array | None,
        frame: Frame,
        *,
        n_threads: int = 1,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self.X, self.weight, self.frame = X, weight, frame
        self._block_rows = block_rows
        n_threads = min(n_threads, -(-len(X) // block_rows))
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> ArraySource:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def reduce(self, summarize: Callable[[Block], S]) -> S:
        """The merged statistics of all blocks, in the order of the rows."""
        return reduce(lambda whole, part: whole.merge(part), self.map(summarize))

    def map(self, function: Callable[[Block], T]) -> Iterator[T]:
        """`function` of every block, in the order of the rows."""
        if self._pool is None:
            yield from map(function, self.blocks())
            return
        # A few blocks ahead of the one being merged: results of all of them at once
        # could be larger than the data.
        under_way: deque[Future[T]] = deque()
        for block in self.blocks():
            under_way.append(self._pool.submit(function, block))
            if len(under_way) > 2 * self._n_threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()

    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` rows in proportion to weight, evenly along the array; all rows if no more."""
        weight = np.ones(len(self.X)) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        counted = np.flatnonzero(weight)
        if len(counted) <= size:
            return self._rows(counted, weight[counted])
        up_to = np.cumsum(weight)
        marks = (np.arange(size) + rng.random_sample()) * (up_to[-1] / size)
        picked, times = np.unique(np.searchsorted(up_to, marks, side="right"), return_counts=True)
        picked = np.minimum(picked, len(weight) - 1)
        return self._rows(picked, times * (up_to[-1] / size))

    def _rows(self, picked: Array, weight: Array) -> Sample:
        return Sample(self.frame.enter(self.X[picked]).astype(np.float64), weight)

    def part(self, rows: Array) -> ArraySource:
        """The rows of these numbers, as a source of their own in the same frame."""
        weight = None if self.weight is None else self.weight[rows]
        return ArraySource(self.X[rows], weight, self.frame, n_threads=self._n_threads, block_rows=self._block_rows)

    def blocks(self) -> Iterator[Block]:
        """The rows in runs of fixed size."""
        for start in range(0, len(self.X), self._block_rows):
            part = slice(start, start + self._block_rows)
            yield Block(self.X[part], None if self.weight is None else self.weight[part], self.frame)
