"""Tables in binary files: NumPy's .npy, and Parquet and Feather (Arrow IPC) by pyarrow."""

import io
from collections.abc import Mapping
from typing import Any, BinaryIO, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.table import Added, Column, Table, TableError, column_of, unique_names


@final
class ArrayTable(Table):
    """An array of rows, or one with named fields; it is always written with named fields."""

    format = "npy"

    def __init__(self, source: str, fields: Mapping[str, Array]) -> None:
        names, notes = unique_names(list(fields))
        super().__init__(source, names, len(next(iter(fields.values()))), notes)
        self._fields = dict(zip(names, fields.values(), strict=True))

    def column(self, name: str) -> Column:
        """The numbers of a column."""
        values = self._fields[name]
        if values.dtype.kind not in "fiu":
            return Column(name, np.full(len(values), np.nan), n_bad=len(values))
        return column_of(name, values)

    def cells(self, name: str) -> list[str]:
        """A column as text; empty where missing."""
        return ["" if text == "nan" else text for text in map(str, self._fields[name].tolist())]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows as an array with named fields."""
        fields = self._fields | {name: column.values for name, column in added.items()}
        whole = np.empty(len(rows), dtype=[(name, values.dtype) for name, values in fields.items()])
        for name, values in fields.items():
            whole[name] = values[rows]
        np.save(file, whole, allow_pickle=False)


def read_npy(data: bytes, source: str) -> ArrayTable:
    """Read an array; nothing in it is unpickled."""
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError as fault:
        raise TableError(f"{source} cannot be read: {fault}") from None
    if array.dtype.names is None:
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
            held = f"an array of shape {array.shape} and type {array.dtype}"
            raise TableError(f"{source} holds {held}; wanted are numbers, in rows and columns")
        array = array[:, None] if array.ndim == 1 else array
        fields = {f"x{j + 1}": array[:, j] for j in range(array.shape[1])}
    else:
        fields = {name: np.ravel(array[name]) for name in array.dtype.names}
    if len(array) == 0 or not fields:
        raise TableError(f"{source} is empty: its array has the shape {array.shape}")
    return ArrayTable(source, fields)


def pyarrow(source: str) -> Any:
    """The library, or what to type to have it."""
    try:
        import pyarrow
    except ImportError:
        raise TableError(f"{source}: Parquet and Feather files need pyarrow: pip install 'tkmeans[io]'") from None
    return pyarrow


@final
class ArrowTable(Table):
    """A table of Arrow's; columns of any type are carried along."""

    def __init__(self, source: str, table: Any, format: str) -> None:
        names, notes = unique_names(table.column_names)
        super().__init__(source, names, table.num_rows, notes)
        self._table, self.format = table, format

    def column(self, name: str) -> Column:
        """The numbers of a column."""
        arrow = pyarrow(self.source)
        cells = self._table.column(self.names.index(name))
        kind = cells.type
        if arrow.types.is_decimal(kind):
            cells = cells.cast(arrow.float64())
        elif arrow.types.is_null(kind):
            return Column(name, np.full(self.n_rows, np.nan))
        elif not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
            return Column(name, np.full(self.n_rows, np.nan), n_bad=self.n_rows - cells.null_count)
        return column_of(name, np.asarray(cells.to_numpy()))

    def cells(self, name: str) -> list[str]:
        """A column as text; empty where missing."""
        return ["" if cell is None else str(cell) for cell in self._table.column(self.names.index(name)).to_pylist()]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows with all their columns, in the format they came in."""
        arrow = pyarrow(self.source)
        table = self._table
        for name, column in added.items():
            table = table.append_column(name, arrow.array(column.values, mask=~column.known))
        table = table if len(rows) == self.n_rows else table.take(arrow.array(rows))
        if self.format == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, file)
        else:
            with arrow.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)


def read_arrow(data: bytes, format: str, source: str) -> ArrowTable:
    """Read a Parquet file, or an Arrow file or stream."""
    arrow = pyarrow(source)
    buffer = arrow.BufferReader(data)
    try:
        if format == "parquet":
            from pyarrow import parquet

            table = parquet.read_table(buffer)
        else:
            open_it = arrow.ipc.open_stream if format == "stream" else arrow.ipc.open_file
            table = open_it(buffer).read_all()
    except (arrow.ArrowException, OSError) as fault:
        raise TableError(f"{source} cannot be read: {fault}") from None
    if table.num_rows == 0 or table.num_columns == 0:
        raise TableError(f"{source} is empty: it has {table.num_rows} rows and {table.num_columns} columns")
    return ArrowTable(source, table, "parquet" if format == "parquet" else "feather")
