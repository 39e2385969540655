"""Where rows of a folder are, and which of its files are read."""

import json

import numpy as np
import pytest


@pytest.fixture
def folder(table, tmp_path):
    """Two files of two groups; a row of the second is far from both."""
    X = np.random.default_rng(0).normal(np.repeat([[0, 0], [40, 40]], 50, axis=0)).round(2)
    X[70] = [300, -300]
    for name, part in (("a", X[:60]), ("b", X[60:])):
        table("x,y", *(f"{x},{y}" for x, y in part), name=f"fold/{name}.csv")
    return tmp_path / "fold"


def test_outliers_of_a_folder_are_named_by_file_and_line(run, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert "│ fold/b.csv, line 12 │" in run("outliers", "fold", "-k", 2).stdout
    (found,) = run("outliers", folder, "-k", 2, "--json").document["outliers"]
    assert found["row"] == 71
    assert found["place"] == f"{folder}/b.csv, line 12"


def test_the_documents_of_fit_and_predict_name_outliers_of_a_folder_by_file_and_line(run, folder, tmp_path):
    fitted = run("fit", folder, "-k", 2, "--model", tmp_path / "m.json", "--json").document
    again = run("predict", tmp_path / "m.json", folder, "--json").document
    for document in (fitted, again):
        assert document["outliers"] == {"count": 1, "rows": [71], "places": [f"{folder}/b.csv, line 12"]}


def test_the_report_on_a_folder_names_rows_by_file_and_line(run, folder, tmp_path):
    run("report", folder, "-k", 2, "--out", tmp_path / "r.html")
    assert "b.csv, line 12" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_outliers_of_one_file_are_named_by_the_line_alone(run, table):
    file = table("x,y", *(f"{i % 5},{i % 7}" for i in range(60)), "900,900")
    (found,) = run("outliers", file, "-k", 1, "--json").document["outliers"]
    assert found["line"] == 62
    assert "place" not in found


@pytest.mark.parametrize("name", ["t.txt", "t.json", "t.dat"])
def test_a_folder_of_files_that_are_often_no_tables_is_read_if_it_has_no_others(run, tmp_path, name):
    (tmp_path / "fold").mkdir()
    rows = [{"a": i % 5, "b": i % 7} for i in range(60)]
    text = json.dumps(rows) if name == "t.json" else "\n".join(["a,b", *(f"{row['a']},{row['b']}" for row in rows)])
    (tmp_path / "fold" / name).write_text(text)
    assert run("fit", tmp_path / "fold", "-k", 2, "--json").document["rows"] == 60


def test_files_that_are_often_no_tables_are_named_and_not_read_beside_others(run, folder):
    (folder / "README.txt").write_text("What this is.")
    done = run("fit", folder, "-k", 2)
    assert "Not read, as their names are not those of tables: README.txt" in " ".join(done.stderr.split())
