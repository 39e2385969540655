"""Columns of text whose cells look like numbers."""

import numpy as np
import pytest

N = 40


@pytest.fixture
def notes(run, table):
    def found(cells, *options):
        rows = zip(cells, np.random.default_rng(0).normal(size=len(cells)).round(2), strict=True)
        return " ".join(run("fit", table("v\tx", *(f"{v}\t{x}" for v, x in rows)), "-k", 2, *options).stderr.split())

    return found


FORMS = {
    "thousands and millions": ["2.84K", "0.48M", "1.2K"],
    "formulas of a spreadsheet": ['="475.08"', '="12.50"'],
}


@pytest.mark.parametrize("form", FORMS)
def test_text_that_looks_like_numbers_is_mentioned_with_a_cell(notes, form):
    cells = (FORMS[form] * N)[:N]
    text = notes(cells)
    assert "Column v is text, though its cells look like numbers, such as" in text
    assert "write all of them in one way, such as 1234.5, to cluster by it" in text


@pytest.mark.parametrize(
    "cells",
    [
        ["red", "blue"],
        ["12:30", "8:15"],
        ["a1", "b2"],
        ["1/2", "3/4"],
        ["5-9", "10-14"],
        ["01.02.2024", "17.11.2024"],
        ["192.168.1.7"],
    ],
)
def test_other_text_is_not_mentioned(notes, cells):
    assert "look like numbers" not in notes((cells * N)[:N])
