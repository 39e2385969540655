"""Tables in .npy files, NumPy's own format."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import BinaryIO, final

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
