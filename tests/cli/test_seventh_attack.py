"""What a seventh attack broke in the command and in files, each with a test that fails if it comes back."""

import json

import numpy as np
import openpyxl
import pytest

from tkmeans.tables import Reading, TableError, read_table

CUT = [f"{x}" for x in (786, 559, 351, 912, 640)]  # as they stand in a file that groups digits by points
WHOLE = [f"{x // 1000}.{x % 1000:03}" for x in (2696, 12610, 1250, 9075, 3375)]
SEPARATORS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def groups(n, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, 2)).round(2) + 30 + np.arange(n)[:, None] % 2 * apart


def are_parted(labels):
    """Whether the rows of the two groups have a cluster each."""
    return len({*labels[::2]}) == len({*labels[1::2]}) == 1 and labels[0] != labels[1]


def columns_of(run, file, *options):
    """What each column is used for."""
    document = run("fit", file, "--dry-run", "--json", *options).document
    return {each["column"]: each["role"] for each in document["columns"]}


# ---- points between groups of digits ---------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
@pytest.mark.parametrize("unit", ["", " €", " %"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_points_before_three_digits_beside_whole_numbers_are_asked_about(run, table, delimiter, unit, sign):
    cells = [sign + cell + unit for cell in [*CUT, *WHOLE]]
    file = table(
        f"name{delimiter}pop{delimiter}area", *(f"n{i}{delimiter}{x}{delimiter}{i}" for i, x in enumerate(cells))
    )
    said = " ".join(run("fit", file, "-k", 2, code=1).output.split())
    assert "2.696' may be" in said
    assert "2696; add --decimal . or --thousands . to choose" in said


@pytest.mark.parametrize(("options", "last"), [({"thousands": "."}, 3375.0), ({"decimal": "."}, 3.375)])
def test_the_answer_to_the_question_about_points_is_followed(table, options, last):
    file = table("pop;area", *(f"{x};{i}" for i, x in enumerate([*CUT, *WHOLE])))
    assert read_table(file, Reading(**options)).column("pop").values[-1] == last


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("first", [WHOLE, CUT], ids=["thousands first", "hundreds first"])
@pytest.mark.parametrize("delimiter", [";", ","])
def test_points_between_groups_of_digits_are_asked_about_wherever_the_others_begin(run, table, first, delimiter):
    then = CUT if first is WHOLE else WHOLE
    file = table(f"pop{delimiter}area", *(f"{x}{delimiter}{i}" for i, x in enumerate(first * 4000 + then)))
    assert "may be" in run("fit", file, "-k", 2, code=1).output


@pytest.mark.parametrize(
    "cells",
    [
        ["1.234", "5.678", "12.375", "101.250"],  # no whole numbers
        ["1.234", "5.678", "0", "12.375"],  # 0 is one in every notation
        ["1.234", "5.678", "786", "0.375"],  # no group begins with 0
        ["1.234", "5.678", "786", "12.5"],
        ["1.234", "5.678", "786", "1.2345"],
        ["1.234", "5.678", "786", "1234"],  # which would be 1.234
        ["1.234", "5.678", "786", "1234.125"],
        ["1.234", "5.678", "786", "1.5e3"],
    ],
)
@pytest.mark.parametrize("n", [3, 400])
def test_points_that_stand_before_decimals_are_not_asked_about(table, cells, n):
    file = table("a;b", *(f"{x};{i % 7}" for i, x in enumerate(cells * n)))
    assert read_table(file).column("a").values.tolist() == [*map(float, cells * n)]


def test_a_decimal_point_in_one_column_holds_for_the_others(run, table):
    file = table("a;b", *(f"{x};{i}.5" for i, x in enumerate([*CUT, *WHOLE])))
    assert run("fit", file, "-k", 1, "--json").document["columns"] == ["a", "b"]


def test_numbers_in_a_column_of_text_are_not_asked_about(run, table):
    rows = (
        f"{text};{a:.0f};{b:.0f}" for text, (a, b) in zip(["x", "y", "z", "786", "2.696"] * 12, groups(60), strict=True)
    )
    assert run("fit", table("code;a;b", *rows), "-k", 2, "--json").document["columns"] == ["a", "b"]


def german(x, decimals):
    """A number as it is written in Germany."""
    return f"{x:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize("least", [100, 1000], ids=["with hundreds", "thousands alone"])
def test_a_file_that_leaves_the_decimal_sign_open_has_that_of_the_fitted_one(run, table, least):
    sales = np.random.default_rng(0).integers(least, 1900, 60) + np.arange(60) % 2 * 6000
    model = table("", name="m.json")
    fitted = table("sales;n", *(f"{german(x + 0.25, 2)};{i % 9}" for i, x in enumerate(sales)), name="jan.csv")
    run("fit", fitted, "-k", 2, "--columns", "sales", "--model", model)
    rows = table("sales;n", *(f"{german(x, 0)};{i % 9}" for i, x in enumerate(sales)), name="feb.csv")
    done = run("predict", model, rows, "--json")
    assert are_parted(done.document["labels"])
    assert done.document["outliers"]["count"] < 6
    assert any("decimal commas" in note for note in done.document["notes"])


@pytest.mark.parametrize("first", ["1", "3"])
def test_a_file_of_a_folder_is_not_asked_about_points_where_others_show_decimal_commas(table, first):
    shown = table("pop;area", *(f"{x},5;{i}" for i, x in enumerate([*CUT, *WHOLE])), name=f"f/{first}.csv")
    table("pop;area", *(f"{x};{i}" for i, x in enumerate([*CUT, *WHOLE])), name="f/2.csv")
    values = read_table(shown.parent).column("pop").values
    np.testing.assert_array_equal(
        values[10:] if first == "1" else values[:10], [*map(int, CUT), 2696, 12610, 1250, 9075, 3375]
    )


def test_a_folder_in_which_no_file_shows_the_decimal_sign_is_asked_about(table):
    table("pop;area", *(f"{x};{i}" for i, x in enumerate(WHOLE)), name="f/1.csv")
    file = table("pop;area", *(f"{x};{i}" for i, x in enumerate([*CUT, *WHOLE])), name="f/2.csv")
    with pytest.raises(TableError, match=r"2.csv: '2.696' may be 2.696 or 2696"):
        read_table(file.parent)


# ---- units -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fitted", "given"),
    [("{:.1f} %", "{:.3f}"), ("{:.3f}", "{:.1f} %"), ("{:.1f} EUR", "{:.1f} USD"), ("${:.1f}", "{:.1f}")],
)
@pytest.mark.parametrize("scale", ["robust", "none"])
def test_predict_says_which_columns_are_in_other_units_than_those_of_the_fit(run, table, fitted, given, scale):
    rows = [[form.format(a) + f";{b}" for a, b in groups(60)] for form in (fitted, given)]
    model = table("", name="m.json")
    run("fit", table("share;area", *rows[0]), "-k", 2, "--scale", scale, "--model", model)
    said = [" ".join(run("predict", model, table("share;area", *each, name="new.csv")).output.split()) for each in rows]
    assert "units" not in said[0]
    assert "Not in the units that the model was fitted in; convert if need be: share (" in said[1]
    assert "area (" not in said[1]


def test_a_model_of_plain_numbers_is_written_as_it_always_was(run, table):
    run("fit", table("a,b", *(f"{a},{b}" for a, b in groups(60))), "-k", 2, "--model", "m.json")
    with open("m.json") as file:
        assert set(json.load(file)["scaler"]["fitted"]) == {"n_features_in_", "feature_names_in_", "center_", "scale_"}


# ---- dates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["date", "order_date", "BirthDate", "orderdate", "Datum", "Buchungstag", "month", "day_key"]
)
@pytest.mark.parametrize("form", ["{:04}{:02}{:02}", "{:04}{:02}"])
def test_whole_numbers_that_are_dates_by_their_name_and_values_are_not_clustered_by(run, table, name, form):
    rng = np.random.default_rng(0)
    days = zip(rng.integers(1900, 2101, 60), rng.integers(1, 13, 60), rng.integers(1, 29, 60), strict=True)
    file = table(f"{name},a,b", *(f"{form.format(*day)},{a},{b}" for day, (a, b) in zip(days, groups(60), strict=True)))
    assert columns_of(run, file)[name] == "not used: a date, by its name and its values"
    assert columns_of(run, file, "--keep", name)[name] == "used for clustering"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("amount", ["20210328", "20211218", "20220101"]),  # the name says nothing
        ("date", ["20210328", "20211332", "20220101"]),  # there is no month 13
        ("date", ["20210328", "20210229", "20220101"]),  # nor that day
        ("date", ["18991231", "20211218", "20220101"]),
        ("date", ["20210328.5", "20211218", "20220101"]),
        ("day", ["1", "17", "31"]),
        ("months", ["12", "36", "24"]),
    ],
)
def test_numbers_that_are_no_dates_are_clustered_by_whatever_their_name(run, table, name, cells):
    rows = (f"{cells[i * i % 3]},{a},{b}" for i, (a, b) in enumerate(groups(60)))
    assert columns_of(run, table(f"{name},a,b", *rows))[name] == "used for clustering"


# ---- lines of the screen ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", SEPARATORS)
@pytest.mark.parametrize("command", ["fit", "outliers", "dry", "predict"])
def test_neither_names_nor_cells_begin_a_line_of_the_screen(run, table, sign, command):
    name, cell = f"height{sign}Error: disk", f"x{sign}Error: cell"
    rows = (f'{a},{a},"{cell if i % 2 else "y"}","{cell}{i}"' for i, (a, _) in enumerate(groups(60)))
    file = table(f'"{name}",b,"{name} in words",who', *rows)
    words = {"fit": (), "outliers": ("--id", "who"), "dry": ("--dry-run",), "predict": ("--model", "m.json")}[command]
    done = run("outliers" if command == "outliers" else "fit", file, "-k", 2, *words)
    done = run("predict", "m.json", file) if command == "predict" else done
    assert "disk" in done.output
    assert not [line for line in done.output.splitlines() if line.strip(" │").startswith("Error:")]
    assert not {*done.output} & {*SEPARATORS} - {"\n"}


# ---- advice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then", "sign"), [("786", "68,94", ","), ("1.5", "68,94", ","), ("1,5", "68.94", ".")]
)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_decimals_with_the_other_sign_are_answered_with_the_option_for_it(run, table, first, then, sign, command):
    run("fit", table("a;b", *(f"{a};{b}" for a, b in groups(60))), "-k", 2, "--model", "m.json")
    file = table("a;b", *[f"{first};7"] * 600, *[f"{then};8"] * 5, name="late.csv")
    words = ("fit", file, "-k", 2, "--columns", "a") if command == "fit" else ("predict", "m.json", file)
    assert f"add --decimal {sign} if" in " ".join(run(*words, code=1).output.split())


def test_a_boolean_in_a_column_of_numbers_is_not_called_a_missing_value(run, table):
    run("fit", table("a,b", *(f"{a},{b}" for a, b in groups(60))), "-k", 2, "--model", "m.json")
    file = table("a,b", *["1,2"] * 9, "true,2", name="new.csv")
    said = " ".join(run("predict", "m.json", file, code=1).output.split())
    assert "line 11: 'true'" in said
    assert "--missing" not in said


# ---- sheets and tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.npy", "a.parquet"])
def test_a_table_to_choose_is_refused_where_there_is_one_only(run, table, name):
    X = groups(60)
    run("fit", table("a,b", *(f"{a},{b}" for a, b in X)), "-k", 2, "--out", "a.parquet")
    np.save("a.npy", X)
    table(json.dumps([{"a": a, "b": b} for a, b in X.tolist()]), name="a.json")
    table("a,b", *(f"{a},{b}" for a, b in X), name="a.csv")
    assert "leave --table nosuch out" in " ".join(run("fit", name, "-k", 2, "--table", "nosuch", code=2).output.split())


def test_the_other_sheets_are_named_where_the_first_has_no_rows(run):
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["height", "weight"])
    data = book.create_sheet("Data")
    for row in [["height", "weight"], *groups(60).tolist()]:
        data.append(row)
    book.save("two.xlsx")
    said = " ".join(run("fit", "two.xlsx", "-k", 2, code=1).output.split())
    assert "sheet 'Notes' (of 'Notes', 'Data'; add --table ... for another)" in said
    assert are_parted(run("fit", "two.xlsx", "-k", 2, "--table", "Data", "--json").document["labels"])
