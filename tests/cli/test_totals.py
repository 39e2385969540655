"""A last row that is the sum of the others."""

import pytest
from support.command_tables import positive_groups

pytestmark = pytest.mark.usefixtures("own_folder")

NOTE = "is the sum of the others; leave out such a total"


@pytest.fixture
def notes(run, table):
    def found(rows, last):
        lines = [f"shop {i},{a:.2f},{b:.2f},{10 * (i % 2) + i % 3}" for i, (a, b) in enumerate(rows)]
        return " ".join(run("fit", table("name,sales,cost,visits", *lines, last), "-k", 2).stderr.split())

    return found


def test_a_last_row_that_is_the_sum_of_the_others_is_mentioned(notes):
    rows = positive_groups(60)
    sales, cost = rows.sum(axis=0)
    assert f"The last row (line 62) {NOTE}" in notes(rows, f"Total,{sales:.1f},{cost:.1f},")
    assert f"The last row (line 62) {NOTE}" in notes(rows, f"Summe,{sales:.1f},{cost:.1f},5")


@pytest.mark.parametrize("column", [0, 1])
def test_a_last_row_that_is_a_sum_in_one_of_three_columns_is_not_mentioned(notes, column):
    rows = positive_groups(60)
    cells = [12.0, 13.0, 14.0]
    cells[column] = rows.sum(axis=0)[column]
    assert NOTE not in notes(rows, ",".join(["shop 60", *map(str, cells)]))


def test_a_last_row_of_zeros_is_not_mentioned(notes):
    assert NOTE not in notes(positive_groups(60), "shop 60,0,0,0")
