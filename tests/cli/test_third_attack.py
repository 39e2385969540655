"""What a third attack broke in the command, each with a test that fails if it comes back."""

import csv

import pytest


def column(path, name):
    """The cells of a column, by Python's own reader."""
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


@pytest.fixture
def table(tmp_path):
    """Write a small table of these lines."""

    def write(*lines, name="table.csv"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    return write


def test_the_labels_in_json_are_marked_like_those_in_the_table(run, csv_file, tmp_path):
    file, model, out = csv_file(), tmp_path / "model.json", tmp_path / "out.csv"
    fit = run("fit", file, "-k", 3, "--model", model, "--out", out, "--mark-outliers", "--json").document
    for document in (fit, run("predict", model, file, "--out", out, "--mark-outliers", "--json").document):
        assert ["" if label is None else str(label) for label in document["labels"]] == column(out, "cluster")
        marked = [i for i, label in enumerate(document["labels"]) if label == -1]
        assert [i + 2 for i in marked] == document["outliers"]["lines"] == [22]
    assert -1 not in run("predict", model, file, "--json").document["labels"]


@pytest.mark.parametrize("scale", ["robust", "standard", "minmax", "none"])
def test_weights_that_are_all_zero_are_refused_by_the_name_of_their_column(run, table, scale):
    file = table("x,y,w", "1,2,0", "3,5,0", "4,9,0")
    said = run("fit", file, "-k", 1, "--weights", "w", "--scale", scale, code=1).stderr
    assert "all weights in 'w' are 0" in said
