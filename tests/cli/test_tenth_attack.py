"""What a tenth attack broke in the command and in files, each with a test that fails if it comes back."""

import json
import warnings

import numpy as np
import openpyxl
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

from tkmeans import DataFile, TKMeans
from tkmeans.tables import TableError, read_table

N = 60


def groups(n=N, p=3, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, p)).round(2) + 30 + np.arange(n)[:, None] % 2 * apart


def said(done):
    """What the command printed, in one line."""
    return " ".join(done.output.split())


def lines_of(frame, **options):
    return frame.to_csv(**options).splitlines()


def workbook(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- names that are numbers ------------------------------------------------------------------------------

COUNTRIES = pd.DataFrame(groups(), [f"c{i}" for i in range(N)], [1990, 1991, 1992])
POPULATIONS = (COUNTRIES * 1000).astype(int)  # whole numbers, of which none is a year
NUMBERED = {
    "years beside the names of rows": lines_of(COUNTRIES, index_label="Country Name"),
    "years beside nothing": lines_of(COUNTRIES),
    "years above whole numbers": lines_of(POPULATIONS, index_label="Country Name"),
    "years with gaps": lines_of(COUNTRIES.set_axis([1990, 2000, 2015], axis=1), index_label="Country"),
    "years that come last first": lines_of(COUNTRIES.set_axis([2021, 2020, 2019], axis=1), index_label="Country"),
    "two years": lines_of(COUNTRIES[[1990, 1991]], index_label="Country"),
    "years with semicolons": lines_of(COUNTRIES, sep=";", decimal=",", index_label="Country"),
    "ages in steps of ten": lines_of(pd.DataFrame(groups(p=5), columns=range(10, 60, 10))),
    "wavelengths": lines_of(pd.DataFrame(groups(p=7), columns=np.arange(400, 403.5, 0.5)), index=False),
    "months": lines_of(
        pd.DataFrame(groups(p=12).astype(int), columns=range(1, 13), index=COUNTRIES.index), index_label="shop"
    ),
    "pandas with its index": lines_of(pd.DataFrame(groups())),
    "pandas with its index and two columns": lines_of(pd.DataFrame(groups(p=2))),
    "pandas with its index and one column": lines_of(pd.DataFrame(groups(p=1))),
    "pandas without its index": lines_of(pd.DataFrame(groups()), index=False),
    "pandas with text in one column": lines_of(pd.DataFrame(groups()).assign(**{"3": "a"}), index=False),
    "many pixels": lines_of(pd.DataFrame(load_digits().data.astype(int)), index=False),
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
    rows = [["Country", 1990, 1991], *([f"c{i}", *x] for i, x in enumerate(groups(p=2).tolist()))]
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
    "decimals in equal steps": np.vstack([[5.1, 5.3, 5.5], groups()]),
    "decimals beside whole numbers": np.array([["5.1", "2", "3"]] + [["4.9", "3.25", f"{i}.5"] for i in range(40)]),
}


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


# ---- text beside numbers in one column -------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [[786, 950, 512], [2410, 786, 1950], [1250.5, 786.25, 3000]])
@pytest.mark.parametrize("form", ["t.xlsx", "t.json"])
def test_points_in_text_that_may_part_thousands_are_asked_about_beside_numbers(run, tmp_path, numbers, form):
    rows = [(f"s{i}", numbers[i % 3] + i if i % 4 else "1.487", 5.5 + i % 7) for i in range(40)]
    if form == "t.xlsx":
        workbook(tmp_path / form, [("shop", "sold", "size"), *rows])
    else:
        (tmp_path / form).write_text(
            json.dumps([dict(zip(("shop", "sold", "size"), row, strict=True)) for row in rows])
        )
    asked = "'1.487' may be 1.487 or 1487; add --decimal . or --thousands . to choose"
    assert asked in said(run("fit", tmp_path / form, "-k", 2, code=1))
    for options, value in ((["decimal"], 1.487), (["thousands"], 1487.0)):
        assert value in read_column(tmp_path / form, "sold", **dict.fromkeys(options, "."))
    assert "may be 1.487 or 1487" not in said(run("fit", tmp_path / form, "-k", 2, "--thousands", "."))


def test_points_in_text_that_may_part_thousands_are_asked_about_behind_many_rows(run, tmp_path):
    rows = [{"sold": 500 + i % 400 if i < 3000 else "1.487", "size": i % 7 + 0.5} for i in range(3010)]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    assert "'1.487' may be 1.487 or 1487" in said(run("fit", tmp_path / "t.json", "-k", 2, code=1))


def read_column(path, name, **options):
    return read_table(path, DataFile(path, **options).reading).column(name).values


def test_points_in_text_are_decimals_beside_numbers_of_their_size(tmp_path):
    rows = [(1.25 + i / 10 if i % 4 else "1.487",) for i in range(20)]
    values = read_column(workbook(tmp_path / "t.xlsx", [("length",), *rows]), "length")
    assert values[0] == 1.487


def test_numbers_beside_text_with_decimal_commas_keep_their_value(tmp_path):
    rows = [(1.25, "a"), ("2,5", "b"), (3, "c"), ("4,75", "d"), (1e-7, "e")]
    values = read_column(workbook(tmp_path / "t.xlsx", [("length", "name"), *rows]), "length")
    assert values.tolist() == [1.25, 2.5, 3, 4.75, 1e-7]


# ---- units and roles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["R$ {}", "{} zł", "{} kr", "kr. {}", "{} Kč", "₽{}", "US$ {}", "{} PLN", "A${}"])
def test_amounts_in_other_currencies_are_numbers(table, form):
    values = groups(p=1).ravel()
    found = read_table(table("shop;amount", *(f"s{i};{form.format(x)}" for i, x in enumerate(values.tolist()))))
    assert found.column("amount").values.tolist() == values.tolist()


@pytest.mark.parametrize("word", ["lei", "crown", "kr", "Ft"])
def test_words_with_a_currency_in_them_stay_text(table, word):
    found = read_table(table("name,x", *(f"{word}{i} {word}s,{i}.5" for i in range(12))))
    assert found.kinds["name"] == "text"


@pytest.mark.parametrize("name", ["OBJECTID", "uid", "sku", "SKU", "CUSTOMERID", "orderid", "station_uid", "ean"])
def test_identifiers_written_as_one_word_are_not_clustered_by(run, table, name):
    numbers = np.random.default_rng(0).integers(1000, 9999, N)
    file = table(f"{name},x", *(f"{a},{b}" for a, b in zip(numbers, groups()[:, 0], strict=True)))
    assert "identifier" in run("fit", file, "--dry-run", "--json").document["columns"][0]["role"]


@pytest.mark.parametrize(
    ("name", "used"),
    [("body_mass_index", True), ("Price Index", True), ("index", False), ("row_index", False), ("idx", False)],
)
def test_an_index_that_measures_something_is_clustered_by(run, table, name, used):
    numbers = np.random.default_rng(0).choice(9000, N, replace=False)
    file = table(f"{name},x", *(f"{a},{b}" for a, b in zip(numbers, groups()[:, 0], strict=True)))
    role = run("fit", file, "--dry-run", "--json").document["columns"][0]["role"]
    assert (role == "used for clustering") is used


def test_round_amounts_of_one_length_are_no_keys(run, table):
    amounts = np.random.default_rng(0).integers(10**8, 10**9, N) * 100
    file = table("gdp,x", *(f"{a},{b}" for a, b in zip(amounts, groups()[:, 0], strict=True)))
    assert run("fit", file, "--dry-run", "--json").document["columns"][0]["role"] == "used for clustering"


@pytest.mark.parametrize("form", ["{} kg", "{}cm", "{} °C", "{} min", "{} km/h"])
def test_measurements_with_a_unit_are_numbers(table, form):
    values = groups(p=1).ravel()
    found = read_table(table("name,x", *(f"s{i},{form.format(x)}" for i, x in enumerate(values.tolist()))))
    assert found.column("x").values.tolist() == values.tolist()


def test_two_units_in_one_column_are_complained_of(run, table):
    cells = [f"{x} kg" if i % 9 else f"{1000 * x:.0f} g" for i, x in enumerate(groups(p=1).ravel())]
    file = table("name,x", *(f"s{i},{cell}" for i, cell in enumerate(cells)))
    assert "cells of column 'x' are numbers, but 7 are not: line 2:" in said(run("fit", file, "-k", 2, code=1))


def test_predict_mentions_other_units_and_dates_in_the_place_of_numbers(run, table):
    kilograms, days = [f"{x} kg" for x in groups(p=1).ravel()], [f"2021-01-{1 + i % 28:02}" for i in range(N)]
    model, pounds = "m.json", [cell.replace("kg", "lb") for cell in kilograms]
    run("fit", table("w,x", *(f"{w},{i % 7}.5" for i, w in enumerate(kilograms))), "-k", 2, "--model", model)
    for other, words in ((pounds, "w (lb here, kg there)"), (days, "w (date here, kg there)")):
        new = table("w,x", *(f"{w},{i % 7}.5" for i, w in enumerate(other)), name="new.csv")
        assert f"convert if need be: {words}" in said(run("predict", model, new))


def test_a_second_row_of_names_or_units_is_named_with_the_way_out(run, table):
    file = table("weight,height", "kg,cm", *(f"{a},{b}" for a, b in groups(p=2)))
    assert "line 2: 'kg'; delete that row if it holds units or second names, or" in said(run("fit", file, code=1))
