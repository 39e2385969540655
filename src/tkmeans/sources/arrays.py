"""Rows in memory, as a NumPy array or as one of another library, and what all sources of blocks share."""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any, final

import numpy as np

from tkmeans.atomic import check_not_input, replacing
from tkmeans.sources import base
from tkmeans.sources.base import Answer, Column, M, Sample, Source, T, to_numpy
from tkmeans.stats import Array, Block, Frame, namespace

_ROW_GROUP = 1_000_000  # values in a row group of the output
TENSOR_ROWS = 65536  # the reference engine, which runs on tensors, wants fewer and larger operations


class BlockSource(Source):
    """Rows with a number each, in memory or in chunks of any length, cut into blocks at multiples of a fixed size."""

    chunks: Any = None  # a function that reads rows that are not, in lengths that are multiples of the block's
    like: Any = None  # makes an array of the rows' library from one of NumPy, where that is another

    def __init__(self, weight: Array | None, frame: Frame | None, n_threads: int, block_rows: int) -> None:
        self.weight = weight
        if frame is not None:
            self.frame = frame
        self.block_rows, self._n_threads = block_rows, n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    @abstractmethod
    def rows(self, picked: Array) -> Array:
        """Rows by their ascending numbers, as a NumPy array in the user's coordinates."""

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(self.n_rows if self.weight is None else np.sum(to_numpy(self.weight), dtype=np.float64))

    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` rows in proportion to weight, one from each of equal intervals; all that count if no more."""
        weight, n_rows = to_numpy(self.weight), self.n_rows
        counted = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
        if len(counted) <= size:
            picked, weight = counted, np.ones(n_rows) if weight is None else np.asarray(weight, np.float64)[counted]
        else:
            up_to = None if weight is None else np.cumsum(weight, dtype=np.float64)
            total = float(n_rows) if up_to is None else up_to[-1]
            marks = (np.arange(size) + rng.random_sample(size)) * (total / size)  # rows may come in turns
            places = np.floor(marks) if up_to is None else np.searchsorted(up_to, marks, side="right")
            firsts = np.flatnonzero(np.append(True, places[1:] > places[:-1]))  # of a row that was picked several times
            picked = np.minimum(places[firsts].astype(np.int64), n_rows - 1)
            weight = np.diff(firsts, append=size) * (total / size)
        X = self.rows(picked)
        return Sample(self.frame.enter(X if self.columns is None else X[:, self.columns], coarse=True), weight)

    def measure(self) -> Frame:
        """The coordinates to work in, from rows at equal intervals."""
        weight = to_numpy(self.weight)
        counted = np.arange(self.n_rows) if weight is None else np.flatnonzero(weight > 0)
        picked = counted[:: max(1, len(counted) // base.MEASURED_ROWS)]
        X = self.rows(picked)
        self.measured = X if self.columns is None else X[:, self.columns]
        return base.measure(self.measured, None if weight is None else weight[picked])

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks of fixed size."""
        frame, start = getattr(self, "frame", None), 0  # a survey comes before the frame
        for chunk in (self.X,) if self.X is not None else self.chunks():
            for first in range(0, chunk.shape[0], self.block_rows):
                X = chunk[first : min(first + self.block_rows, chunk.shape[0]), ...]
                weight = None if self.weight is None else self.weight[start : start + X.shape[0]]
                start += X.shape[0]
                yield Block(X, weight, frame)  # type: ignore[arg-type]

    def map(self, function: Callable[[Block], T]) -> Iterator[T]:
        """`function` of every block, in the order of the rows."""
        if self.columns is not None or self.bounds is not None or self.guard is not None:
            function = self.seen_by(function)
        if self._pool is None:
            yield from map(function, self.blocks())
            return
        # A few blocks ahead of the one being merged: results of all of them at once could be larger than the data.
        under_way: deque[Future[T]] = deque()
        for block in self.blocks():
            under_way.append(self._pool.submit(function, block))
            if len(under_way) > 2 * self._n_threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()

    def reduce(self, summarize: Callable[[Block], M]) -> M:
        """The merged summaries of all blocks, in the order of the rows."""
        return base.merged(self.map(summarize))

    def part(self, rows: Array) -> Any:
        """The rows of these numbers, which are in memory, as a source of their own in the same frame."""
        kind: Any = type(self)
        weight = None if self.weight is None else self.weight[rows]
        part = kind(self.X[rows], weight, self.frame, n_threads=self._n_threads, block_rows=self.block_rows)
        part.lift, part.least_dof = self.lift, self.least_dof
        return part

    def collect(self, look: Callable[[Block], Answer], columns: list[Column]) -> tuple[list[Any], Any]:
        """What `look` answers for each row, in arrays, and the merged summary."""
        whole = [np.empty((self.n_rows, *(() if c.width is None else (c.width,))), c.dtype) for c in columns]
        if self.like is not None:
            whole = list(map(self.like, whole))
        start, summary = 0, None
        for found in self.map(look):
            end = start + found.rows[0].shape[0]
            for array, part in zip(whole, found.rows, strict=True):
                array[start:end, ...] = part
            start = end
            summary = found.summary if summary is None else summary.merge(found.summary)
        return whole, summary


@final
class ArraySource(BlockSource):
    """A NumPy array, visited in blocks by one or more threads."""

    def __init__(
        self, X: Array, weight: Any, frame: Frame | None = None, *, n_threads: int = 1, block_rows: int | None = None
    ) -> None:
        block_rows = block_rows or base.BLOCK_ROWS.get()
        super().__init__(weight, frame, min(n_threads, -(-len(X) // block_rows)), block_rows)
        self.X = X if len(X) > block_rows else np.ascontiguousarray(X)  # as engines read them, again and again
        (self.n_rows, self.n_features), self.dtype = X.shape, X.dtype

    def rows(self, picked: Array) -> Array:
        """Rows by their ascending numbers."""
        return self.X if len(picked) == self.n_rows else self.X[picked]


@final
class Batches:
    """A source whose every visit is to the next batch of rows, round and round in a given order."""

    def __init__(self, whole: ArraySource, order: Array, batch_size: int) -> None:
        self.frame, self._whole = whole.frame, whole
        # Of nearly equal size: a last batch of a few rows would be learned from like any other.
        batches = np.array_split(order, -(-len(order) // int(batch_size)))
        self.per_pass, self._next = len(batches), cycle(batches)

    def reduce(self, summarize: Callable[[Block], M]) -> M:
        """The statistics of the next batch."""
        with self._whole.part(next(self._next)) as batch:
            return batch.reduce(summarize)


@final
class TensorSource(BlockSource):
    """An array of another library that follows the array API; the rows stay where they are."""

    def __init__(self, X: Array, weight: Array | None, frame: Frame | None = None) -> None:
        super().__init__(weight, frame, n_threads=1, block_rows=TENSOR_ROWS)
        xp = namespace(X)
        self.X, self.array_library = X, xp.__name__
        self.n_rows, self.n_features = map(int, X.shape)
        self.dtype = np.dtype("float32" if X.dtype == xp.float32 else "float64")

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

    def like(self, values: Array) -> Array:
        """A NumPy array as one of this library, of the same type, where the rows are."""
        return namespace(self.X).asarray(values, device=self.X.device)


def write_parquet(source: Source, look: Callable[[Block], Answer], column: Column, out: Any) -> Path:
    """Stream what `look` answers for each row into a Parquet file; its path."""
    from tkmeans.tables.file_content import pyarrow

    if not isinstance(source, BlockSource):
        raise TypeError("out is for rows in memory or in files; store what a dask collection gives with dask")
    check_not_input(out, source.path)
    if Path(out).suffix.casefold() in (".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx", ".ods", ".npy", ".feather"):
        raise ValueError(f"out is written as Parquet; name it *.parquet, got {str(out)!r}")
    pa, pq = (pyarrow("to write Parquet", module) for module in ("pyarrow", "pyarrow.parquet"))
    names = [column.name] if column.width is None else [f"{column.name}{k}" for k in range(column.width)]
    schema = pa.schema([(name, pa.from_numpy_dtype(np.dtype(column.dtype))) for name in names])
    values = (to_numpy(answer.rows[0]).astype(column.dtype, copy=False) for answer in source.map(look))
    n_blocks = -(-_ROW_GROUP // ((column.width or 1) * source.block_rows))
    with replacing(out) as file, pq.ParquetWriter(file, schema) as writer:
        while blocks := list(islice(values, n_blocks)):
            group = np.concatenate(blocks)
            columns = [group] if group.ndim == 1 else list(np.ascontiguousarray(group.T))
            writer.write_table(pa.table(columns, schema=schema))
    return Path(out)
