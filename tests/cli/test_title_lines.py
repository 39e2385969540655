"""Lines that are no rows: titles above the names of the columns, repeated names, rules and totals."""

import numpy as np
import openpyxl
import pytest

from tkmeans import TKMeans
from tkmeans.tables import TableError

ROWS = [f"{x:.1f},{y:.1f},{'red' if x > 50 else 'blue'}" for x, y in np.random.default_rng(0).normal(50, 9, (30, 2))]
TITLES = ["Export of table,,", "Date: 2020-01-01,,", ",,"]
WAY_OUT = "delete the lines above the names of the columns"


def said(done):
    return " ".join(done.output.split())


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_titles_above_the_names_are_refused_with_the_advice_to_delete_them(run, table, n, sign):
    lines = [line.replace(",", sign) for line in [*TITLES[:n], "len,wid,colour", *ROWS]]
    message = said(run("fit", table(*lines), "-k", 2, code=1))
    assert f"its first line fills 1 of 3 cells, and a later one begins with 'len', 'wid'; {WAY_OUT}" in message
    assert "--missing" not in message


def test_words_for_missing_values_do_not_make_a_table_of_titles(run, table):
    file = table(*TITLES, "len,wid,colour", *ROWS)
    words = "--missing", "Date: 2020-01-01", "--missing", "len", "--missing", "wid"
    assert WAY_OUT in said(run("fit", file, "-k", 2, *words, code=1))


def test_a_fit_of_a_file_with_titles_raises_the_same_error(table):
    with pytest.raises(TableError, match=WAY_OUT):
        TKMeans(2).fit(table(*TITLES, "len,wid,colour", *ROWS))


def test_a_merged_title_in_a_workbook_is_refused_with_the_same_advice(run, tmp_path):
    book = openpyxl.Workbook()
    for row in [["Sales of 2020"], [], ["len", "wid", "colour"], *([float(x), float(y), c] for x, y, c in cells())]:
        book.active.append(row)
    book.active.merge_cells("A1:C1")
    book.save(tmp_path / "t.xlsx")
    assert WAY_OUT in said(run("fit", tmp_path / "t.xlsx", "-k", 2, code=1))


def cells():
    return (row.split(",") for row in ROWS)


def test_the_names_of_the_first_line_are_taken_if_somebody_says_so(run, table):
    file = table("Export of table,,", "len,wid,colour", *ROWS)
    document = run("fit", file, "--header", "--columns", "2", "--missing", "wid", "--dry-run", "--json").document
    assert [column["column"] for column in document["columns"]] == ["Export of table", "x2", "x3"]


def test_a_header_that_names_few_of_its_columns_is_no_title(run, table):
    document = run("fit", table("len,,", *ROWS), "--dry-run", "--json").document
    assert [column["column"] for column in document["columns"]] == ["len", "x2", "x3"]


@pytest.mark.parametrize("at", [[10], [5, 20]])
def test_repeated_lines_of_names_are_to_be_deleted_and_not_missing(run, table, at):
    rows = [*ROWS]
    for i in at:
        rows.insert(i, "len,wid,colour")
    message = said(run("fit", table("len,wid,colour", *rows), "-k", 2, code=1))
    rows = "that row" if len(at) == 1 else "these rows"
    assert f"delete {rows}, where the names of the columns are repeated, or add --without len" in message
    assert "--missing" not in message


def test_predict_names_no_option_that_it_lacks_in_the_advice_on_repeated_names(run, table, tmp_path):
    run("fit", table("len,wid,colour", *ROWS), "-k", 2, "--model", tmp_path / "m.json")
    file = table("len,wid,colour", *ROWS[:9], "len,wid,colour", *ROWS[9:], name="new.csv")
    message = said(run("predict", tmp_path / "m.json", file, code=1))
    assert "where the names of the columns are repeated" in message
    assert "--without" not in message


@pytest.mark.parametrize("rule", ["---", ":---:", "-----:"])
def test_the_rule_of_a_markdown_table_is_to_be_deleted_and_not_missing(run, table, rule):
    rows = [f"|{row.replace(',', '|')}|" for row in ["len,wid,colour", ",".join([rule] * 3), *ROWS]]
    message = said(run("fit", table(*rows), "-k", 2, code=1))
    assert "delete that row, as a line of a Markdown table is no row" in message
    assert "--missing" not in message


def test_several_rows_of_units_above_the_numbers_are_to_be_deleted(run, table):
    file = table("len,wid,colour", "length,width,-", "cm,mm,-", *ROWS)
    assert "delete these rows if they hold units or second names" in said(run("fit", file, "-k", 2, code=1))


@pytest.mark.parametrize("line", ["(30 rows)", "# checked until here"])
@pytest.mark.parametrize("at", [15, 30])
def test_lines_that_are_no_rows_are_to_be_deleted(run, table, line, at):
    rows = [*ROWS[:at], line, *ROWS[at:]]
    message = said(run("fit", table("len,wid,colour", *rows), "-k", 2, code=1))
    assert f"line {at + 2} has 1; delete lines that are no rows, such as comments and totals" in message
