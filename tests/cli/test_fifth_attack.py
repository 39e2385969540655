"""What a fifth attack broke in the command and in files, each with a test that fails if it comes back."""

import csv

import numpy as np
import pytest


@pytest.fixture
def table(tmp_path):
    """Write a table of these lines."""

    def write(*lines, name="table.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    return write


def column(path, name, delimiter=","):
    """The cells of a column, by Python's own reader."""
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file, delimiter=delimiter)]


def groups(n, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, 2)).round(3) + np.arange(n)[:, None] % 2 * apart


def lines(X, sign=".", delimiter=","):
    """The rows as lines of text, with this sign before the decimals."""
    return [delimiter.join(f"{x:.3f}".replace(".", sign) for x in row) for row in X]


# ---- the layout of text ------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Preis;Name, Vorname;Ort", "{};Muster{i};Ulm"),  # a comma in the header, as many as in the lines
        ("Preis;Name;Ort", "{};Muster{i};Ulm"),
        ("", "{};Muster{i};Ulm"),
        ("", "{};Muster, Hans{i};Ulm;x;y"),
        ("Wert 1 (x,y);Ort;Wert 2;a, b;b;c;d", "{};Bonn;5,0{i};x0;y;z;w"),
        ("x,y;d1;d2", "{};2021-07-25;2023-09-04"),
        ("ok;x,y", "TRUE;{}"),
    ],
)
def test_a_comma_within_numbers_divides_no_cells(run, table, delimiter, header, row):
    numbers = [f"{x:.2f}".replace(".", ",") for x in groups(60)[:, 0] / 40 + 12.25]  # only the decimals differ
    rows = [row.format(x, i=i % 7).replace(";", delimiter) for i, x in enumerate(numbers)]
    file = table(*[header.replace(";", delimiter)] * bool(header), *rows)
    found = run("fit", file, "-k", 2, "--json").document
    assert len({*found["labels"][::2]}) == len({*found["labels"][1::2]}) == 1
    assert found["labels"][0] != found["labels"][1]
    assert found["carried"]  # the other columns, cut where they should be


def test_dates_between_blanks_are_values_and_words_beside_a_comma_and_blanks_are_asked_about(run, table):
    rows = [f"{row} 2021-07-25 2023-09-04" for row in lines(groups(60)[:, :1], ",")]
    assert run("fit", table("x,y d1 d2", *rows), "-k", 2, "--json").document["columns"] == ["x,y"]
    message = run("fit", table(*("12,5 Main Street" for _ in range(9))), "-k", 2, code=1).output
    assert "--delimiter ," in message
    assert "--delimiter ' '" in message
    named = table("number,street", *(f"{row} Main Street" for row in lines(groups(60))))
    assert run("fit", named, "-k", 2, "--json").document["columns"] == ["number"]


@pytest.mark.parametrize("row", ["{},x;y;z;w", "{},Action|Comedy,3", "{}, x; y", "{}, x y, 3"])
def test_other_signs_within_text_divide_no_cells(run, table, row):
    file = table(*(row.format(x) for x in lines(groups(60)[:, :1])))
    assert "x1" in run("fit", file, "-k", 2, "--json").document["columns"]
