"""Rows that are in memory already, as a NumPy array or as one of another library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from tkmeans.sources.base import BLOCK_ROWS, Column, M, Sample, to_numpy
from tkmeans.sources.blocks import BlockSource
from tkmeans.stats import Array, Block, Frame, namespace

# The reference engine, which runs on tensors, wants fewer and larger operations.
TENSOR_ROWS = 65536


@final
class ArraySource(BlockSource):
    """A NumPy array, visited in blocks by one or more threads."""

    def __init__(
        self,
        X: Array,
        weight: Array | None,
        frame: Frame | None = None,
        *,
        n_threads: int = 1,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        super().__init__(weight, frame, min(n_threads, -(-len(X) // block_rows)), block_rows)
        self.X = X
        self.n_features, self.dtype = X.shape[1], X.dtype

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.X)

    def runs(self) -> Iterator[Array]:
        """All rows at once."""
        yield self.X

    def rows(self, picked: Array) -> Array:
        """Rows by their numbers."""
        return self.X[picked]

    def part(self, rows: Array) -> ArraySource:
        """The rows of these numbers, as a source of their own in the same frame."""
        weight = None if self.weight is None else self.weight[rows]
        return ArraySource(self.X[rows], weight, self.frame, n_threads=self._n_threads, block_rows=self._block_rows)

    def example(self, sample: Sample) -> Array:
        """All rows."""
        return self.X


@final
class TensorSource(BlockSource):
    """An array of another library that follows the array API; the rows stay where they are."""

    def __init__(self, X: Array, weight: Array | None, frame: Frame | None = None) -> None:
        super().__init__(weight, frame, n_threads=1, block_rows=TENSOR_ROWS)
        xp = namespace(X)
        self.X, self.array_library = X, xp.__name__
        self.n_features, self.dtype = X.shape[1], np.dtype("float32" if X.dtype == xp.float32 else "float64")

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def runs(self) -> Iterator[Array]:
        """All rows at once."""
        yield self.X

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks, with a frame that is where they are."""
        for block in super().blocks():
            frame = block.frame
            yield block if frame is None else block._replace(frame=frame._replace(origin=self.like(frame.origin)))

    def reduce(self, summarize: Callable[[Block], M]) -> M:
        """The merged summaries, as NumPy arrays: what follows from them is small."""
        whole: Any = super().reduce(summarize)
        return type(whole)(*map(to_numpy, whole))

    def rows(self, picked: Array) -> Array:
        """Rows by their numbers, as a NumPy array."""
        xp = namespace(self.X)
        return to_numpy(xp.take(self.X, xp.asarray(picked, device=self.X.device), axis=0))

    def example(self, sample: Sample) -> Array:
        """All rows."""
        return self.X

    def like(self, values: Array) -> Array:
        """A NumPy array as one of this library, of the same type, where the rows are."""
        return namespace(self.X).asarray(values, device=self.X.device)

    def _empty(self, column: Column) -> Any:
        return self.like(super()._empty(column))
