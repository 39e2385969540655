"""What the command suggests can be typed as it stands, and names only what there is."""

import numpy as np
import pytest
from support.command_tables import TWO_COLUMNS, amounts, column, groups, lines, positive_groups, said, write_columns

pytestmark = pytest.mark.usefixtures("own_folder")


def test_what_is_suggested_next_can_be_typed_and_gives_the_same_clusters(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = groups()
    write_columns(tmp_path / "t.json", {"a": X[:, 0], "b": X[:, 1]})
    options = ("--shape", "elliptical", "--seed", "3", "--max-iter", "50", "--scale", "standard")
    said = run("fit", "t.json", "-k", 2, *options).stdout
    commands = [line.split()[1:] for line in said.splitlines() if line.startswith("  tkmeans")]
    assert [words[0] for words in commands] == ["fit", "report", "outliers", "select-k"]
    for words in commands[:3]:
        assert all(option in words for option in options)
        run(*words)
    assert len(column(tmp_path / "t-clustered.csv", "cluster")) == 60


@pytest.mark.parametrize("given", [(), ("--mark-outliers",)])
def test_the_suggested_command_marks_outliers_if_this_one_does(run, table, given):
    found = run("fit", table("a,b", *(f"{a},{b}" for a, b in positive_groups())), "-k", 2, *given).output
    (line,) = [line for line in found.splitlines() if "tkmeans fit" in line]
    assert ("--mark-outliers" in line) == bool(given)


def test_a_file_whose_name_begins_with_a_hyphen_can_be_typed_as_suggested(run, table):
    table("a,b", *(f"{x},{i % 7}.5" for i, x in enumerate(amounts())), name="-x.csv")
    assert "tkmeans select-k ./-x.csv" in said(run("fit", "-k", 2, "--", "-x.csv"))
    run("select-k", "./-x.csv", "--max", 2)


@pytest.mark.parametrize("cells", ["abc abd abe", "1 oops 3", "1 a b c d e 7 8 9 8 7 6 5 4 3"])
def test_predict_advises_no_option_that_it_lacks(run, table, tmp_path, cells):
    model = tmp_path / "model.json"
    run("fit", table(*TWO_COLUMNS), "-k", 1, "--model", model)
    other = table("x,y", *(f"{cell},2" for cell in cells.split()), name="other.csv")
    said = run("predict", model, other, code=1).stderr
    assert "column 'x'" in said
    assert "--without" not in said
    assert "--columns" not in said
    assert "--missing" in said or cells != "1 oops 3"
    fit = run("fit", other, "-k", 1, "--columns", "x", code=1).stderr
    assert "--without" in fit or "--columns" in fit


def test_notes_name_rows_by_their_lines_and_only_options_that_there_are(run, table, tmp_path):
    X = np.vstack([groups(200), np.random.default_rng(1).normal(60, 0.1, size=(20, 2))])
    file, model = table("a,b", *lines(X)), tmp_path / "m.json"
    run("fit", table("a,b", *lines(X[:200]), name="near.csv"), "-k", 2, "--model", model, "--scale", "none")
    note = next(line for line in run("predict", model, file).stderr.splitlines() if "lie together" in line)
    assert "such as line 202, line 203, line 204" in note
    assert "-k" not in note
    assert "--min-cluster-size" not in note
    note = run("fit", file, "-k", 2, "--max-iter", 1).stderr
    assert "raise --max-iter" in note
    assert "tol" not in note


def test_an_npz_is_named(run, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.eye(3))
    assert "a zip archive such as .npz" in said(run("fit", "a.npz", code=1))
