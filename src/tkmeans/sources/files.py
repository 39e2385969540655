"""Files as a source of rows; they may be larger than memory."""

import os
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

import numpy as np

from tkmeans.docstrings import documented
from tkmeans.fit_warnings import warn_user
from tkmeans.sources.arrays import BlockSource
from tkmeans.sources.base import BLOCK_ROWS, T
from tkmeans.stats import Array
from tkmeans.tables import CHUNK, Reading, Table, TableError, choose, read_table


@final
@documented("file_*")
class DataFile:
    r"""A table on disk, for :meth:`TKMeans.fit` and its like; a plain path will do where the file tells all."""

    def __init__(
        self,
        path: Any,
        columns: Sequence[str] | None = None,
        *,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        encoding: str | None = None,
        header: bool | None = None,
        missing: Sequence[str] = (),
        table: str | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)) and type(path).__module__ != "pyarrow._dataset":
            raise TypeError(f"path must be a str, a path or a dataset of pyarrow, got {path!r}")
        if isinstance(path, str) and "\0" in path:
            raise ValueError(f"path must name a file, got {path!r}")
        lists = {"columns": () if columns is None else columns, "without": without, "keep": keep, "missing": missing}
        for name, some in lists.items():
            if isinstance(some, str) or not isinstance(some, Collection) or not all(isinstance(x, str) for x in some):
                raise TypeError(f"{name} must be a list of str, got {some!r}")
        texts = {"delimiter": delimiter, "decimal": decimal, "thousands": thousands}
        for name, text in (texts | {"encoding": encoding, "table": table}).items():
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} must be a str or None, got {text!r}")
        if header is not None and not isinstance(header, (bool, np.bool_)):
            raise TypeError(f"header must be True, False or None, got {header!r}")
        self.path, self.columns, self.without, self.keep = path, columns, without, keep
        self.reading = Reading(delimiter, decimal, thousands, encoding, header, tuple(missing), table).checked()

    def __repr__(self) -> str:
        return f"DataFile({self.path!r})" if self.columns is None else f"DataFile({self.path!r}, {self.columns!r})"


def open_table(file: DataFile, fitted: list[str] | None = None) -> tuple[Table, list[str]]:
    """The table, and the columns to read: those asked for, those of the fit, or those that measure something."""
    table = read_table(file.path, file.reading._replace(names=tuple(fitted or ())))
    columns, keep = (fitted, fitted or file.keep) if file.columns is None else (file.columns, file.keep)
    choice = choose(table, columns, file.without, keep)
    if repeated := [name for name, times in Counter(choice.names).items() if times > 1]:
        raise TableError(f"{table.source}: columns must differ, and {repeated[0]!r} is named more than once")
    unseen = [n for n in choice.names if table.indicated(n) and not any(map(np.nansum, table.batches([n], CHUNK)))]
    for note in [*table.notes, *choice.notes, *(f"no row has {name!r}" for name in unseen)]:
        warn_user(f"{table.source}: {note}", UserWarning)
    return table, choice.names


@final
class FileSource(BlockSource):
    """A table on disk: one thread reads while others compute."""

    lean = True
    label_dtype = np.int32

    def __init__(self, file: DataFile, weight: Array | None, n_threads: int, names: list[str] | None = None) -> None:
        self._table, self._names = open_table(file, names)
        self.path = file.path
        self._stamp = self._table.stamp()
        super().__init__(weight, None, n_threads, BLOCK_ROWS.get())
        # One for all passes: what an allocator keeps for a thread is lost with it.
        self._reader = ThreadPoolExecutor(1)
        self.names = None if self._table.is_matrix else self._names
        self.n_features, self.dtype = len(self._names), self._table.dtype(self._names)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._reader.shutdown(cancel_futures=True)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows, counted if need be."""
        if self._table.known_rows is None:
            self._table.known_rows = sum(map(len, self.chunks()))
        return self._table.known_rows

    def chunks(self) -> Iterator[Array]:
        """The rows, read ahead, in chunks that are multiples of a block; passes over different rows have no sum."""
        at_once = run_rows(self.n_features * self.dtype.itemsize, self.block_rows)
        runs = regrouped(self._table.batches(self._names, at_once), self.block_rows)
        expected, n_rows = self._table.known_rows, 0
        for run in read_ahead(runs, depth=8, reader=self._reader):
            n_rows += len(run)
            if expected is not None and n_rows > expected:
                break
            yield run
        self._check_unchanged(expected in (None, n_rows))

    def _check_unchanged(self, as_long_as_before: bool) -> None:
        if not as_long_as_before or self._table.stamp() != self._stamp:
            raise ValueError(f"{self._table.source} has changed while it was read; try again, or take a copy")

    def rows(self, picked: Array) -> Array:
        """Rows by their numbers."""
        n_rows = run_rows(self.n_features * self.dtype.itemsize, 1)
        found = self._reader.submit(self._table.rows, self._names, picked, n_rows).result()
        self._check_unchanged(len(found) == len(picked))
        return found

    def beside(self, name: str) -> Path:
        """The file for results, next to the input."""
        if not isinstance(self.path, (str, os.PathLike)):
            raise ValueError("a dataset has no place to write results beside it: use predict(dataset, out=path)")
        path = Path(self.path)
        path = path if path.name.strip(".") else path.resolve()  # of a folder such as .
        return path.with_name(f"{path.name if path.is_dir() else path.stem}.{name}.parquet")


def run_rows(row_bytes: int, block_rows: int) -> int:
    """Rows to read at once: about a quarter of a megabyte, and a multiple of the block's."""
    return block_rows * max(1, (1 << 18) // (row_bytes * block_rows))


def regrouped(batches: Iterable[Array], multiple: int) -> Iterator[Array]:
    """The same rows in arrays whose lengths, but for the last, are multiples of `multiple`."""
    left: Array | None = None
    for batch in batches:
        rows = batch if left is None else np.concatenate([left, batch])
        whole = len(rows) - len(rows) % multiple
        left = rows[whole:].copy() if whole < len(rows) else None
        if whole:
            yield rows[:whole]
    if left is not None:
        yield left


def read_ahead(items: Iterator[T], depth: int, reader: ThreadPoolExecutor) -> Iterator[T]:
    """The same items, made by another thread before they are asked for."""
    end: Any = object()
    waiting = deque(reader.submit(next, items, end) for _ in range(depth))
    try:
        while (item := waiting.popleft().result()) is not end:
            waiting.append(reader.submit(next, items, end))
            yield item
    finally:
        for future in waiting:
            future.cancel()
