"""Writing a table with more columns, in its own format or another."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.arrays import ArrayTable
from tkmeans.tables.arrow import ArrowTable, pyarrow
from tkmeans.tables.records import Added, Table, TableError

_FORMATS = dict.fromkeys((".csv", ".tsv", ".txt", ".tab", ".dat", ".data"), "text")
_FORMATS |= {".parquet": "parquet", ".pq": "parquet", ".npy": "npy"}
_FORMATS |= dict.fromkeys((".feather", ".arrow", ".ipc"), "feather")
_NOT_WRITTEN = (".xlsx", ".xls", ".ods", ".json", ".npz", ".pkl", ".pickle", ".gz", ".zip", ".html")


def write_table(
    table: Table,
    file: BinaryIO,
    added: Mapping[str, Added],
    *,
    rows: Array | None = None,
    like: str | os.PathLike[str] = "",
) -> None:
    """Write a table with added columns to an open file.

    Parameters
    ----------
    table : Table
        What was read.
    file : binary file
        Where to write.
    added : mapping of str to Added
        Further columns, one value for each row of the table.
    rows : ndarray of int, default=None
        Which rows to write; None for all.
    like : path-like, default=""
        A file name whose suffix says the format. Text stays as it was, delimiter, decimal sign,
        quotes and all. Without a suffix that is known the table keeps its format.
    """
    if clash := [name for name in added if name in table.names]:
        raise TableError(f"{table.source} already has a column {clash[0]!r}")
    rows = np.arange(table.n_rows) if rows is None else rows
    wanted = _FORMATS.get(Path(like).suffix.casefold(), table.format)
    if wanted == table.format:
        table.write(file, added, rows)
    elif wanted == "text":
        _write_csv(table, file, added, rows)
    elif wanted == "npy":
        fields = {name: _plain(table, name) for name in table.names}
        ArrayTable(table.source, fields).write(file, added, rows)
    else:
        arrow = pyarrow(table.source)
        columns = {name: arrow.array(_plain(table, name, None), from_pandas=True) for name in table.names}
        ArrowTable(table.source, arrow.table(columns), wanted).write(file, added, rows)


def check_format(path: str | os.PathLike[str]) -> None:
    """Complain about a file name that asks for a format which cannot be written, or not here."""
    suffix = Path(path).suffix.casefold()
    if suffix in _NOT_WRITTEN:
        raise TableError(f"tkmeans writes .csv, .tsv, .txt, .parquet, .feather and .npy, not {suffix} as in {path}")
    if _FORMATS.get(suffix) in ("parquet", "feather"):
        pyarrow(os.fspath(path))


def _plain(table: Table, name: str, nothing: str | None = "") -> Array:
    """A column as an array: its numbers if that is all it has, else its text."""
    column = table.column(name)
    return np.array([cell or nothing for cell in table.cells(name)]) if column.n_bad else column.values


def _write_csv(table: Table, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
    columns = [table.cells(name) for name in table.names]
    for values, known in added.values():
        write = str if np.issubdtype(values.dtype, np.integer) else "{:.6g}".format
        columns.append([write(value) if there else "" for value, there in zip(values.tolist(), known, strict=True)])
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*table.names, *added])
    lines.writerows([column[i] for column in columns] for i in rows)
    file.write(text.getvalue().encode())
