"""Tables in NumPy's own format: a matrix, or records with named fields."""

import io
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.arrow_table import held_table
from tkmeans.tables.file_content import Content, pyarrow
from tkmeans.tables.table import CHUNK, Cells, Table, TableError, cells_of


@final
class MatrixTable(Table):
    """A matrix on disk, or held. Read, not mapped: mapped pages count as memory in use."""

    format = "npy"
    is_matrix = True

    def __init__(self, content: Content, offset: int, shape: Sequence[int], stored: Any, held: Any) -> None:
        names = [f"x{j + 1}" for j in range(shape[1])]
        super().__init__(content.source, names, ["number"] * shape[1])
        self._content, self._offset, self._stored, self._held = content, offset, stored, held
        self.known_rows, self._row_bytes, self.stamp = shape[0], stored.itemsize * shape[1], content.stamp
        self.singles = set(names) if stored.kind == "f" and stored.itemsize <= 4 else set()

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
        if self._held is None:
            file.seek(self._offset + start * self._row_bytes)
            values = np.fromfile(file, self._stored, n_rows * len(self.names))
            if len(values) < n_rows * len(self.names):
                raise ValueError(f"{self.source} has become shorter while it was read")
        else:
            values = self._held[start : start + n_rows]
        X = values.reshape(n_rows, -1).astype(self.dtype(names), copy=False)
        return X if list(names) == self.names else X[:, [self.names.index(name) for name in names]]


def read_npy(content: Content) -> Table:
    """Read an array; nothing in it is unpickled."""
    source = content.source
    if content.packing or content.path is None:
        data = content.in_memory()
        content = Content(source, None, data, "", len(data))
    with content.open() as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
            shape, by_columns, stored = read_header[min(version[0], 2)](file)
        except ValueError as fault:
            raise TableError(f"{source} is not a whole .npy file: {fault}") from None
        offset = file.tell()
    if len(shape) != 2 - (stored.names is not None) or (stored.names is None and stored.kind not in "fiub"):
        raise TableError(f"{source} holds {stored} of shape {shape}; a matrix of numbers is needed")
    if not all(shape):
        raise TableError(f"{source} is empty: its array has the shape {shape}")
    if missing := max(0, offset + int(np.prod(shape)) * stored.itemsize - content.size):
        raise TableError(f"{source} is cut short: {missing} bytes of its {shape[0]} rows are missing")
    if stored.names is None and not by_columns and content.path is not None:
        return MatrixTable(content, offset, shape, stored, None)
    held = content.path is None
    array = np.load(io.BytesIO(content.data)) if held else np.load(str(content.path), mmap_mode="r")
    if stored.names is None:
        return MatrixTable(content, offset, shape, stored, array)
    arrow = pyarrow("to read arrays with named fields")
    return held_table(source, arrow.table({name: np.ascontiguousarray(array[name]) for name in stored.names}))
