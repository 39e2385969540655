"""Tables to try the command with, and what it has printed and written."""

import csv
import json

import numpy as np
import pytest

TWO_COLUMNS = ("x,y", "1,2", "3,5", "4,9")  # the lines of a small table


def groups(n=60, p=2, *, apart=20.0, level=0.0, digits=3):
    """Rows of two groups in turn, far apart, the first around this level."""
    return np.random.default_rng(0).normal(size=(n, p)).round(digits) + level + np.arange(n)[:, None] % 2 * apart


def positive_groups(n=60, p=2, *, digits=2):
    """Rows of two groups in turn, far apart, without a number near zero."""
    return groups(n, p, level=30.0, digits=digits)


def are_parted(labels, n=60):
    """Whether labels are that many, and alternate between two."""
    return len(labels) == n and len({*labels[::2]}) == len({*labels[1::2]}) == 1 and labels[0] != labels[1]


def amounts(n=40):
    """Whole numbers of four digits."""
    return np.random.default_rng(0).integers(1100, 9900, n).tolist()


def lines(X, sign=".", delimiter=","):
    """The rows as lines of text, with this sign before the decimals."""
    return [delimiter.join(f"{x:.3f}".replace(".", sign) for x in row) for row in X]


def german(x, decimals=0):
    """A number as it is written in Germany."""
    return f"{x:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


def workbook(path, rows):
    """A workbook of one sheet with these rows."""
    book = pytest.importorskip("openpyxl").Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def write_columns(path, columns):
    """Write columns, in the format that the suffix of the path names, by its own library."""
    pa = pytest.importorskip("pyarrow")
    frame = {name: [None if x != x else x for x in cells] for name, cells in columns.items()}
    if path.suffix == ".csv":
        rows = [",".join(f"{x:.1f}" for x in row) for row in zip(*columns.values(), strict=True)]
        path.write_text("".join(f"{line}\n" for line in [",".join(columns), *rows]))
    elif path.suffix == ".json":
        path.write_text(json.dumps([dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)]))
    elif path.suffix == ".npy":
        np.save(path, np.column_stack([*columns.values()]))
    elif path.suffix == ".xlsx":
        workbook(path, [[*columns], *zip(*frame.values(), strict=True)])
    elif path.suffix == ".feather":
        pytest.importorskip("pyarrow.feather").write_feather(pa.table(frame), path)
    elif path.suffix == ".duckdb":
        with pytest.importorskip("duckdb").connect(str(path)) as base:
            base.register("given", pa.table(frame))
            base.execute("CREATE TABLE t AS FROM given")
    else:
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(frame), path)
    return path


def column(path, name, delimiter=","):
    """The cells of a column, by Python's own reader."""
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file, delimiter=delimiter)]


def said(done):
    """What the command printed, in one line."""
    return " ".join(done.output.split())


def columns_of(run, file, *options):
    """What each column is used for."""
    document = run("fit", file, "--dry-run", "--json", *options).document
    return {each["column"]: each["role"] for each in document["columns"]}
