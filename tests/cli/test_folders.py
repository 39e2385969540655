"""A folder for the command: which files are read, columns that differ between them, and the current folder."""

import os
import re

import pytest
from support.command_tables import column, groups, lines, positive_groups

from tkmeans import TKMeans

# ---- which files are read ------------------------------------------------------------------------


def test_a_folder_names_what_it_does_not_read_and_passes_over_parts_without_rows(run, table, tmp_path):
    X = lines(groups(60))
    table("a,b", *X, name="f/a.csv")
    table("a,b", *X, name="f/_b.csv")
    table("a,b", name="f/z.csv")
    table(name="f/y.csv")
    table(name="f/_SUCCESS")
    table("a,b", *X, name="f/k=1/e.csv")
    document = run("fit", tmp_path / "f", "-k", 2, "--json").document
    assert document["rows"] == 120
    notes = " ".join(document["notes"])
    assert "_b.csv" in notes
    assert "without rows: y.csv, z.csv" in notes
    assert "those of folders: k" in notes
    assert "_SUCCESS" not in notes
    table("a,b", name="none/z.csv")
    assert "no file with rows" in run("fit", tmp_path / "none", "-k", 2, code=1).output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_a_folder_is_named_and_not_waited_for(run, table):
    file = table("a,b", *(f"{a},{b}" for a, b in positive_groups(60, digits=3)), name="f/1.csv")
    os.mkfifo(file.with_name("2.csv"))
    assert "2.csv" in run("fit", file.parent, "-k", 2).output


@pytest.mark.parametrize("name", [".", "./", ".."])
def test_the_current_folder_and_the_one_above_it_are_inputs_like_others(run, table, tmp_path, monkeypatch, name):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    (tmp_path / "f" / "below").mkdir()
    monkeypatch.chdir(tmp_path / "f" / ("below" if name == ".." else "."))
    suggested = run("fit", name, "-k", 2, "--report", tmp_path / "r.html").stdout
    assert "f-clustered" in suggested
    run("fit", name, "-k", 2, "--out", tmp_path / "o.csv")
    assert len(column(tmp_path / "o.csv", "cluster")) == 60


# ---- columns that differ between files -----------------------------------------------------------


@pytest.mark.parametrize("most", [20, 40])
@pytest.mark.parametrize(
    ("first", "second"),
    [("12.3 %", "0.123"), ("12 EUR", "12 USD"), ("12.5", "2020-01-02"), ("true", "12.5"), ("12.5", "true")],
)
def test_a_folder_does_not_mix_units_and_kinds_in_one_column(run, table, first, second, most):
    rows = lines(groups())
    file = table("a,b,p", *(f"{row},{first}" for row in rows[:most]), name="f/1.csv")
    table("a,b,p", *(f"{row},{second}" for row in rows[most:]), name="f/2.csv")
    assert "column 'p'" in run("fit", file.parent, "-k", 2, "--columns", "a,p", code=1).stderr
    whole = table("a,b,p", *(f"{row},{[first, second][i >= most]}" for i, row in enumerate(rows)))
    assert "column 'p'" in run("fit", whole, "-k", 2, "--columns", "a,p", code=1).stderr


def test_a_column_that_is_empty_in_one_file_of_a_folder_is_what_it_is_in_the_others(run, table):
    for name, cells in {"1": ("", ""), "2": ("2020-01-02", "7 %"), "3": ("", "")}.items():
        rows = (f"{row},{cells[0]},{cells[1] and f'{i} %'}" for i, row in enumerate(lines(groups())))
        file = table("a,b,d,p", *rows, name=f"f/{name}.csv")
    plan = run("fit", file.parent, "-k", 2, "--columns", "a,p", "--dry-run", "--json").document
    holds = {column["column"]: column["holds"] for column in plan["columns"]}
    assert (holds["d"], holds["p"]) == ("date", "number")


def test_a_file_of_a_folder_without_a_column_is_named_even_if_columns_are_called_by_numbers(run, table):
    file = table("1,2", *lines(groups()), name="f/1.csv")
    table("x,y", *lines(groups()), name="f/2.csv")
    assert "2.csv has no column '1'" in run("fit", file.parent, "-k", 2, "--header", code=1).stderr


def test_a_column_that_a_file_of_a_folder_lacks_is_named_with_the_files_that_have_it(table, tmp_path):
    for name in "bc":
        table("a,b", *lines(groups(60)), name=f"f/{name}.csv")
    result = TKMeans(2).fit(tmp_path / "f").predict(tmp_path / "f" / "b.csv")
    with pytest.raises(
        ValueError, match=rf"b\.csv has no column 'cluster'; .*; 'cluster' is in {re.escape(str(result))}$"
    ):
        TKMeans(2).fit(tmp_path / "f")
