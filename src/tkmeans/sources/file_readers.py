"""Readers that return a file in chunks of rows: .npy, Parquet, Feather, CSV and Arrow datasets."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np

from tkmeans.fit_warnings import warn_user
from tkmeans.stats import Array

_MAGIC = {b"\x93NUMPY": "npy", b"PAR1": "parquet", b"ARROW1": "feather"}
_SUFFIXES = (".npy", ".parquet", ".feather", ".arrow", ".csv", ".tsv")


class Table(ABC):
    """One file."""

    place: str  # its name, for messages
    names: list[str] | None
    n_features: int
    dtype: Any
    n_rows: int | None  # None if nobody has counted them
    _path: Any  # or the dataset

    def stamp(self) -> tuple[Any, ...]:
        """What would be another if somebody wrote to the file; empty where that cannot be seen."""
        found = self._path.stat()
        return found.st_size, found.st_mtime_ns

    @abstractmethod
    def batches(self, n_rows: int) -> Iterator[Array]:
        """The rows in order, about `n_rows` at a time, as arrays of shape (some, p)."""

    def rows(self, picked: Array) -> Array:
        """Rows by their ascending numbers."""
        found, start = [np.empty((0, self.n_features), self.dtype)], 0
        for batch in self.batches(run_rows(self.n_features * self.dtype.itemsize, 1)):
            first, last = np.searchsorted(picked, [start, start + len(batch)])
            found.append(batch[picked[first:last] - start])
            start += len(batch)
        return np.concatenate(found)


def open_table(path: Any, columns: list[str] | None) -> Table:
    """The table at `path`: a file, all files of a directory one after the other, or an Arrow dataset."""
    if type(path).__module__ == "pyarrow._dataset":
        return DatasetTable(path, columns)
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or directory {str(path)!r}")
    if not path.is_dir():
        return _open_file(path, columns)
    named = (file for file in path.rglob("*") if not file.name.startswith((".", "_")))
    files = sorted(file for file in named if file.suffix.lower() in _SUFFIXES)
    if not files:
        raise FileNotFoundError(f"directory {str(path)!r} holds no file of the kinds {', '.join(_SUFFIXES)}")
    first = _open_file(files[0], columns)
    return Concatenated([first, *(_open_file(file, columns or first.names) for file in files[1:])])


def _open_file(path: Path, columns: list[str] | None) -> Table:
    with open(path, "rb") as file:
        head = file.read(6)
    if not head:
        raise ValueError(f"{str(path)!r} is empty")
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "csv")
    if kind == "csv" and path.suffix.lower() in (".npy", ".parquet", ".feather", ".arrow"):
        raise ValueError(f"{str(path)!r} does not begin like a {path.suffix} file; it is damaged or misnamed")
    if purpose := {"feather": "to read Feather", "csv": "to read CSV"}.get(kind):
        pyarrow(purpose)
    tables: dict[str, Any] = {"npy": NpyTable, "parquet": ParquetTable, "feather": FeatherTable, "csv": CsvTable}
    return tables[kind](path, columns)


@final
class Concatenated(Table):
    """Files one after the other."""

    def __init__(self, tables: list[Table]) -> None:
        first = tables[0]
        for table in tables:
            if table.n_features != first.n_features:
                raise ValueError(
                    f"{table.place} has {table.n_features} columns, but {first.place} has {first.n_features}"
                )
        self.place, self.names, self.n_features = first.place, first.names, first.n_features
        self.dtype = np.result_type(*(table.dtype for table in tables))
        counts = [table.n_rows for table in tables]
        self.n_rows = None if None in counts else sum(count or 0 for count in counts)
        self._tables = tables

    def stamp(self) -> tuple[Any, ...]:
        """Those of all files."""
        return tuple(table.stamp() for table in self._tables)

    def batches(self, n_rows: int) -> Iterator[Array]:
        """The rows of all files in order."""
        for table in self._tables:
            for batch in table.batches(n_rows):
                yield batch.astype(self.dtype, copy=False)


@final
class NpyTable(Table):
    """A matrix in NumPy's own format. Read, not mapped: mapped pages count as memory in use."""

    def __init__(self, path: Path, columns: list[str] | None) -> None:
        self.place, self._path, self.names = repr(str(path)), path, None
        with open(path, "rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
                shape, by_columns, self._stored = read_header[min(version[0], 2)](file)
            except ValueError as error:
                raise ValueError(f"{self.place} is not a whole .npy file: {error}") from error
            self._offset = file.tell()
        if len(shape) != 2 or self._stored.kind not in "fiub":
            raise ValueError(f"{self.place} holds {self._stored} of shape {shape}; a matrix of numbers is needed")
        if by_columns:
            raise ValueError(f"{self.place} is stored column by column; save np.ascontiguousarray(X) instead")
        self.n_rows, self.n_features = shape
        self.dtype = np.dtype("f4" if self._stored == np.dtype("f4") else "f8")
        self._row_bytes = self._stored.itemsize * self.n_features
        missing = self._offset + self.n_rows * self._row_bytes - path.stat().st_size
        if missing > 0:
            raise ValueError(f"{self.place} is cut short: {missing} bytes of its {self.n_rows} rows are missing")

    def batches(self, n_rows: int) -> Iterator[Array]:
        """The rows in order."""
        with open(self._path, "rb", buffering=0) as file:
            for start in range(0, self.n_rows or 0, n_rows):
                yield self._read(file, start, min(n_rows, (self.n_rows or 0) - start))

    def rows(self, picked: Array) -> Array:
        """Rows by their numbers, one by one."""
        with open(self._path, "rb", buffering=0) as file:
            parts = [self._read(file, int(row), 1) for row in picked]
        return np.concatenate([np.empty((0, self.n_features), self.dtype), *parts])

    def _read(self, file: Any, start: int, n_rows: int) -> Array:
        file.seek(self._offset + start * self._row_bytes)
        values = np.fromfile(file, self._stored, n_rows * self.n_features)
        if len(values) < n_rows * self.n_features:
            raise ValueError(f"{self.place} has become shorter while it was read")
        return values.reshape(n_rows, self.n_features).astype(self.dtype, copy=False)


class ArrowTable(Table):
    """A table that pyarrow reads, in batches of columns."""

    def __init__(self, path: Any, columns: list[str] | None) -> None:
        self.place = repr(str(path)) if isinstance(path, Path) else "the dataset"
        self._pa, self._path, self.n_rows = pyarrow(), path, None
        with self._naming_the_file():
            self._choose(self._schema(), columns)

    @abstractmethod
    def _schema(self) -> Any:
        """The columns there are, and their types."""

    @abstractmethod
    def _batches(self, n_rows: int) -> Iterator[Any]:
        """Record batches with the columns of `names`."""

    def batches(self, n_rows: int) -> Iterator[Array]:
        """The rows in order."""
        with self._naming_the_file():
            for batch in self._batches(n_rows):
                yield self._interleaved(batch)

    def _interleaved(self, batch: Any) -> Array:
        X = np.empty((batch.num_rows, self.n_features), self.dtype)
        for j, name in enumerate(self.names or []):
            X[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
        return X

    def _choose(self, schema: Any, columns: list[str] | None) -> None:
        """The columns to read, and their common type; complain of those that are missing or not numbers."""
        pa, self._header = self._pa, schema.names
        for name in columns or []:
            if name not in self._header:
                raise ValueError(f"{self.place} has no column {name!r}; it has {', '.join(map(repr, self._header))}")
        self.names = list(columns or self._header)
        self.n_features = len(self.names)
        types = [schema.field(name).type for name in self.names]
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        for name, kind in zip(self.names, types, strict=True):
            if not any(test(kind) for test in numeric):
                raise ValueError(
                    f"column {name!r} of {self.place} holds {kind}, not numbers; choose others with "
                    "tkmeans.DataFile(path, columns=[...])"
                )
        single = types and all(kind == pa.float32() or kind == pa.float16() for kind in types)
        self.dtype = np.dtype("f4" if single else "f8")

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except self._pa.ArrowMemoryError:
            raise  # which is no fault of the file
        except (self._pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.place} cannot be read: {self._sentence(error)}") from error

    def _sentence(self, error: Exception) -> str:
        return str(error).splitlines()[0]


@final
class ParquetTable(ArrowTable):
    """A Parquet file, decoded a few pages at a time."""

    def _schema(self) -> Any:
        with self._file() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _file(self) -> Any:
        import pyarrow.parquet as pq

        # A buffer per column instead of all columns of a row group, which may be large.
        return pq.ParquetFile(self._path, buffer_size=1 << 14, pre_buffer=False)

    def _batches(self, n_rows: int) -> Iterator[Any]:
        with self._file() as file:
            yield from file.iter_batches(n_rows, columns=self.names, use_threads=False)


@final
class FeatherTable(ArrowTable):
    """An Arrow file, also known as Feather; its batches are as the writer made them."""

    def _schema(self) -> Any:
        with self._pa.OSFile(str(self._path)) as file:
            return self._pa.ipc.open_file(file).schema

    def _batches(self, n_rows: int) -> Iterator[Any]:
        ipc, fields = self._pa.ipc, [self._header.index(name) for name in self.names or []]
        with self._pa.OSFile(str(self._path)) as file:
            reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                for start in range(0, batch.num_rows, n_rows):
                    yield batch.slice(start, n_rows)


@final
class CsvTable(ArrowTable):
    """A CSV file; tabs separate a .tsv. A first line of nothing but numbers is a row, as it is to the command."""

    _names: list[str] | None = None  # of the columns, where the file has none

    def _schema(self) -> Any:
        with self._reader() as reader:
            header = reader.schema.names
        if not all(map(_is_number, header)):
            return reader.schema
        self._names = [f"x{j}" for j in range(1, len(header) + 1)]
        warn_user(
            f"the first line of {self.place} holds numbers, so it is read as a row, and the columns are called "
            f"{self._names[0]} to {self._names[-1]}; give the file a line of names if that is wrong",
            UserWarning,
        )
        with self._reader() as reader:
            return reader.schema

    def _reader(self, **options: Any) -> Any:
        import pyarrow.csv as csv

        reading = csv.ReadOptions(block_size=1 << 22, column_names=self._names)
        parsing = csv.ParseOptions(delimiter="\t" if self._path.suffix.lower() == ".tsv" else ",")
        return csv.open_csv(self._path, reading, parsing, csv.ConvertOptions(**options))

    def _batches(self, n_rows: int) -> Iterator[Any]:
        # What looks like integers at first may not be later.
        types = dict.fromkeys(self.names or [], self._pa.float64())
        with self._reader(include_columns=self.names, column_types=types) as reader:
            yield from reader

    def _sentence(self, error: Exception) -> str:
        """Arrow counts the columns; people know their names."""
        sentence = super()._sentence(error)
        return re.sub(r"column #(\d+)", lambda found: f"column {self._header[int(found[1])]!r}", sentence)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@final
class DatasetTable(ArrowTable):
    """A `pyarrow.dataset.Dataset`, filtered or not."""

    def _schema(self) -> Any:
        return self._path.schema

    def stamp(self) -> tuple[Any, ...]:
        """Its files may be anywhere."""
        return ()

    def _batches(self, n_rows: int) -> Iterator[Any]:
        # Little is read ahead here: what is waiting to be computed should be bounded.
        return self._path.to_batches(columns=self.names, batch_size=n_rows, batch_readahead=2, fragment_readahead=1)


def run_rows(row_bytes: int, block_rows: int) -> int:
    """Rows to read at once: about a quarter of a megabyte, and a multiple of the block's."""
    return block_rows * max(1, math.floor((1 << 18) / (row_bytes * block_rows)))


def pyarrow(purpose: str = "to read this file") -> Any:
    """The pyarrow module, or how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"pyarrow is needed {purpose}: pip install 'tkmeans[io]'") from error
    return pyarrow
