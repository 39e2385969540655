"""Files as a source of rows; they may be larger than memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np

from tkmeans.sources.arrays import BlockSource
from tkmeans.sources.base import BLOCK_ROWS, Survey
from tkmeans.sources.file_readers import Table, open_table, run_rows
from tkmeans.stats import Array

T = TypeVar("T")

_RUNS_AHEAD = 8


@final
class DataFile:
    r"""A table on disk, for :meth:`TKMeans.fit` and its like; it may be larger than memory.

    A plain path will do where all columns are wanted.

    Parameters
    ----------
    path : str, path or pyarrow dataset
        A .npy, Parquet, Feather (Arrow) or CSV file, or a directory of these, whose files
        are read in the order of their names.
    columns : list of str, default=None
        The columns to read, in this order; None means all, or in `predict`, those of the fit.

    Examples
    --------
    >>> import tempfile, os
    >>> from tkmeans import DataFile, TKMeans
    >>> from tkmeans.datasets import make_contaminated
    >>> X, _ = make_contaminated(n_clusters=4, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "measurements.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("name,x,y\n")
    ...         file.writelines(f"row,{x!r},{y!r}\n" for x, y in X.tolist())
    ...     model = TKMeans(4, random_state=0).fit(DataFile(path, columns=["x", "y"]))
    >>> bool((model.cluster_centers_ == TKMeans(4, random_state=0).fit(X).cluster_centers_).all())
    True
    """

    def __init__(self, path: Any, columns: list[str] | None = None) -> None:
        self.path = path
        self.columns = columns

    def __repr__(self) -> str:
        return f"DataFile({self.path!r})" if self.columns is None else f"DataFile({self.path!r}, {self.columns!r})"


@final
class FileSource(BlockSource):
    """A table on disk: one thread reads while others compute."""

    lean = True
    label_dtype = np.int32

    def __init__(self, file: DataFile, weight: Array | None, n_threads: int) -> None:
        self._table: Table = open_table(file.path, file.columns)
        self._stamp = self._table.stamp()
        super().__init__(weight, None, n_threads, BLOCK_ROWS.get())
        self._path = file.path
        # One for all passes: what an allocator keeps for a thread is lost with it.
        self._reader = ThreadPoolExecutor(1)
        self.names, self.n_features, self.dtype = self._table.names, self._table.n_features, self._table.dtype

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._reader.shutdown(cancel_futures=True)

    @property
    def n_rows(self) -> int:
        """The number of rows, counted if need be."""
        if self._table.n_rows is None:
            self._table.n_rows = sum(map(len, self.chunks()))
        return self._table.n_rows

    def chunks(self) -> Iterator[Array]:
        """The rows, read ahead, in chunks that are multiples of a block."""
        n_rows = run_rows(self.n_features * self.dtype.itemsize, self._block_rows)
        runs = regrouped(self._table.batches(n_rows), self._block_rows)
        return self._counted(read_ahead(runs, _RUNS_AHEAD, self._reader))

    def _counted(self, runs: Iterator[Array]) -> Iterator[Array]:
        """The same runs, of a file that nobody writes to meanwhile: passes over different rows have no sum."""
        expected, n_rows = self._table.n_rows, 0
        for run in runs:
            n_rows += len(run)
            if expected is not None and n_rows > expected:
                break
            yield run
        self._check_unchanged(expected in (None, n_rows))

    def _check_unchanged(self, as_long_as_before: bool) -> None:
        if not as_long_as_before or self._table.stamp() != self._stamp:
            raise ValueError(f"{self._table.place} has changed while it was read; try again, or take a copy")

    def survey(self) -> Survey:
        """Count rows and values, in one pass."""
        found = super().survey()
        if found is None:
            raise ValueError(f"{self._table.place} has no rows")
        self._table.n_rows = found.n_rows
        return found

    def rows(self, picked: Array) -> Array:
        """Rows by their numbers."""
        found = self._reader.submit(self._table.rows, picked).result()
        self._check_unchanged(len(found) == len(picked))
        return found

    def beside(self, name: str) -> Path:
        """The file for results, next to the input."""
        if type(self._path).__module__ == "pyarrow._dataset":
            raise ValueError("a dataset has no place to write results beside it: use predict(dataset, out=path)")
        path = Path(self._path)
        return path.with_name(f"{path.name if path.is_dir() else path.stem}.{name}.parquet")


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
