"""Formulas in a workbook that no program has calculated yet."""

import zipfile

import numpy as np
import openpyxl
import pytest

N = 40
NOTE = "cells hold formulas that no program has calculated, and are read as missing values; open the workbook"


def rows(every):
    """A column of numbers and one of which every n-th cell is a formula."""
    for i, x in enumerate(np.random.default_rng(0).normal(size=N).round(2).tolist()):
        yield [x, f"=A{i + 2}*3" if i % every == 0 else 3 * x]


@pytest.fixture
def workbook(tmp_path):
    def write(every, header=("a", "b"), change=None):
        book = openpyxl.Workbook()
        for row in [[*header], *rows(every)]:
            book.active.append(row)
        book.save(path := tmp_path / "book.xlsx")
        if change is None:
            return path
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "changed.xlsx", "w") as new:
            for name in old.namelist():
                new.writestr(name, change(old.read(name)))
        return tmp_path / "changed.xlsx"

    return write


def said(done):
    return " ".join(done.output.split())


def test_a_note_counts_the_formulas_that_no_program_has_calculated(run, workbook):
    done = run("fit", workbook(2), "-k", 2)
    assert f"20 {NOTE}" in said(done)
    assert "20 missing values in 20 rows" in said(done)


def test_the_note_is_there_where_a_whole_column_is_made_of_formulas(run, workbook):
    assert f"40 {NOTE}" in said(run("fit", workbook(1), "-k", 2))


def test_the_error_about_a_table_without_numbers_tells_of_the_formulas(run, workbook):
    done = run("fit", workbook(1, header=("a", "b")), "-k", 2, "--without", "a", code=1)
    assert f"40 {NOTE}" in said(done)


@pytest.mark.parametrize("stored", [b"<v>7.5</v>", b"<v>0</v>"])
def test_formulas_with_stored_results_are_not_mentioned(run, workbook, stored):
    file = workbook(2, change=lambda data: data.replace(b"<v />", stored).replace(b"<v/>", stored))
    assert "hold formulas" not in said(run("fit", file, "-k", 2))


def test_formulas_whose_result_is_empty_text_are_not_mentioned(run, workbook):
    """As of =IF(A2>0, A2, ""), which was calculated."""

    def as_text(data):
        for i in range(2, N + 2, 2):
            data = data.replace(b'<c r="B%d"><f>' % i, b'<c r="B%d" t="str"><f>' % i)
        return data

    assert "hold formulas" not in said(run("fit", workbook(2, change=as_text), "-k", 2))
