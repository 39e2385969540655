"""`tkmeans predict`."""

import json
import shutil

import numpy as np
import pytest

import tkmeans
from tkmeans.baselines import KMedians
from tkmeans.tables import read_table


@pytest.fixture(scope="module")
def fitted(run, write_penguins, tmp_path_factory):
    """A folder with a model and the table it comes from."""
    folder = tmp_path_factory.mktemp("fitted")
    file = write_penguins(folder / "penguins.csv")
    run("fit", file, "-k", 3, "--model", folder / "model.json", "--out", folder / "fitted.csv")
    return folder


@pytest.fixture
def model(fitted, tmp_path):
    return shutil.copy(fitted / "model.json", tmp_path / "model.json")


def test_predict_gives_rows_the_clusters_of_the_fit_even_from_a_file_of_another_layout(
    run, fitted, model, csv_file, tmp_path
):
    other, out = csv_file("other.csv", delimiter=";", decimal=",", change=lambda row: row[::-1]), tmp_path / "out.csv"
    run("predict", model, other, "--out", out)
    before, after = read_table(fitted / "fitted.csv"), read_table(out)
    assert after.names == [*read_table(other).names, "cluster", "probability", "outlier_pvalue"]
    for name in after.names[-3:]:
        np.testing.assert_array_equal(after.column(name).values, before.column(name).values)


def test_the_model_file_of_the_fit_command_is_a_pipeline_with_the_names_of_the_columns(model):
    loaded = tkmeans.load(model)
    assert loaded.feature_names_in_.tolist() == ["bill_length_mm", "flipper_length_mm", "body_mass_g"]
    assert [type(step).__name__ for _, step in loaded.steps] == ["RobustScaler", "StudentTMixture"]


def test_predict_as_json_has_labels_and_outliers(run, model, csv_file, are_species):
    document = run("predict", model, csv_file(), "--json").document
    assert are_species(document["labels"])
    assert document["outliers"] == {"count": 1, "lines": [22]}


def test_predict_refuses_a_table_without_the_columns_of_the_model_and_names_them(run, model, csv_file):
    file = csv_file("other.csv", change=lambda row: [cell.replace("bill_length_mm", "bill") for cell in row])
    said = run("predict", model, file, code=1).stderr
    assert "lacks 'bill_length_mm'" in said
    assert "its columns are species, island, bill," in said


def test_predict_refuses_a_model_file_that_was_changed(run, model, csv_file):
    document = json.loads(model.read_text())
    document["estimator"]["fitted"]["dof_"] = 1.0
    model.write_text(json.dumps(document))
    done = run("predict", model, csv_file(), code=1)
    assert "was changed after it was written" in done.stderr
    assert done.stdout == ""


def test_predict_without_a_model_file_is_an_error_that_names_it(run, csv_file, tmp_path):
    said = run("predict", tmp_path / "none.json", csv_file(), code=1).stderr
    assert "none.json: No such file" in said


def test_predict_accepts_models_without_column_names_or_probabilities(run, tmp_path):
    X = np.array([[0.0, 0], [0, 1], [1, 0], [8, 8], [8, 9]])
    tkmeans.save(KMedians(2, random_state=0).fit(X), tmp_path / "model.json")
    np.save(tmp_path / "X.npy", X)
    run("predict", tmp_path / "model.json", tmp_path / "X.npy", "--out", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ["x1,x2,cluster", "0.0,0.0,0"]
    np.save(tmp_path / "wide.npy", np.c_[X, X])
    said = run("predict", tmp_path / "model.json", tmp_path / "wide.npy", code=1).stderr
    assert "wants 2 columns of numbers" in said
