"""Tables in NumPy's own format: a matrix, or records with named fields."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.file_content import Content
from tkmeans.tables.table import CHUNK, Added, Cells, Table, TableError, unique_names


@final
class ArrayTable(Table):
    """Arrays in memory, a name each; they are always written with named fields."""

    format = "npy"

    def __init__(self, source: str, fields: Mapping[str, Array]) -> None:
        names, notes = unique_names(list(fields))
        super().__init__(source, names, notes)
        self._fields = dict(zip(names, fields.values(), strict=True))
        self.known_rows = len(next(iter(fields.values())))

    def kind(self, name: str) -> str:
        """What a field holds."""
        return {"b": "boolean", "f": "number", "i": "number", "u": "number"}.get(self._fields[name].dtype.kind, "text")

    def dtype(self, names: Sequence[str]) -> Any:
        """Single precision if all fields are."""
        return np.result_type(*(_float_type(self._fields[name].dtype) for name in names))

    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """The fields, cut."""
        for start in range(0, self.n_rows, n_rows):
            yield [cells_of(self._fields[name][start : start + n_rows]) for name in names]

    def cells(self, name: str) -> list[str]:
        """A field as text; empty where missing."""
        return ["" if text == "nan" else text for text in map(str, self._fields[name].tolist())]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows as an array with named fields."""
        fields = self._fields | {name: column.values for name, column in added.items()}
        whole = np.empty(len(rows), dtype=[(name, values.dtype) for name, values in fields.items()])
        for name, values in fields.items():
            whole[name] = values[rows]
        np.save(file, whole, allow_pickle=False)


@final
class MatrixTable(Table):
    """A matrix on disk. Read, not mapped: mapped pages count as memory in use."""

    format = "npy"
    is_matrix = True

    def __init__(self, content: Content, offset: int, shape: tuple[int, ...], stored: Any) -> None:
        super().__init__(content.source, [f"x{j + 1}" for j in range(shape[1])])
        self._content, self._offset, self._stored, self.known_rows = content, offset, stored, shape[0]
        self._row_bytes = stored.itemsize * shape[1]

    def kind(self, name: str) -> str:
        """Numbers, all of them."""
        return "number"

    def stamp(self) -> tuple[Any, ...]:
        """Size and time of the file."""
        return self._content.stamp()

    def dtype(self, names: Sequence[str]) -> Any:
        """Single precision if that is what is stored."""
        return _float_type(self._stored)

    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """The columns, cut."""
        for X in self.batches(names, n_rows):
            yield [cells_of(X[:, j]) for j in range(len(names))]

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[Array]:
        """The rows in order."""
        with self._content.open() as file:
            for start in range(0, self.n_rows, n_rows):
                yield self._read(file, start, min(n_rows, self.n_rows - start), names)

    def rows(self, names: Sequence[str], picked: Array, n_rows: int) -> Array:
        """Rows by their numbers, one by one."""
        with self._content.open() as file:
            parts = [self._read(file, int(row), 1, names) for row in picked]
        return np.concatenate([np.empty((0, len(names)), self.dtype(names)), *parts])

    def _read(self, file: Any, start: int, n_rows: int, names: Sequence[str]) -> Array:
        file.seek(self._offset + start * self._row_bytes)
        values = np.fromfile(file, self._stored, n_rows * len(self.names))
        if len(values) < n_rows * len(self.names):
            raise ValueError(f"{self.source} has become shorter while it was read")
        X = values.reshape(n_rows, -1).astype(self.dtype(names), copy=False)
        return X if list(names) == self.names else X[:, [self.names.index(name) for name in names]]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows as an array with named fields."""
        whole = np.concatenate([*self.batches(self.names, CHUNK)])
        fields = {name: whole[:, j] for j, name in enumerate(self.names)}
        ArrayTable(self.source, fields).write(file, added, rows)


def cells_of(values: Array) -> Cells:
    """The cells of an array: float32 and float64 stay what they are, text is no number."""
    if values.dtype.kind not in "fiub":
        return Cells(np.full(len(values), np.nan), np.arange(len(values)))
    return Cells(values if values.dtype in (np.float32, np.float64) else values.astype(np.float64))


def _float_type(stored: Any) -> Any:
    return np.dtype("f4" if stored.kind == "f" and stored.itemsize <= 4 else "f8")


def read_npy(content: Content) -> Table:
    """Read an array; nothing in it is unpickled."""
    source = content.source
    with content.open() as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
            shape, by_columns, stored = read_header[min(version[0], 2)](file)
        except ValueError as fault:
            raise TableError(f"{source} is not a whole .npy file: {fault}") from None
        offset = file.tell()
    if len(shape) not in (1, 2) or (stored.names is None and (stored.kind not in "fiub" or len(shape) != 2)):
        raise TableError(f"{source} holds {stored} of shape {shape}; a matrix of numbers is needed")
    if not shape[0] or (len(shape) == 2 and not shape[1]):
        raise TableError(f"{source} is empty: its array has the shape {shape}")
    if missing := max(0, offset + int(np.prod(shape)) * stored.itemsize - (content.size or len(content.data))):
        raise TableError(f"{source} is cut short: {missing} bytes of its {shape[0]} rows are missing")
    if stored.names is None and not by_columns and content.path is not None and not content.packing:
        return MatrixTable(content, offset, shape, stored)
    on_disk = content.path is not None and not content.packing
    file, mode = (content.path, "r") if on_disk else (io.BytesIO(content.in_memory()), None)
    array = np.load(file, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]
    if stored.names is None:
        table = ArrayTable(source, {f"x{j + 1}": array[:, j] for j in range(shape[1])})
        table.is_matrix = True
        return table
    return ArrayTable(source, {name: np.ravel(array[name]) for name in stored.names})
