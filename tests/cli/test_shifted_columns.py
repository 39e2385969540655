"""Lines with one cell more than the header: names of rows as R writes them, or numbers that a comma has cut in two."""

import numpy as np
import pytest

from tkmeans import TKMeans
from tkmeans.tables import Reading, TableError, read_table

N = 40


def numbers(seed=0):
    return np.random.default_rng(seed).integers(0, 10, N).tolist()


def lines(header, *columns):
    return [header, *map(",".join, zip(*(map(str, column) for column in columns), strict=True))]


TENTHS = [f"{20 + i % 2 * 9},{x}" for i, x in enumerate(numbers())]  # 29,7
HUNDREDTHS = [f"-{i % 3},{x}5" for i, x in enumerate(numbers(1))]
NAMES, COUNT = [f"p{i}" for i in range(N)], range(1, N + 1)

CUT = {
    "names and a temperature": lines("name,temp", NAMES, TENTHS),
    "numbers that count up and a temperature": lines("id,temp", COUNT, TENTHS),
    "a temperature before whole numbers": lines("id,temp,press", COUNT, TENTHS, [1000 + x for x in numbers(2)]),
    "a temperature behind whole numbers": lines("id,press,temp", COUNT, [1000 + x for x in numbers(2)], TENTHS),
    "names in quotation marks": lines("name,temp", [f'"{name}"' for name in NAMES], TENTHS),
    "negative numbers": lines("name,temp", NAMES, HUNDREDTHS),
    "words behind": lines("name,temp,kind", NAMES, TENTHS, ["ab"[i % 2] for i in range(N)]),
}


def said(done):
    return " ".join(done.output.split())


@pytest.mark.parametrize("case", CUT)
def test_numbers_that_commas_may_have_cut_in_two_are_asked_about(run, table, case):
    message = said(run("fit", table(*CUT[case]), "-k", 2, code=1))
    assert "lines have one cell more than there are names" in message
    assert "may be one number" in message
    assert "--decimal . if lines begin with names of rows" in message


def test_the_number_that_may_be_cut_is_named_as_it_stands_there(run, table):
    assert "'29,7' may be one number" in said(run("fit", table("name,temp", "p1,29,7", "p2,20,4"), "-k", 2, code=1))


def test_a_fit_of_the_file_raises_the_same_error(table):
    with pytest.raises(TableError, match=r"may be one number.*decimal='.'"):
        TKMeans(2).fit(table(*CUT["names and a temperature"]))


def test_a_decimal_point_that_is_given_says_that_lines_begin_with_names_of_rows(table):
    found = read_table(table(*CUT["names and a temperature"]), Reading(decimal="."))
    assert found.names == ["x1", "name", "temp"]
    assert set(found.column("name").values) == {20, 29}


@pytest.mark.parametrize("cells", ["5.1,3.5", "5,3.5", "-3,-4", "5,3.5,2"])
def test_names_of_rows_without_a_name_are_read_where_no_number_can_be_cut(table, cells):
    width = len(cells.split(","))
    header = ",".join(["len", "wid", "height"][:width])
    found = read_table(table(header, *(f"r{i},{cells}" for i in range(N))))
    assert found.names == ["x1", *header.split(",")]
    assert found.column("len").values[0] == float(cells.split(",")[0])


def test_tables_with_names_of_rows_and_another_delimiter_are_not_asked_about(table):
    assert read_table(table("len wid", *(f"r{i} {i % 3} 7" for i in range(N)))).names == ["x1", "len", "wid"]
