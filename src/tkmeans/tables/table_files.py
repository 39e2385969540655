"""Files that hold tables, read by what their first bytes say and written by what their names say."""

import csv
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.binary_tables import ArrayTable, ArrowTable, pyarrow, read_arrow, read_npy
from tkmeans.tables.table import Added, Reading, Table, TableError
from tkmeans.tables.text_table import read_text

_ARROW = {b"PAR1": "parquet", b"ARROW1": "feather", b"\xff\xff\xff\xff": "stream"}

# What other files begin with, and what to do about them.
_STRANGERS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\x1f\x8b": "compressed; gunzip it first, or type: gunzip -c FILE | tkmeans ... -",
    b"BZh": "compressed; bunzip2 it first",
    b"\xfd7zXZ": "compressed; unxz it first",
    b"\x28\xb5\x2f\xfd": "compressed; unzstd it first",
    b"FEA1": "in the first Feather format, which was given up; write it again with a recent pyarrow",
    b"SQLite format 3": "an SQLite database; export a table of it as CSV",
    b"\x89HDF": "an HDF5 file; save the table as CSV or Parquet",
    b"%PDF": "a PDF document; copy the table into a CSV file",
    b"\x80\x04\x95": "a pickle, which could run any code; save the table as CSV or Parquet",
    b"\x80\x05\x95": "a pickle, which could run any code; save the table as CSV or Parquet",
}
_MARKUP = {b"<": "a web page or other markup; download the table itself", b"{": "JSON; save the table as CSV"}

# What files of these names are written as.
_FORMATS = dict.fromkeys((".csv", ".tsv", ".txt", ".tab", ".dat", ".data"), "text")
_FORMATS |= {".parquet": "parquet", ".pq": "parquet", ".npy": "npy"}
_FORMATS |= dict.fromkeys((".feather", ".arrow", ".ipc"), "feather")
_NOT_WRITTEN = (".xlsx", ".xls", ".ods", ".json", ".npz", ".pkl", ".pickle", ".gz", ".zip", ".html")


def read_table(path: str | os.PathLike[str], reading: Reading | None = None) -> Table:
    r"""Read a table from a file.

    Parameters
    ----------
    path : path-like
        CSV, TSV or other text, Parquet, Feather (Arrow IPC) or NPY: the content decides,
        not the name. "-" is standard input.
    reading : Reading, default=None
        What to know about a text file that it does not tell itself.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        If it cannot be read, with the reason and the way out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "penguins.csv"
    >>> _ = path.write_text("species;mass\nAdelie;3,75\nGentoo;5,0\n")
    >>> table = read_table(path)
    >>> table.notes
    ['read as text with semicolons, decimal commas']
    >>> table.column("mass").values
    array([3.75, 5.  ])
    >>> folder.cleanup()
    """
    source, data = _bytes_of(path)
    if not data:
        raise TableError(f"{source} is empty")
    if data.startswith(b"\x93NUMPY"):
        return read_npy(data, source)
    if format := _beginning(data, _ARROW):
        return read_arrow(data, format, source)
    if strange := _beginning(data, _STRANGERS) or _beginning(data.lstrip(), _MARKUP):
        raise TableError(f"{source} is {strange}")
    return read_text(data, reading or Reading(), source)


def _beginning(data: bytes, meanings: dict[bytes, str]) -> str | None:
    return next((meaning for magic, meaning in meanings.items() if data.startswith(magic)), None)


def _bytes_of(path: str | os.PathLike[str]) -> tuple[str, bytes]:
    """What to call the file in messages, and what is in it."""
    if os.fspath(path) == "-":
        return "standard input", sys.stdin.buffer.read()
    source = os.fspath(path)
    try:
        return source, Path(path).read_bytes()
    except FileNotFoundError:
        raise TableError(f"there is no file {source}") from None
    except IsADirectoryError:
        raise TableError(f"{source} is a folder; name a file in it") from None
    except OSError as fault:
        raise TableError(f"{source} cannot be read: {fault.strerror}") from None


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
    columns += [column.texts("{:.6g}".format, "") for column in added.values()]
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*table.names, *added])
    lines.writerows([column[i] for column in columns] for i in rows)
    file.write(text.getvalue().encode())
