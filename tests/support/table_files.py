"""Tables in files: written for tests, read by the libraries of their formats, and given to the command."""

import io

import numpy as np
import pytest

from tkmeans.tables import write_table


def written(path, content):
    """Write text or bytes to a file, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def csv_table(path, rows):
    """Write rows of numbers, with the columns a, b, c."""
    np.savetxt(path, rows, delimiter=",", header=",".join("abcdef"[: rows.shape[1]]), comments="")
    return path


def out(table, like, rows=None):
    """What a table is written as, in the format of this name."""
    file = io.BytesIO()
    write_table(table, file, {}, rows=rows, like=like)
    return file.getvalue()


def read_as(suffix, data):
    """Bytes of a Parquet or Feather file as a table of Arrow."""
    reader = pytest.importorskip("pyarrow.parquet" if suffix == "parquet" else "pyarrow.feather")
    return reader.read_table(io.BytesIO(data))


def command(*words):
    """Type a command."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from tkmeans.cli import app

    return CliRunner().invoke(app, [*map(str, words)])
