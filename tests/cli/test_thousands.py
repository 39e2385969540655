"""Points before three digits, which may part thousands: read by what else is there, mentioned, or asked about."""

import json

import numpy as np
import pytest
from support.command_tables import amounts, are_parted, german, positive_groups, said, workbook

from tkmeans import DataFile, TKMeans
from tkmeans.tables import Reading, TableError, read_table
from tkmeans.tables.table import Column, complaint

pytestmark = pytest.mark.usefixtures("own_folder")

CUT = [f"{x}" for x in (786, 559, 351, 912, 640)]  # as they stand in a file that groups digits by points
WHOLE = [f"{x // 1000}.{x % 1000:03}" for x in (2696, 12610, 1250, 9075, 3375)]


# ---- what is asked about -------------------------------------------------------------------------


def read_column(path, name, **options):
    return read_table(path, DataFile(path, **options).reading).column(name).values


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
    file = table("a;b", *(f"{x};{i % 7}.5" for i, x in enumerate([*CUT, *WHOLE])))
    assert run("fit", file, "-k", 1, "--json").document["columns"] == ["a", "b"]


def test_numbers_in_a_column_of_text_are_not_asked_about(run, table):
    rows = (
        f"{text};{a:.0f};{b:.0f}"
        for text, (a, b) in zip(["x", "y", "z", "786", "2.696"] * 12, positive_groups(60), strict=True)
    )
    assert run("fit", table("code;a;b", *rows), "-k", 2, "--json").document["columns"] == ["a", "b"]


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


# ---- what is mentioned ---------------------------------------------------------------------------

THOUSANDS = [f"{x // 1000}.{x % 1000:03}" for x in (1113, 6126, 12610, 101250, 9075, 3375)]
FOUR_DIGITS = ["1.142", "4.078", "2.501", "6.025"]


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


@pytest.mark.parametrize("sign", ["\t", "|", " ", ";"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_points_that_may_part_thousands_are_mentioned_in_text_with_other_signs_than_commas(run, table, sign, n):
    file = table(f"a{sign}b", *(f"{x}{sign}{20 + i * i}" for i, x in enumerate(FOUR_DIGITS[:n])), name="t.txt")
    note = "'1.142' in a is read as 1.142; add --thousands . if it is 1142"
    assert note in run("fit", file, "--dry-run", "--json").document["notes"]
    for option in ("--thousands", "--decimal"):
        notes = run("fit", file, "--dry-run", "--json", option, ".").document["notes"]
        assert not [note for note in notes if "1.142" in note]


@pytest.mark.parametrize("form", ["t.xlsx", "t.json"])
def test_points_that_may_part_thousands_are_mentioned_in_workbooks_and_json(run, tmp_path, form):
    rows = [(x, 20.5 + i * i) for i, x in enumerate(FOUR_DIGITS)]
    if form == "t.xlsx":
        workbook(tmp_path / form, [("a", "b"), *rows])
    else:
        (tmp_path / form).write_text(json.dumps([{"a": a, "b": b} for a, b in rows]))
    note = "'1.142' in a is read as 1.142; add --thousands . if it is 1142"
    assert note in run("fit", form, "--dry-run", "--json").document["notes"]
    assert note not in run("fit", form, "--dry-run", "--json", "--thousands", ".").document["notes"]


@pytest.mark.parametrize("cells", [["1.142", "0.375"], ["1.142", "12.5"], ["1.142", "4078"]])
def test_points_before_decimals_in_json_are_not_mentioned(run, tmp_path, cells):
    (tmp_path / "t.json").write_text(json.dumps([{"a": x, "b": i} for i, x in enumerate(cells)]))
    assert not [x for x in run("fit", "t.json", "--dry-run", "--json").document["notes"] if "is read as" in x]


def test_predict_mentions_points_of_a_single_row(run, table):
    run("fit", table("h;w", *(f"{150 + i};{x}" for i, x in enumerate(amounts()))), "-k", 2, "--model", "m.json")
    table("h;w", "190;3.240", name="one.csv")
    assert "'3.240' in w is read as 3.240; add --thousands . if it is 3240" in said(run("predict", "m.json", "one.csv"))


# ---- folders and models --------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        (["9.495", "12.610", "-1.250", "7.001"], "add thousands='.' if that separates thousands, or"),
        (["8,002", "1,250", "3,375", "-4,000"], "add thousands=',' if that separates thousands, or"),
        (["9.49", "12.6", "1.250", "7.001"], "add decimal='.' if that is the sign before decimals, or"),
        (["0.495", "12.610", "1.250", "7.001"], "add decimal='.' if that is the sign before decimals, or"),
    ],
)
def test_cells_with_a_sign_that_only_late_rows_have_are_refused_with_the_option_that_reads_them(cells, advice):
    bad = tuple((f"line {i}", cell) for i, cell in enumerate(cells, start=70_000))
    assert advice in complaint("sales.csv", Column("amount", np.ones(5), bad, len(bad)))
