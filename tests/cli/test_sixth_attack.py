"""What a sixth attack broke in the command and in files, each with a test that fails if it comes back."""

import json
import os
import re
import time
import zipfile

import numpy as np
import openpyxl
import pyarrow
import pytest
from pyarrow import parquet


def groups(n, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, 2)).round(3) + 30 + np.arange(n)[:, None] % 2 * apart


def are_parted(labels):
    """Whether the rows of the two groups have a cluster each."""
    return len({*labels[::2]}) == len({*labels[1::2]}) == 1 and labels[0] != labels[1]


# ---- workbooks ---------------------------------------------------------------------------------------


def filled_down(path, n):
    """A workbook with a formula that Excel stores once, in the first of n cells, and whose values are errors."""
    book = openpyxl.Workbook()
    book.active.append(["height", "width", "ratio"])
    for row in groups(n).tolist():
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


def test_errors_of_a_formula_that_is_filled_down_take_time_in_proportion_to_their_number(run, tmp_path):
    file = filled_down(tmp_path / "book.xlsx", 8000)
    before = time.process_time()
    done = run("fit", file, "-k", 2, "--columns", "height")
    assert time.process_time() - before < 20  # 90 seconds and more if each error looks through all that follow
    assert "#DIV/0!" in done.output


# ---- numerals ----------------------------------------------------------------------------------------


def test_a_comma_before_digits_with_an_exponent_is_decimal(run, table):
    X = groups(60)
    file = table("a;b", *(";".join(f"{x:.3e}".replace(".", ",") for x in row) for row in X))
    found = run("fit", file, "-k", 2, "--json").document
    centres = sorted(each["center"]["a"] for each in found["clusters"])
    np.testing.assert_allclose(centres, [X[::2, 0].mean(), X[1::2, 0].mean()], atol=0.5)


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("pair", ["640, 480", "1024, 768", "1, 2", "1,5 2,5"])
def test_pairs_of_numbers_are_text(run, table, delimiter, pair):
    rows = (delimiter.join([pair, f"{a:.0f}", f"{b:.0f}"]) for a, b in groups(60))
    found = run("fit", table(delimiter.join(["pair", "a", "b"]), *rows), "-k", 2, "--json").document
    assert found["columns"] == ["a", "b"]
    assert are_parted(found["labels"])


@pytest.mark.parametrize("pair", ["640, 480", "1024, 768", "1, 2"])
def test_pairs_of_numbers_do_not_make_commas_decimal(run, table, tmp_path, pair):
    rows = (f'"{pair}",{a:.0f},{b:.0f}' for a, b in groups(60))
    run("fit", table("pair,a,b", *rows), "-k", 2, "--out", tmp_path / "out.csv")
    assert re.fullmatch(
        r'"[0-9, ]+",[0-9]+,[0-9]+,[01],[0-9.]+,[0-9.]+', (tmp_path / "out.csv").read_text().split("\n")[1]
    )


def test_a_decimal_point_far_below_pairs_of_numbers_is_read(run, table):
    rows = [f"{i % 9}, {i % 7};{a:.0f};{b:.0f}" for i, (a, b) in enumerate(groups(700))]
    found = run("fit", table("pair;a;b", *rows, "1, 2;30.5;30"), "-k", 2, "--json").document
    assert found["columns"] == ["a", "b"]
    assert are_parted(found["labels"])


# ---- folders -----------------------------------------------------------------------------------------


def german(x, decimals=0):
    """A number as it is written in Germany."""
    return f"{x:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize("first", ["1", "3"])
def test_the_decimal_sign_of_one_file_of_a_folder_holds_for_files_that_leave_it_open(run, table, tmp_path, first):
    prices = np.random.default_rng(0).integers(1000, 2000, 60) + np.arange(60) % 2 * 5000
    weights = np.arange(60) % 2 * 5 + 1.25
    rows = [f"{german(p)};{german(w, 2)}" for p, w in zip(prices, weights, strict=True)]
    file = table("price;weight", *rows, name=f"f/{first}.csv")
    table("price;weight", *(f"{german(p)};{w:.0f}" for p, w in zip(prices, weights, strict=True)), name="f/2.csv")
    found = run("fit", file.parent, "-k", 2, "--out", tmp_path / "out.csv", "--json").document
    assert are_parted(found["labels"])
    written = [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert [*map(float, written)] == [*prices, *prices]


def test_a_file_between_commas_keeps_its_points_beside_files_with_decimal_commas(run, table, tmp_path):
    X = groups(60)
    file = table("a,b", *(f"{a:.3f},{b:.3f}" for a, b in X), name="f/1.csv")
    table("a;b", *(f"{a:.2f};{b:.2f}".replace(".", ",") for a, b in X), name="f/2.csv")
    run("fit", file.parent, "-k", 2, "--out", tmp_path / "out.csv")
    written = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    np.testing.assert_allclose(written, np.vstack([X, X]), atol=0.006)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_a_folder_is_named_and_not_waited_for(run, table):
    file = table("a,b", *(f"{a},{b}" for a, b in groups(60)), name="f/1.csv")
    os.mkfifo(file.with_name("2.csv"))
    assert "2.csv" in run("fit", file.parent, "-k", 2).output


# ---- roles of columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["k.csv", "k.parquet", "k.jsonl"])
@pytest.mark.parametrize("first", [9400000000000001, 90071992547409930, 8944500102198304826])
@pytest.mark.parametrize("step", [1, 7])
def test_long_identifiers_are_keys_though_their_floats_repeat(run, tmp_path, name, first, step):
    numbers = [first + step * int(i) for i in np.random.default_rng(1).permutation(200)]
    rows = [{"account": n, "a": a, "b": b} for n, (a, b) in zip(numbers, groups(200).tolist(), strict=True)]
    if name == "k.parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
    else:
        lines = map(json.dumps, rows) if name == "k.jsonl" else (",".join(map(str, row.values())) for row in rows)
        (tmp_path / name).write_text("\n".join([*["account,a,b"] * (name == "k.csv"), *lines]))
    document = run("fit", tmp_path / name, "--dry-run", "--json").document
    roles = {each["column"]: each["role"] for each in document["columns"]}
    assert re.fullmatch("not used: a (key: .*|row number)", roles.pop("account"))
    assert {*roles.values()} == {"used for clustering"}


@pytest.mark.parametrize("power", [16, 18, 24, 40])
def test_large_measurements_that_repeat_are_no_keys(run, table, power):
    file = table("density,a", *(f"{1 + i % 3 * 0.5}e{power},{a}" for i, (a, _) in enumerate(groups(60))))
    assert run("fit", file, "-k", 2, "--json").document["columns"] == ["density", "a"]


@pytest.mark.parametrize(
    ("name", "early", "late", "reason"),
    [
        ("store_id", "101", "207", "an identifier, by its name"),
        ("store_id", "", "207", "an identifier, by its name"),
        ("zip", "10115", "80331", "a postal code, by its name"),
        ("dept", "01", "02", "a code with leading zeros"),
        ("size", "1", "2", ""),
        ("size", "", "2", ""),
    ],
)
def test_a_column_that_varies_late_is_what_it_would_be_if_it_varied_early(run, table, name, early, late, reason):
    rows = (f"{i % 2 * 9 + i % 7 / 7:.3f},{early if i < 66000 else late}" for i in range(66100))
    document = run("fit", table(f"a,{name}", *rows), "--dry-run", "--json").document
    roles = {each["column"]: each["role"] for each in document["columns"]}
    assert roles[name] == (f"not used: {reason}" if reason else "used for clustering")


# ---- encodings and numbers at the end of their range --------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("more", ["", "é", "中文", "😁"])
@pytest.mark.parametrize("given", [(), ("--encoding",)])
def test_text_of_wide_characters_needs_no_mark(run, table, encoding, more, given):
    file = table(f"a,b,c{more}", *(f"{a},{b},{more}" for a, b in groups(60)), encoding=encoding)
    given = [*given, encoding[:6]] if given else []
    assert are_parted(run("fit", file, "-k", 2, "--json", *given).document["labels"])


@pytest.mark.parametrize("data", [bytes(4000), np.arange(1000.0).tobytes(), np.arange(1000).tobytes()])
def test_bytes_with_many_zeros_are_no_text(run, tmp_path, data):
    (tmp_path / "table.csv").write_bytes(data)
    assert "neither text nor" in run("fit", tmp_path / "table.csv", "-k", 2, code=1).output


def test_an_encoding_in_which_no_part_of_a_text_can_be_read_is_refused(run, table):
    file = table("a,b", *(f"{a},-{b}" for a, b in groups(60)))
    assert "no encoding is called 'punycode'" in run("fit", file, "-k", 2, "--encoding", "punycode", code=2).output


@pytest.mark.filterwarnings("error")
def test_numbers_whose_sum_is_beyond_all_floats_are_not_called_missing(run, table, tmp_path):
    run("fit", table("a,b", *(f"{a},{b}" for a, b in groups(60))), "-k", 2, "--model", tmp_path / "m.json")
    rows = table("a,b", "1e308,1e308", "1.5e308,1.7e308", "-1e308,-1e308", "-1.5e308,-1.7e308", name="new.csv")
    assert "missing" not in run("predict", tmp_path / "m.json", rows).output
