"""Which sign stands before decimals: in numerals, folders and other formats, and when numbers are written."""

import json
import re

import numpy as np
import pytest
from support.command_tables import (
    amounts,
    are_parted,
    column,
    german,
    groups,
    lines,
    positive_groups,
    said,
    workbook,
    write_columns,
)

from tkmeans import DataFile, TKMeans
from tkmeans.tables import read_table

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- numerals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f", "'"])
def test_commas_are_decimal_where_blanks_stand_between_groups_of_digits(run, table, blank):
    sold = np.random.default_rng(1).integers(10_000, 40_000, 60)
    prices = 1.111 + np.arange(60) % 7 / 500 + np.arange(60) % 2 / 2
    pairs = [(f"{n:,}".replace(",", blank), f"{x:.3f}".replace(".", ",")) for n, x in zip(sold, prices, strict=True)]
    file = table("station;sold;price", *(f"s{i};{n};{x}" for i, (n, x) in enumerate(pairs)))
    found = run("fit", file, "-k", 2, "--columns", "price", "--json").document
    centres = sorted(each["center"]["price"] for each in found["clusters"])
    np.testing.assert_allclose(centres, [prices[::2].mean(), prices[1::2].mean()], atol=0.002)


@pytest.mark.parametrize(
    "row",
    [
        's{},12 345,"1,{:03}"',  # between commas, 1,234 is mostly English
        "s{};12 345;1,{:03};1.234",
        "s{};030 12 34 56;1,{:03}",  # blanks, but not between groups of three
        "s{};25.07.2021;1,{:03}",
    ],
)
def test_a_comma_before_three_digits_is_asked_about_whatever_stands_beside_it(run, table, row):
    message = run("fit", table(*(row.format(i, 400 + 7 * i) for i in range(60))), "-k", 2, code=1).output
    assert "'1,407' may be 1.407 or 1407" in message


def test_a_comma_before_digits_with_an_exponent_is_decimal(run, table):
    X = positive_groups(60, digits=3)
    file = table("a;b", *(";".join(f"{x:.3e}".replace(".", ",") for x in row) for row in X))
    found = run("fit", file, "-k", 2, "--json").document
    centres = sorted(each["center"]["a"] for each in found["clusters"])
    np.testing.assert_allclose(centres, [X[::2, 0].mean(), X[1::2, 0].mean()], atol=0.5)


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("pair", ["640, 480", "1024, 768", "1, 2", "1,5 2,5"])
def test_pairs_of_numbers_are_text(run, table, delimiter, pair):
    rows = (delimiter.join([pair, f"{a:.0f}", f"{b:.0f}"]) for a, b in positive_groups(60, digits=3))
    found = run("fit", table(delimiter.join(["pair", "a", "b"]), *rows), "-k", 2, "--json").document
    assert found["columns"] == ["a", "b"]
    assert are_parted(found["labels"])


@pytest.mark.parametrize("pair", ["640, 480", "1024, 768", "1, 2"])
def test_pairs_of_numbers_do_not_make_commas_decimal(run, table, tmp_path, pair):
    rows = (f'"{pair}",{a:.0f},{b:.0f}' for a, b in positive_groups(60, digits=3))
    run("fit", table("pair,a,b", *rows), "-k", 2, "--out", tmp_path / "out.csv")
    assert re.fullmatch(
        r'"[0-9, ]+",[0-9]+,[0-9]+,[01],[0-9.]+,[0-9.]+', (tmp_path / "out.csv").read_text().split("\n")[1]
    )


def test_a_decimal_point_far_below_pairs_of_numbers_is_read(run, table):
    rows = [f"{i % 9}, {i % 7};{a:.0f};{b:.0f}" for i, (a, b) in enumerate(positive_groups(700, digits=3))]
    found = run("fit", table("pair;a;b", *rows, "1, 2;30.5;30"), "-k", 2, "--json").document
    assert found["columns"] == ["a", "b"]
    assert are_parted(found["labels"], 701)


def test_apostrophes_between_groups_of_digits_are_not_called_blanks(run, table):
    file = table("a,b", *(f"{10 + i}'345.60,{i % 7}.5" for i in range(20)))
    assert "with digits in groups of three. " in said(run("fit", file, "--dry-run"))


# ---- folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["1", "3"])
def test_the_decimal_sign_of_one_file_of_a_folder_holds_for_files_that_leave_it_open(run, table, tmp_path, first):
    prices = np.random.default_rng(0).integers(1000, 2000, 60) + np.arange(60) % 2 * 5000
    weights = np.arange(60) % 2 * 5 + 1.25
    rows = [f"{german(p)};{german(w, 2)}" for p, w in zip(prices, weights, strict=True)]
    file = table("price;weight", *rows, name=f"f/{first}.csv")
    table("price;weight", *(f"{german(p)};{w:.0f}" for p, w in zip(prices, weights, strict=True)), name="f/2.csv")
    found = run("fit", file.parent, "-k", 2, "--out", tmp_path / "out.csv", "--json").document
    assert are_parted(found["labels"], 120)
    written = [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert [*map(float, written)] == [*prices, *prices]


def test_a_file_between_commas_keeps_its_points_beside_files_with_decimal_commas(run, table, tmp_path):
    X = positive_groups(60, digits=3)
    file = table("a,b", *(f"{a:.3f},{b:.3f}" for a, b in X), name="f/1.csv")
    table("a;b", *(f"{a:.2f};{b:.2f}".replace(".", ",") for a, b in X), name="f/2.csv")
    run("fit", file.parent, "-k", 2, "--out", tmp_path / "out.csv")
    written = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    np.testing.assert_allclose(written, np.vstack([X, X]), atol=0.006)


def test_a_folder_of_several_decimal_signs_is_written_with_one(run, table, tmp_path):
    X, out = np.round(groups(), 3), tmp_path / "o.csv"
    file = table("a,b,s", *(f"{row},u" for row in lines(X[:30])), name="f/1.csv")
    rows = (f"{b:.3f};{a:.3f};1,5 kg".replace(".", ",") for a, b in X[30:])
    table("b;a;s", *rows, name="f/2.csv")
    run("fit", file.parent, "-k", 2, "--out", out)
    assert [*map(float, column(out, "a"))] == X[:, 0].tolist()
    assert column(out, "a")[:30] == [f"{x:.3f}" for x in X[:30, 0]]
    assert column(out, "s") == ["u"] * 30 + ["1,5 kg"] * 30


# ---- text beside numbers in one column -----------------------------------------------------------


def read_column(path, name, **options):
    return read_table(path, DataFile(path, **options).reading).column(name).values


@pytest.mark.parametrize("suffix", ["json", "xlsx"])
@pytest.mark.parametrize("digits", [2, 3])
def test_numbers_of_typed_cells_do_not_depend_on_how_the_text_beside_them_is_written(run, tmp_path, suffix, digits):
    X = np.round(groups(), digits)
    columns = {"a": [*X[:, 0].tolist()], "b": [f"{x:.1f}".replace(".", ",") for x in X[:, 1]]}
    columns["a"][7] = "NA"
    file, out = write_columns(tmp_path / f"t.{suffix}", columns), tmp_path / "o.csv"
    found = run("fit", file, "-k", 2, "--scale", "none", "--json", "--out", out).document
    centers = sorted(cluster["center"]["a"] for cluster in found["clusters"])
    assert centers == pytest.approx([0, 20], abs=1)
    assert column(out, "a")[8:10] == [str(x) for x in X[8:10, 0]]


def test_points_in_text_are_decimals_beside_numbers_of_their_size(tmp_path):
    rows = [(1.25 + i / 10 if i % 4 else "1.487",) for i in range(20)]
    values = read_column(workbook(tmp_path / "t.xlsx", [("length",), *rows]), "length")
    assert values[0] == 1.487


def test_numbers_beside_text_with_decimal_commas_keep_their_value(tmp_path):
    rows = [(1.25, "a"), ("2,5", "b"), (3, "c"), ("4,75", "d"), (1e-7, "e")]
    values = read_column(workbook(tmp_path / "t.xlsx", [("length", "name"), *rows]), "length")
    assert values.tolist() == [1.25, 2.5, 3, 4.75, 1e-7]


# ---- numbers that are written again --------------------------------------------------------------


@pytest.mark.parametrize("unit", [" €", " kg", ""])
@pytest.mark.parametrize("form", ["csv", "xlsx", "json", "folder"])
def test_cells_with_a_unit_are_written_by_the_same_signs_as_other_numbers(run, table, tmp_path, unit, form):
    rows = [(f"{20 + i % 7},{i % 10}5", f"{german(x)}{unit}") for i, x in enumerate(amounts())]
    if form == "xlsx":
        file = workbook(tmp_path / "t.xlsx", [("x", "preis"), *rows])
    elif form == "json":
        file = tmp_path / "t.json"
        file.write_text(json.dumps([{"x": x, "preis": preis} for x, preis in rows]))
    else:
        file = table("x;preis", *(f"{x};{preis}" for x, preis in rows), name="f/1.csv")
    if form == "folder":
        points = (f'{20 + i % 7}.{i % 10}5,"{x:,}{unit}"' for i, x in enumerate(amounts()))
        table("x,preis", *points, name="f/2.csv")
        file = file.parent
    run("fit", file, "-k", 2, "--out", "o.tsv")
    first, again = read_table(file), read_table("o.tsv")
    for name in ("x", "preis"):
        assert again.column(name).values.tolist() == first.column(name).values.tolist()
    assert again.column("preis").values[: len(amounts())].tolist() == amounts()
    assert again.notation("preis") == f"1.5{unit}"


def test_per_cents_and_missing_cells_are_written_by_the_same_signs_too(run, table):
    file = table("x;share;note", *(f"{i},5;{'NA' if i == 3 else f'{i % 9},25 %'};1,5 l" for i in range(20)))
    run("fit", file, "-k", 2, "--out", "o.tsv")
    assert read_table("o.tsv").column("share").values[[1, 2]].tolist() == [1.25, 2.25]
    assert np.isnan(read_table("o.tsv").column("share").values[3])


# ---- options -------------------------------------------------------------------------------------


def test_one_sign_cannot_stand_before_decimals_and_between_groups(table):
    file = table("a,b", *lines(groups(60)))
    with pytest.raises(ValueError, match=r"decimal='\.' and thousands='\.' must differ"):
        TKMeans(2).fit(DataFile(file, decimal=".", thousands="."))


def test_two_equal_signs_are_named_as_they_were_typed(run, table):
    found = said(run("fit", table("a,b", "1,2"), "--thousands", ".", "--decimal", ".", code=2))
    assert "--decimal . and --thousands . must differ" in found


@pytest.mark.parametrize(
    ("first", "then", "sign"), [("786", "68,94", ","), ("1.5", "68,94", ","), ("1,5", "68.94", ".")]
)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_decimals_with_the_other_sign_are_answered_with_the_option_for_it(run, table, first, then, sign, command):
    run("fit", table("a;b", *(f"{a};{b}" for a, b in positive_groups(60))), "-k", 2, "--model", "m.json")
    file = table("a;b", *[f"{first};7"] * 600, *[f"{then};8"] * 5, name="late.csv")
    words = ("fit", file, "-k", 2, "--columns", "a") if command == "fit" else ("predict", "m.json", file)
    assert f"add --decimal {sign} if" in " ".join(run(*words, code=1).output.split())
