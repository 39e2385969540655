"""What a sixth attack broke in the command and in files, each with a test that fails if it comes back."""

import re
import time
import zipfile

import numpy as np
import openpyxl
import pytest


@pytest.fixture
def table(tmp_path):
    """Write a table of these lines."""

    def write(*lines, name="table.csv", encoding="utf-8"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
        return tmp_path / name

    return write


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
