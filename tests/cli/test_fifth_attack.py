"""What a fifth attack broke in the command and in files, each with a test that fails if it comes back."""

import csv
import json

import numpy as np
import pytest
from pyarrow import parquet

from tkmeans import TKMeans


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


# ---- what the first rows do not show ------------------------------------------------------------------


def test_a_cell_behind_the_last_delimiter_is_complained_of_wherever_it_stands(run, table, tmp_path):
    for at in (50, 650):
        rows = [f"{row},{'7' if i == at else ''}" for i, row in enumerate(lines(groups(700)))]
        message = run("fit", table("a,b", *rows), "-k", 2, "--out", tmp_path / "o.csv", code=1).output
        assert f"line {at + 2} has 3" in message
        assert not (tmp_path / "o.csv").exists()


def test_empty_cells_in_quotes_behind_the_last_column_leave_the_new_columns_their_places(run, table, tmp_path):
    rows = [f'{row},""' for row in lines(groups(60))]
    run("fit", table("a,b", *rows), "-k", 2, "--out", tmp_path / "o.csv")
    clusters = column(tmp_path / "o.csv", "cluster")
    assert len({*clusters[::2]}) == len({*clusters[1::2]}) == 1
    assert {*clusters} == {"0", "1"}


def test_codes_keep_their_zeros_wherever_the_first_stands(run, table, tmp_path):
    items = [*np.random.default_rng(1).integers(10_000, 99_999, 690).astype(str), *["00123"] * 10]
    file = table("a,b,item", *(f"{row},{item}" for row, item in zip(lines(groups(700)), items, strict=True)))
    out = tmp_path / "o.parquet"
    assert run("fit", file, "-k", 2, "--out", out, "--json").document["columns"] == ["a", "b"]
    assert parquet.read_table(out)["item"].to_pylist() == items
    with pytest.warns(UserWarning, match="item .a code with leading zeros"):
        assert TKMeans(2).fit(file).n_features_in_ == 2


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_codes_of_a_folder_keep_their_zeros_whichever_file_has_them(run, table, tmp_path, order):
    X, items = groups(80), [f"{i * 1237 % 99991:05}" for i in range(20, 100)]
    rows = [f"{row},{item}" for row, item in zip(lines(X), items, strict=True)]
    with_zeros = [item[0] == "0" for item in items]
    for name, wanted in zip(order, (False, True), strict=True):
        table("a,b,item", *(row for row, has in zip(rows, with_zeros, strict=True) if has is wanted), name=f"f/{name}")
    out = tmp_path / "o.parquet"
    assert run("fit", tmp_path / "f", "-k", 2, "--out", out, "--json").document["columns"] == ["a", "b"]
    assert sorted(parquet.read_table(out)["item"].to_pylist()) == sorted(items)


@pytest.mark.parametrize("first", ["", "1"])
def test_what_a_column_holds_does_not_depend_on_where_its_first_cell_stands(run, table, first):
    late = [f"{['true', 'false'][i % 2]},${i % 7}.50,2020-01-{10 + i % 9},1e{i % 3}" for i in range(150)]
    rows = [f"{row},{rest}" for row, rest in zip(lines(groups(700)), [",,,"] * 550 + late, strict=True)]
    rows = rows if not first else rows[::-1]
    plan = run("fit", table("a,b,c,d,e,f", *rows), "--dry-run", "--json").document["columns"]
    assert [each["holds"] for each in plan] == ["number", "number", "boolean", "number", "date", "number"]


@pytest.mark.parametrize("word", ["-999,5", "-999,50", "-999.5"])
@pytest.mark.parametrize("at", [5, 650])
def test_a_number_with_a_comma_is_missing_however_it_is_written(run, table, word, at):
    rows = lines(groups(700), ",", ";")
    rows[at] = "-999,50;1,5"
    found = run("fit", table("a;b", *rows), "-k", 2, "--missing", word, "--json").document
    assert any("1 missing value" in note for note in found["notes"])
    document = table(json.dumps([{"a": x, "b": y} for x, y in groups(60)] + [{"a": -999.5, "b": 1.0}]), name="t.json")
    found = run("fit", document, "-k", 2, "--missing", word, "--json").document
    assert any("1 missing value" in note for note in found["notes"])
