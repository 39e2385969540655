"""What an eighth attack broke in the command and in files, each with a test that fails if it comes back."""

import json

import numpy as np
import openpyxl
import pyarrow.feather
import pyarrow.parquet
import pytest

from tkmeans import DataFile, TKMeans
from tkmeans.tables import Reading, choose, read_table

N = 60
THOUSANDS = [f"{x // 1000}.{x % 1000:03}" for x in (1113, 6126, 12610, 101250, 9075, 3375)]
WORDS = ["NA", "None", "-", "--", "?", "null", "n/a", ".", "NaN"]  # which are missing values among numbers


def groups(n=N, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, 2)).round(2) + 30 + np.arange(n)[:, None] % 2 * apart


def said(done):
    """What the command printed, in one line."""
    return " ".join(done.output.split())


def columns_of(run, file, *options):
    """What each column is used for."""
    document = run("fit", file, "--dry-run", "--json", *options).document
    return {each["column"]: each["role"] for each in document["columns"]}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- points between groups of digits ---------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["", " €"])
@pytest.mark.parametrize("gap", ["", "0", "NA"])
@pytest.mark.parametrize("n", [1, 400])
def test_points_that_may_all_be_between_thousands_are_mentioned_where_semicolons_part_cells(table, run, unit, gap, n):
    cells = [x + unit for x in THOUSANDS] * n + [gap]
    file = table("ort;alter;einwohner", *(f"o{i};{20 + i * i % 31};{x}" for i, x in enumerate(cells)))
    notes = run("fit", file, "--dry-run", "--json").document["notes"]
    assert [note for note in notes if "1.113" in note] == [
        "'1.113' in einwohner is read as 1.113; add --thousands . if it is 1113"
    ]
    notes = run("fit", file, "--dry-run", "--json", "--thousands", ".").document["notes"]
    assert not [note for note in notes if "1.113" in note]


def test_points_that_may_all_be_between_thousands_are_a_warning_of_the_library(table):
    file = table("alter;einwohner", *(f"{20 + i * i % 31};{x}" for i, x in enumerate(THOUSANDS * 4)))
    with pytest.warns(UserWarning, match=r"'1\.113' in einwohner is read as 1\.113; add thousands='\.' if it is 1113"):
        TKMeans(1).fit(DataFile(file))
    assert read_table(file, Reading(thousands=".")).column("einwohner").values[0] == 1113


@pytest.mark.parametrize(
    ("sign", "cells", "options"),
    [
        (",", THOUSANDS, ()),  # where points before decimals are usual
        (";", [*THOUSANDS, "0.375"], ()),
        (";", [*THOUSANDS * 700, "12.5"], ()),
        (";", [*THOUSANDS, "12345"], ()),
        (";", THOUSANDS, ("--decimal", ".")),
    ],
)
def test_points_before_decimals_are_not_mentioned(run, table, sign, cells, options):
    file = table(f"a{sign}b", *(f"{x}{sign}{20 + i * i % 31}" for i, x in enumerate(cells)))
    notes = run("fit", file, "--dry-run", "--json", *options).document["notes"]
    assert not [note for note in notes if "is read as" in note]


def test_months_do_not_show_which_sign_stands_before_decimals(run, table):
    rows = (f"{1 + i % 12:02}.2024;{x}" for i, x in enumerate(THOUSANDS * 4))
    file = table("monat;umsatz", *rows)
    assert "'1.113' in umsatz is read as 1.113" in said(run("fit", file, "--dry-run"))
    file = table("monat;umsatz", *(f"{1 + i % 12:02}.2024;{i},{i % 9}" for i in range(24)), name="komma.csv")
    assert read_table(file).column("umsatz").values[1] == 1.1


# ---- words for missing values in columns of text ---------------------------------------------------------------


def countries(n=N):
    """Cells of text, some of which are words for a missing value elsewhere."""
    return [WORDS[i // 2 % len(WORDS)] if i % 2 else f"c{i}" for i in range(n)]


@pytest.mark.parametrize("form", ["parquet", "feather", "npy", "tsv", "csv"])
@pytest.mark.parametrize("folder", [False, True])
def test_words_for_missing_values_stay_in_columns_of_text(run, table, form, folder):
    rows = [f"{word},{a},{b}" for word, (a, b) in zip(countries(), groups(), strict=True)]
    file = table("iso,a,b", *rows, name="f/1.csv")
    run("fit", file.parent if folder else file, "-k", 2, "--out", f"o.{form}")
    if form in ("csv", "tsv"):
        with open(f"o.{form}") as lines:
            found = [line.split("\t" if form == "tsv" else ",")[0] for line in lines][1:]
    elif form == "npy":
        found = np.load("o.npy")["iso"].tolist()
    else:
        reader = pyarrow.parquet.read_table if form == "parquet" else pyarrow.feather.read_table
        found = reader(f"o.{form}").column("iso").to_pylist()
    assert found == countries()


def test_what_a_person_calls_missing_and_gaps_among_numbers_are_missing_in_parquet(run, table):
    rows = (f"{'x' if i % 2 else 'unknown'},{'NA' if i == 3 else a},{b}" for i, (a, b) in enumerate(groups()))
    run("fit", table("who,a,b", *rows), "-k", 2, "--missing", "Unknown", "--out", "o.parquet")
    found = pyarrow.parquet.read_table("o.parquet")
    assert found.column("who").to_pylist() == [None, "x"] * (N // 2)
    assert found.column("a")[3].as_py() is None


# ---- identifiers by their names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Postleitzahl", "a postal code, by its name"),
        ("PLZ_Kunde", "a postal code, by its name"),
        ("PLZ Ort", "a postal code, by its name"),
        ("Code postal", "a postal code, by its name"),
        ("Código_Postal", "a postal code, by its name"),
        ("codigopostal", "a postal code, by its name"),
        ("Kundennummer", "an identifier, by its name"),
        ("ARTIKELNUMMER", "an identifier, by its name"),
        ("klantnummer", "an identifier, by its name"),
        ("Auftragsnr", "an identifier, by its name and its distinct values"),
        ("Gemeindeschlüssel", "an identifier, by its name and its distinct values"),
        ("numéro", "an identifier, by its name and its distinct values"),
        ("código_cliente", "an identifier, by its name and its distinct values"),
        ("id_cliente", "an identifier, by its name and its distinct values"),
        ("codice", "an identifier, by its name and its distinct values"),
    ],
)
def test_identifiers_have_names_in_other_languages_too(table, name, reason):
    codes = 10_000 + np.random.default_rng(1).permutation(9 * N)[:N]
    file = table(f"{name},a,b", *(f"{code},{a},{b}" for code, (a, b) in zip(codes, groups(), strict=True)))
    roles = {role.name: role.reason for role in choose(read_table(file)).roles}
    assert roles == {name: reason, "a": "", "b": ""}


@pytest.mark.parametrize("name", ["PLZ_Einwohner", "psnr", "Kennzahl", "numero_clienti", "Anzahl", "codes", "video"])
def test_measurements_with_similar_names_are_clustered_by(table, name):
    counts = np.random.default_rng(1).permutation(9 * N)[:N] * 3
    file = table(f"{name},a,b", *(f"{x},{a},{b}" for x, (a, b) in zip(counts, groups(), strict=True)))
    assert choose(read_table(file)).names == [name, "a", "b"]


@pytest.mark.parametrize("form", ["{0:02}.{1}", "0{2}.{1}", "0{2}.1{2}"])
def test_numbers_with_a_zero_before_another_digit_are_codes_with_points_too(run, table, form):
    cells = [form.format(1 + i % 12, 2020 + i % 5, 1 + i % 9) for i in range(N)]
    file = table("monat,a,b", *(f"{x},{a},{b}" for x, (a, b) in zip(cells, groups(), strict=True)))
    assert columns_of(run, file)["monat"] == "not used: a code with leading zeros"
    assert columns_of(run, file, "--keep", "monat")["monat"] == "used for clustering"
    run("fit", file, "-k", 2, "--out", "o.parquet")
    assert pyarrow.parquet.read_table("o.parquet").column("monat").to_pylist() == cells


@pytest.mark.parametrize("cells", [["0.25", "1.25", "7.50"], ["00.25", "01.25", "12.5"], ["10.25", "12.75", "11.50"]])
def test_decimals_are_no_codes(run, table, cells):
    file = table("x,a,b", *(f"{cells[i % 3]},{a},{b}" for i, (a, b) in enumerate(groups())))
    assert columns_of(run, file)["x"] == "used for clustering"


# ---- tables inside of files --------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [(), ("--table", "Notes")])
def test_the_other_sheets_are_named_where_the_first_has_no_numbers(run, given):
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    for row in (["who", "what"], ["Anna", "measured"], ["Ben", "typed"]):
        book.active.append(row)
    data = book.create_sheet("Data")
    for row in [["height", "weight"], *groups().tolist()]:
        data.append(row)
    book.save("two.xlsx")
    found = said(run("fit", "two.xlsx", "-k", 2, *given, code=1))
    assert "sheet 'Notes' (of 'Notes', 'Data'; add --table ... for another) has no column of numbers" in found


@pytest.mark.parametrize("beside", [{}, {"total": N, "next": None, "of": "2024"}])
def test_rows_inside_of_an_object_of_json_are_the_table(run, table, beside):
    rows = [{"a": a, "b": b} for a, b in groups().tolist()]
    file = table(json.dumps({"data": rows} | beside), name="t.json")
    assert run("fit", file, "-k", 2, "--json").document["rows"] == N


def test_an_object_of_json_with_two_lists_is_read_as_columns(table):
    file = table(json.dumps({"a": [1, 2], "what": [{"x": 1}, {"x": 2}]}), name="t.json")
    assert read_table(file).names == ["a", "what"]


# ---- advice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "title", [["Sales of 2024"], ["Sales of 2024", "Made by Anna"], ["Sales, 2024"], ["Sales", ""]]
)
def test_lines_above_the_names_of_columns_are_to_be_deleted(run, table, title):
    rows = [f"n{i},{a},{b}" for i, (a, b) in enumerate(groups())]
    found = said(run("fit", table(*title, "name,a,b", *rows), "-k", 2, code=1))
    assert ", delete lines such as a title above these names, put quotation marks" in found
    for wrong in ("n", "n,1,2,3"):
        assert "delete lines" not in said(run("fit", table("name,a,b", *rows, wrong), "-k", 2, code=1))


def test_values_that_the_model_does_not_know_are_named(run, table):
    rows = [f"{a},{b},{'SML'[i % 3]},{'xy'[i % 2]}" for i, (a, b) in enumerate(groups())]
    run("fit", table("a,b,size,of", *rows), "-k", 2, "--encode", "size,of", "--model", "m.json")
    assert "does not know" not in said(run("predict", "m.json", "table.csv"))
    file = table("a,b,size,of", *rows, "30,30,XL,x", "30,30,XXL,y", "30,30,,x", name="new.csv")
    assert "The model does not know size=XL, size=XXL." in said(run("predict", "m.json", file))


@pytest.mark.parametrize(
    ("fitted", "given", "note"),
    [
        ("{} EUR", "{} €", ""),
        ("${}", "{} USD", ""),
        ("{} EUR", "", ""),  # no value is none to convert
        ("{} %", "{}", "share (no unit here, % there)"),
        ("{}", "£{}", "share (GBP here, no unit there)"),
    ],
)
def test_units_are_named_where_they_are_not_those_of_the_fit(run, table, fitted, given, note):
    rows = [[f"{form.format(a)},{b}" for a, b in groups()] for form in (fitted, given)]
    run("fit", table("share,area", *rows[0]), "-k", 2, "--model", "m.json")
    found = said(run("predict", "m.json", table("share,area", *rows[1], name="new.csv")))
    assert "1.5" not in found
    assert note in found
    assert ("units" in found) == bool(note)


@pytest.mark.parametrize("given", [(), ("--mark-outliers",)])
def test_the_suggested_command_marks_outliers_if_this_one_does(run, table, given):
    found = run("fit", table("a,b", *(f"{a},{b}" for a, b in groups())), "-k", 2, *given).output
    (line,) = [line for line in found.splitlines() if "tkmeans fit" in line]
    assert ("--mark-outliers" in line) == bool(given)


@pytest.mark.parametrize(
    ("prefix", "encoding", "reason"),
    [("a\nb", "utf-8", "cannot be part of a name"), ("Ω", "latin-1", "cannot be written in cp1252")],
)
def test_a_prefix_is_refused_with_the_right_reason(run, table, prefix, encoding, reason):
    file = table("ä,b", *(f"{a},{b}" for a, b in groups()), encoding=encoding)
    assert reason in said(run("fit", file, "-k", 2, "--prefix", prefix, "--out", "o.csv", code=1))


@pytest.mark.parametrize("n", [2, 3])
def test_more_clusters_than_rows_are_refused_in_plain_words(run, table, n):
    file = table("a,b", *(f"{a},{b}" for a, b in groups(n)))
    found = said(run("fit", file, "-k", 5, code=1))
    assert f"table.csv: too few rows ({n}) for 5 clusters; choose at most {n} clusters" in found
    assert "rows each" not in found


@pytest.mark.parametrize("sign", [",", ";", "|", "\t"])
@pytest.mark.parametrize("name", ["o.tsv", "o.TAB"])
def test_tabs_part_the_cells_of_files_called_so(run, table, sign, name):
    rows = [sign.join([f'"n{sign}{i}"', str(a), str(b)]) for i, (a, b) in enumerate(groups().tolist())]
    run("fit", table(sign.join(["name", "a", "b"]), *rows), "-k", 2, "--out", name)
    found = read_table(name, Reading(delimiter="\t"))
    assert found.names == ["name", "a", "b", "cluster", "probability", "outlier_pvalue"]
    np.testing.assert_array_equal(np.column_stack([found.column("a").values, found.column("b").values]), groups())
    assert found.cells("name")[7] == f"n{sign}7"
