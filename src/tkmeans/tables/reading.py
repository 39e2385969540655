"""Which reader a file needs: its first bytes say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tkmeans.tables.arrays import read_npy
from tkmeans.tables.arrow import read_arrow
from tkmeans.tables.records import Reading, Table, TableError
from tkmeans.tables.text import read_text

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
