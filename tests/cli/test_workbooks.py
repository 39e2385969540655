"""Workbooks and other files of several tables: which one is read, errors in cells, and long numbers."""

import json
import re
import time
import zipfile

import numpy as np
import openpyxl
import pytest
from support.command_tables import are_parted, column, groups, positive_groups, said

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- which table is read -------------------------------------------------------------------------


def test_the_other_sheets_are_named_where_the_first_has_no_rows(run):
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["height", "weight"])
    data = book.create_sheet("Data")
    for row in [["height", "weight"], *positive_groups(60).tolist()]:
        data.append(row)
    book.save("two.xlsx")
    said = " ".join(run("fit", "two.xlsx", "-k", 2, code=1).output.split())
    assert "sheet 'Notes' (of 'Notes', 'Data'; add --table ... for another)" in said
    assert are_parted(run("fit", "two.xlsx", "-k", 2, "--table", "Data", "--json").document["labels"])


@pytest.mark.parametrize("given", [(), ("--table", "Notes")])
def test_the_other_sheets_are_named_where_the_first_has_no_numbers(run, given):
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    for row in (["who", "what"], ["Anna", "measured"], ["Ben", "typed"]):
        book.active.append(row)
    data = book.create_sheet("Data")
    for row in [["height", "weight"], *positive_groups().tolist()]:
        data.append(row)
    book.save("two.xlsx")
    found = said(run("fit", "two.xlsx", "-k", 2, *given, code=1))
    assert "sheet 'Notes' (of 'Notes', 'Data'; add --table ... for another) has no column of numbers" in found


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.npy", "a.parquet"])
def test_a_table_to_choose_is_refused_where_there_is_one_only(run, table, name):
    X = positive_groups(60)
    run("fit", table("a,b", *(f"{a},{b}" for a, b in X)), "-k", 2, "--out", "a.parquet")
    np.save("a.npy", X)
    table(json.dumps([{"a": a, "b": b} for a, b in X.tolist()]), name="a.json")
    table("a,b", *(f"{a},{b}" for a, b in X), name="a.csv")
    assert "leave --table nosuch out" in " ".join(run("fit", name, "-k", 2, "--table", "nosuch", code=2).output.split())


def test_a_table_whose_name_begins_like_a_query_can_be_read(run, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as base:
        base.execute('CREATE TABLE "from here" AS SELECT range AS n, range % 7 * 1.5 AS a FROM range(30)')
        base.execute("CREATE TABLE other AS SELECT 1 AS a")
    assert run("fit", tmp_path / "t.duckdb", "-k", 1, "--table", "from here", "--json").document["rows"] == 30


# ---- cells ---------------------------------------------------------------------------------------


def filled_down(path, n):
    """A workbook with a formula that Excel stores once, in the first of n cells, and whose values are errors."""
    book = openpyxl.Workbook()
    book.active.append(["height", "width", "ratio"])
    for row in positive_groups(n, digits=3).tolist():
        book.active.append([*row, "#N/A"])
    book.save(path)
    with zipfile.ZipFile(path) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    first = f'<f t="shared" ref="C2:C{n + 1}" si="0">A2/0</f>'.encode()

    def formula(cell):
        stored = first if cell[1] == b"C2" else b'<f t="shared" si="0"/>'
        return b'<c r="%s" t="e">%s<v>#DIV/0!</v></c>' % (cell[1], stored)

    sheet = "xl/worksheets/sheet1.xml"
    files[sheet], count = re.subn(rb'<c r="(C[0-9]+)" t="[en]"[^>]*><v>#N/A</v></c>', formula, files[sheet])
    assert count == n
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path


def test_errors_in_cells_of_a_workbook_are_named(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["a", "b"], *groups(60).tolist()]:
        book.active.append(row)
    book.active["B7"] = "#DIV/0!"
    book.active["B7"].data_type = "e"
    book.save(tmp_path / "t.xlsx")
    found = run("fit", tmp_path / "t.xlsx", "-k", 2, "--json").document
    assert any("#DIV/0!" in note for note in found["notes"])


def test_errors_of_a_formula_that_is_filled_down_take_time_in_proportion_to_their_number(run, tmp_path):
    file = filled_down(tmp_path / "book.xlsx", 8000)
    before = time.process_time()
    done = run("fit", file, "-k", 2, "--columns", "height")
    assert time.process_time() - before < 20  # 90 seconds and more if each error looks through all that follow
    assert "#DIV/0!" in done.output


def test_whole_numbers_of_a_workbook_keep_all_digits(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, keys = openpyxl.Workbook(), [1_000_000_000_000_065 + i for i in range(59)] + [7]
    for row in [["a", "b", "k"], *([*row, key] for row, key in zip(groups(60).tolist(), keys, strict=True))]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    run("fit", tmp_path / "t.xlsx", "-k", 2, "--without", "k", "--out", tmp_path / "o.csv")
    assert column(tmp_path / "o.csv", "k") == [*map(str, keys)]
