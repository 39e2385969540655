"""What pictures do not take is refused by name and with a way out, before anything is written."""

import numpy as np
import pytest
from scipy import sparse
from support.model_inputs import four_clusters, two_groups
from support.table_files import csv_table

from tkmeans import DataFile, StudentTMixture, TKMeans, plots, write_report
from tkmeans.plots import ClustersDisplay

X = two_groups()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"centers": [[0, 0, 0]]}, "got 1 centres and the label 3"),
        ({"max_rows": -1}, "max_rows"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": 2.5}, "max_rows"),
        ({"labels": ["a"] * 420}, "labels must be a whole number"),
        ({"labels": [1, 2]}, "labels must be a whole number"),
    ],
)
def test_a_picture_names_what_is_wrong_with_its_arguments(options, words):
    X, model = four_clusters()
    with pytest.raises((ValueError, TypeError), match=words):
        ClustersDisplay.from_predictions(X, **({"labels": model.labels_} | options))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_a_picture_of_sparse_rows_is_refused_with_a_way_out(kind):
    pytest.importorskip("matplotlib")
    rows = kind(np.vstack([np.eye(3) * i for i in range(1, 20)]))
    with pytest.raises(TypeError, match=r"X is sparse, and a picture shows every value; pass X.toarray\(\)"):
        ClustersDisplay.from_estimator(TKMeans(2, random_state=0).fit(rows), rows)


@pytest.mark.parametrize("model", [TKMeans(2, random_state=0), StudentTMixture(2, random_state=0)])
@pytest.mark.filterwarnings("error")
def test_rows_whose_squares_are_no_numbers_are_refused_by_pictures_and_reports(model, tmp_path):
    pytest.importorskip("matplotlib")
    model = model.fit(X)
    for draw in (ClustersDisplay.from_estimator, lambda *found: write_report(tmp_path / "r.html", *found)):
        with pytest.raises(ValueError, match=r"X has the value 1.*e\+301, .*; rescale X"):
            draw(model, X * 1e300)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["ClustersDisplay", "RobustWeightsDisplay"])
@pytest.mark.parametrize("kind", [str, lambda path: path, DataFile])
def test_a_picture_of_a_file_is_refused_before_anything_is_written(name, kind, tmp_path):
    pytest.importorskip("matplotlib")
    path = csv_table(tmp_path / "a.csv", X)
    model = TKMeans(2, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"X must be a table of numbers, got .*a\.csv.*; .* load it first"):
        getattr(plots, name).from_estimator(model, kind(path))
    assert [*tmp_path.iterdir()] == [path]


def test_a_picture_of_a_file_with_given_labels_and_one_of_a_dataset_are_refused_in_the_same_words(tmp_path):
    pytest.importorskip("matplotlib")
    dataset = pytest.importorskip("pyarrow.dataset")
    path = csv_table(tmp_path / "a.csv", X)
    with pytest.raises(TypeError, match="load it first"):
        plots.ClustersDisplay.from_predictions(str(path), np.zeros(len(X), int))
    with pytest.raises(TypeError, match="load it first"):
        plots.RobustWeightsDisplay.from_estimator(
            TKMeans(2, random_state=0).fit(X), dataset.dataset(str(path), format="csv")
        )
