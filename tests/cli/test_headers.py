"""Which line names the columns: marked by #, numbers for names, titles above it and units below it."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from support.command_tables import groups, lines, positive_groups, said, workbook, write_columns

from tkmeans import DataFile, TKMeans
from tkmeans.tables import TableError, read_table

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- lines with a number sign, and signs of markup -----------------------------------------------


@pytest.mark.parametrize("more", [(), ("--header",)])
@pytest.mark.parametrize(
    ("above", "delimiter", "names"),
    [
        (["#,Name,HP,Attack"], ",", ["#", "Name", "HP", "Attack"]),
        (["#CHROM\tPOS\tREF\tQUAL"], "\t", ["#CHROM", "POS", "REF", "QUAL"]),
        (["# n label Na y"], " ", ["n", "label", "Na", "y"]),  # as numpy.savetxt writes it
        (["# n,label,x,y"], ",", ["n", "label", "x", "y"]),
        (["# by us", "", "# n;label;x;y"], ";", ["n", "label", "x", "y"]),
    ],
)
def test_a_line_with_a_number_sign_directly_above_the_rows_names_their_columns(
    run, table, tmp_path, more, above, delimiter, names
):
    rows = [f"{7 + i * i},p{i},{row}" for i, row in enumerate(lines(groups(60)))]
    file = table(*above, *(row.replace(",", delimiter) for row in rows))
    found = run("fit", file, "-k", 2, "--columns", ",".join(names[2:]), *more, "--out", tmp_path / "o.csv", "--json")
    assert found.document["columns"] == names[2:]
    assert found.document["rows"] == 60
    written = (tmp_path / "o.csv").read_text().splitlines()
    assert written[: len(above)] == [
        *above[:-1],
        delimiter.join([above[-1], "cluster", "probability", "outlier_pvalue"]),
    ]
    assert [line.rsplit(delimiter, 3)[0] for line in written[len(above) :]] == file.read_text().splitlines()[
        len(above) :
    ]
    assert TKMeans(2).fit(DataFile(file, columns=names[2:])).feature_names_in_.tolist() == names[2:]
    below = table(*above, delimiter.join("abcd"), *(row.replace(",", delimiter) for row in rows))
    assert run("fit", below, "-k", 2, "--columns", "c,d", "--json").document["rows"] == 60  # names below are the names


@pytest.mark.parametrize(
    "above",
    [["#1,2.5,3", "#2,9.5,1"], ["# from Ulm, 2021,b"], ["# a,b,c", ""], ["# a,b"]],  # a row, a remark, not directly
)
def test_lines_taken_for_comments_are_mentioned_where_the_rows_have_no_names(run, table, above):
    rows = [f"z,{row}" for row in lines(groups(60))]
    found = run("fit", table(*above, *rows), "-k", 2, "--json").document
    assert found["rows"] == 60
    (note,) = (note for note in found["notes"] if "x1 to x3" in note)
    assert f"lines with # above the data ({sum(line.startswith('#') for line in above)}) are comments" in note
    assert "--header" not in note
    assert "lines with #" in run("fit", table(*above), "-k", 2, code=1).output  # and nothing else


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_names_and_cells_may_begin_with_the_sign_of_markup(run, table, delimiter):
    rows = lines(groups(60), delimiter=delimiter)
    file = table(delimiter.join(["<OPEN>", "<CLOSE>"]), *rows)
    assert run("fit", file, "-k", 2, "--json").document["columns"] == ["<OPEN>", "<CLOSE>"]
    cells = table("<LOD,1,2", *lines(np.column_stack([groups(60), groups(60)[:, 0]])))
    assert "--missing '<LOD'" in run("fit", cells, "--no-header", "-k", 2, code=1).output
    for page in ("<!DOCTYPE html>", "<html><body>", "<html lang='en'>\n  <head>", "<?xml version='1.0'?>\n<table>"):
        assert "is a web page" in run("fit", table(page, "<p>1,2</p>", name="p.csv"), "-k", 2, code=1).output


# ---- names that are numbers ----------------------------------------------------------------------

N = 60


def lines_of(frame, **options):
    return frame.to_csv(**options).splitlines()


COUNTRIES = pd.DataFrame(positive_groups(p=3), [f"c{i}" for i in range(N)], [1990, 1991, 1992])
POPULATIONS = (COUNTRIES * 1000).astype(int)  # whole numbers, of which none is a year
NUMBERED = {
    "years beside the names of rows": lines_of(COUNTRIES, index_label="Country Name"),
    "years beside nothing": lines_of(COUNTRIES),
    "years above whole numbers": lines_of(POPULATIONS, index_label="Country Name"),
    "years with gaps": lines_of(COUNTRIES.set_axis([1990, 2000, 2015], axis=1), index_label="Country"),
    "years that come last first": lines_of(COUNTRIES.set_axis([2021, 2020, 2019], axis=1), index_label="Country"),
    "two years": lines_of(COUNTRIES[[1990, 1991]], index_label="Country"),
    "years with semicolons": lines_of(COUNTRIES, sep=";", decimal=",", index_label="Country"),
    "ages in steps of ten": lines_of(pd.DataFrame(positive_groups(p=5), columns=range(10, 60, 10))),
    "wavelengths": lines_of(pd.DataFrame(positive_groups(p=7), columns=np.arange(400, 403.5, 0.5)), index=False),
    "months": lines_of(
        pd.DataFrame(positive_groups(p=12).astype(int), columns=range(1, 13), index=COUNTRIES.index), index_label="shop"
    ),
    "pandas with its index": lines_of(pd.DataFrame(positive_groups(p=3))),
    "pandas with its index and two columns": lines_of(pd.DataFrame(positive_groups(p=2))),
    "pandas with its index and one column": lines_of(pd.DataFrame(positive_groups(p=1))),
    "pandas without its index": lines_of(pd.DataFrame(positive_groups(p=3)), index=False),
    "pandas with text in one column": lines_of(pd.DataFrame(positive_groups(p=3)).assign(**{"3": "a"}), index=False),
    "many pixels": lines_of(pd.DataFrame(load_digits().data.astype(int)), index=False),
}
ORDINARY = {
    "irises": load_iris().data,
    "counts that begin with 1, 2, 3": np.vstack([[1, 2, 3], np.random.default_rng(0).integers(1, 6, (200, 3))]),
    "ages from and to": np.array([[20, 21], [31, 35], [22, 23], [40, 52]] * 5),
    "rows that count on": np.arange(60).reshape(20, 3),
    "beginnings and ends in years": np.array([[1990, 1995], [1987, 2001], [2003, 2004]] * 5),
    "ranks": np.array([[1, 2, 3, 4, 5], *(np.random.default_rng(i).permutation(5) + 1 for i in range(40))]),
    "years of events": np.vstack([[1990, 1995, 2001, 2004], np.random.default_rng(0).integers(1950, 2020, (20, 4))]),
    "one column": np.arange(10)[:, None] ** 2,
    "two rows": np.array([[1, 2], [5, 7]]),
    "a name and a few numbers": np.array([["a", "2020"]] + [["b", f"{i}.5"] for i in range(9)]),
    "decimals in equal steps": np.vstack([[5.1, 5.3, 5.5], positive_groups(p=3)]),
    "decimals beside whole numbers": np.array([["5.1", "2", "3"]] + [["4.9", "3.25", f"{i}.5"] for i in range(40)]),
}


@pytest.mark.parametrize("case", NUMBERED)
def test_numbers_that_are_no_row_like_those_below_are_names_of_columns(run, table, case):
    lines = NUMBERED[case]
    names = [name.strip() for name in lines[0].replace(";", ",").split(",")]
    numbers = [name for name in names if name[:1].isdecimal()]
    done = run("fit", file := table(*lines), "--dry-run", "--json").document
    assert [column["column"] for column in done["columns"]] == [name or "x1" for name in names]
    assert done["rows"] == len(lines) - 1
    shown = " to ".join(dict.fromkeys([numbers[0], numbers[-1]]))
    assert (
        f"the first line ({shown}) is read as the names of the columns; add --no-header if it is data" in done["notes"]
    )
    assert run("fit", file, "--dry-run", "--json", "--no-header").document["rows"] == len(lines)


@pytest.mark.parametrize("form", ["t.xlsx", "t.json"])
def test_years_are_names_in_workbooks_and_rows_of_json(run, tmp_path, form):
    rows = [["Country", 1990, 1991], *([f"c{i}", *x] for i, x in enumerate(positive_groups(p=2).tolist()))]
    if form == "t.xlsx":
        workbook(tmp_path / form, rows)
    else:
        (tmp_path / form).write_text(json.dumps(rows))
    assert run("fit", tmp_path / form, "-k", 2, "--json").document["columns"] == ["1990", "1991"]


def test_every_command_and_the_library_take_years_for_names(run, table, tmp_path):
    file, model = table(*NUMBERED["years above whole numbers"]), tmp_path / "m.json"
    few = table(*NUMBERED["years above whole numbers"][:3], name="new.csv")
    fitted = run("fit", file, "-k", 2, "--model", model, "--report", tmp_path / "r.html", "--json").document
    assert fitted["columns"] == ["1990", "1991", "1992"]
    assert run("outliers", file, "-k", 2, "--json").document["rows"] == N
    assert run("select-k", file, "--max", 3, "--json").document["columns"] == fitted["columns"]
    assert run("predict", model, few, "--json").document["labels"] == fitted["labels"][:2]  # of two rows
    with warnings.catch_warnings(record=True, action="always") as heard:
        ours = TKMeans(2, random_state=0).fit(file)
        assert pd.read_parquet(ours.predict(few)).iloc[:, 0].tolist() == ours.labels_[:2].tolist()
    assert sum("the first line (1990 to 1992) is read as the names" in str(each.message) for each in heard) == 2
    assert [*ours.feature_names_in_] == fitted["columns"]
    assert len(ours.labels_) == N


def test_small_files_of_a_folder_have_the_years_of_the_first_for_names(run, tmp_path):
    lines, folder = NUMBERED["years above whole numbers"], tmp_path / "parts"
    folder.mkdir()
    for i, part in enumerate((lines[1:40], lines[40:43], lines[43:])):
        (folder / f"{i}.csv").write_text("\n".join([lines[0], *part]))
    found = run("fit", folder, "-k", 2, "--json").document
    assert (found["rows"], found["columns"]) == (N, ["1990", "1991", "1992"])


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_first_row_is_data(case, table):
    rows = ORDINARY[case]
    found = read_table(table(*(",".join(map(str, row)) for row in rows.tolist())))
    assert found.n_rows == len(rows)
    assert found.names[0] == "x1"


@pytest.mark.parametrize(
    "rows",
    [
        [("0", "1"), *((f"{t / 10}", f"{np.cos(t / 10):.3f}") for t in range(1, 40))],  # a curve, or pandas
        [(1, 2, 3, 4, 5), *np.random.default_rng(0).integers(1, 5, (40, 5))],  # answers, or names
        [("Country", 2020), *((f"c{i}", i**0.5) for i in range(200))],  # one year
        [(0, 1, 2, 3), *np.random.default_rng(0).normal(9, 1, (3, 4)).round(2)],  # few
    ],
)
def test_a_first_row_that_may_be_either_is_asked_about(run, table, rows):
    file = table(*(",".join(map(str, row)) for row in rows))
    shown = "2020" if 2020 in rows[0] else f"{rows[0][0]} to {rows[0][-1]}"
    wanted = f"its first line ({shown}) may be names or data; add --header or --no-header"
    assert wanted in said(run("fit", file, "-k", 2, code=1))
    for option, n_rows in (("--header", len(rows) - 1), ("--no-header", len(rows))):
        assert run("fit", file, "--dry-run", "--json", option).document["rows"] == n_rows
    with pytest.raises(TableError, match="may be names or data; add header=True or header=False"):
        TKMeans(2).fit(DataFile(file))


def test_numbers_in_the_first_line_of_a_workbook_are_questioned(run, tmp_path):
    X = groups()
    file = write_columns(tmp_path / "t.xlsx", {2019: X[:, 0], 7: X[:, 1]})
    assert "the first line looks like data" in run("fit", file, "-k", 2).stderr.replace("The", "the")
    file = write_columns(tmp_path / "t.xlsx", {2019: X[:, 0], 2020: X[:, 1]})
    assert "he first line (2019 to 2020) is read as the names" in run("fit", file, "-k", 2).stderr
    assert run("fit", file, "-k", 2, "--header", "--json").document["columns"] == ["2019", "2020"]


# ---- titles and second names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "title", [["Sales of 2024"], ["Sales of 2024", "Made by Anna"], ["Sales, 2024"], ["Sales", ""]]
)
def test_lines_above_the_names_of_columns_are_to_be_deleted(run, table, title):
    rows = [f"n{i},{a},{b}" for i, (a, b) in enumerate(positive_groups())]
    found = said(run("fit", table(*title, "name,a,b", *rows), "-k", 2, code=1))
    assert ", delete lines such as a title above these names, put quotation marks" in found
    for wrong in ("n", "n,1,2,3"):
        assert "delete lines" not in said(run("fit", table("name,a,b", *rows, wrong), "-k", 2, code=1))


def test_a_second_row_of_names_or_units_is_named_with_the_way_out(run, table):
    file = table("weight,height", "kg,cm", *(f"{a},{b}" for a, b in positive_groups(p=2)))
    assert "line 2: 'kg'; delete that row if it holds units or second names, or" in said(run("fit", file, code=1))
