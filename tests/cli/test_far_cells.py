"""Single values that are far from all others of their column: where they are, and what they count for."""

import re

import numpy as np
import pytest

from tkmeans.row_answers import RowAnswers

N = 120


@pytest.fixture
def people(table):
    """Three groups by height and weight, with two impossible values."""

    def write(name="people.csv", far=((5, 0, "999"), (17, 1, "-500"))):
        rng = np.random.default_rng(0)
        centers = np.array([[150, 50], [170, 75], [190, 100]])
        cells = [[f"{x:.1f}" for x in row] for row in rng.normal(centers[np.arange(N) % 3], 2.0)]
        for i, j, value in far:
            cells[i][j] = value
        return table("height,weight", *map(",".join, cells), name=name)

    return write


def said(done):
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("command", ["fit", "outliers"])
def test_values_far_from_all_others_are_named_with_their_lines_and_what_they_count_for(run, people, command):
    text = said(run(command, people(), "-k", 3))
    assert "2 values are far from all others of their columns: height = 999 (line 7); weight = -500 (line 19)." in text
    assert "They count in the test for outliers, but not in the clusters." in text
    assert "missing" not in text


@pytest.mark.parametrize("n_bad", [0, 1])
def test_values_that_are_far_are_named_before_it_is_said_that_no_row_is_an_outlier(n_bad):
    bad = np.zeros((5, 2), bool)
    bad[:n_bad, 0] = True
    found = RowAnswers(np.zeros(5, int), np.ones(5, bool), np.zeros(5, bool), bad_cells=bad if n_bad else None)
    text = found.sentence(lambda cells: [f"height = {i}" for i, _ in cells])
    assert text.endswith("No row as a whole is an outlier." if n_bad else "No row is an outlier.")
    assert text.startswith("1 value is far from all others of its column: height = 0." if n_bad else "No row")


def test_a_single_value_far_from_all_others_is_named(run, people):
    text = said(run("fit", people(far=[(5, 0, "999")]), "-k", 3))
    assert "1 value is far from all others of its column: height = 999 (line 7)." in text
    assert "It counts in the test for outliers, but not in the clusters." in text


def test_of_many_values_far_from_all_others_three_are_named_and_the_rest_counted(run, people):
    text = said(run("fit", people(far=[(i, 0, f"{900 + 40 * i}") for i in range(5)]), "-k", 3))
    assert re.search(r"height = 940 \(line 3\); height = 980 \(line 4\); and 2 more\.", text)


def test_predict_names_values_far_from_all_those_of_the_fit(run, people, tmp_path):
    run("fit", people(), "-k", 3, "--model", tmp_path / "m.json")
    text = said(run("predict", tmp_path / "m.json", people("new.csv", far=[(2, 1, "-600")])))
    assert "weight = -600 (line 4)" in text


def test_the_row_of_a_far_value_has_the_cluster_of_its_other_values_and_is_an_outlier(run, people):
    """What the sentence says: the value counts in the one, but not in the other."""
    document = run("fit", people(), "-k", 3, "--json").document
    assert document["labels"][5] == document["labels"][2] == document["labels"][8]
    assert {7, 19} <= set(document["outliers"]["lines"])


def test_the_report_names_the_far_values_and_counts_them_beside_those_that_are_missing(run, people, tmp_path):
    run("report", people(), "-k", 3, "--out", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "height = 999.0 (line 7); weight = −500.0 (line 19)" in page
    assert "none; 2 values far from all others of the column did not count in the clusters" in page
