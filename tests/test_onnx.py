"""ONNX models give the answers of the estimators that they were made of."""

import sys

import numpy as np
import pytest
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans, to_onnx

X, _, _ = t_mixture(n=2000, n_clusters=5, n_features=6, dof=4.0, scale=0.05)
X = X + 100  # away from zero
ESTIMATORS = [
    TKMeans(5, bad_cells=False),
    TKMeans(5, cluster_weights="estimate", dof=1.0, bad_cells=False),
    MiniBatchTKMeans(5, random_state=0),
    FastTKMeans(5, random_state=0),
]


def asked(model, rows):
    """The answers of onnxruntime: labels, distances, probabilities."""
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'tkmeans[onnx]'")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["labels", "distances", "probabilities"], {"X": rows})


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_hundred_thousand_rows_have_the_same_answers_to_six_digits(estimator):
    model = estimator.fit(X)
    rng = np.random.default_rng(0)
    rows = (X[rng.integers(len(X), size=100_000)] + rng.normal(0, 1, (100_000, 6))).astype(np.float32)
    labels, distances, probabilities = asked(model, rows)
    in_double = rows.astype(np.float64)
    assert labels.dtype == np.int64
    np.testing.assert_allclose(distances, model.transform(in_double), rtol=1e-6)
    np.testing.assert_allclose(probabilities, model.predict_proba(in_double), atol=1e-6)
    np.testing.assert_array_equal(labels, model.predict(in_double))


def test_missing_values_have_the_answers_of_the_estimator():
    model = TKMeans(5, bad_cells=False).fit(X)
    rows = X.astype(np.float32)
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = np.nan
    rows[0] = np.nan
    labels, distances, probabilities = asked(model, rows)
    in_double = rows.astype(np.float64)
    np.testing.assert_allclose(distances, model.transform(in_double), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(probabilities, model.predict_proba(in_double), atol=1e-6)
    known = ~np.all(np.isnan(rows), axis=1)  # of other rows every cluster is as good
    np.testing.assert_array_equal(labels[known], model.predict(in_double)[known])


def test_the_model_has_names_for_what_goes_in_and_comes_out():
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    made = to_onnx(TKMeans(3, bad_cells=False).fit(X[:, :2]))
    assert made.producer_name == "tkmeans"
    assert [value.name for value in made.graph.input] == ["X"]
    assert [value.name for value in made.graph.output] == ["labels", "distances", "probabilities"]


def test_what_has_no_round_clusters_is_refused():
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    with pytest.raises(TypeError, match="to_onnx takes a fitted TKMeans, FastTKMeans or MiniBatchTKMeans, got Student"):
        to_onnx(StudentTMixture(2).fit(X[:, :2]))


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'tkmeans\[onnx\]'"):
        to_onnx(TKMeans(2))


def test_a_model_that_leaves_out_bad_cells_is_refused():
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    rows = X.copy()
    rows[:4, 0] += 1e6
    with pytest.raises(ValueError, match="bad_cells=False"):
        to_onnx(TKMeans(5).fit(rows))


@pytest.mark.parametrize("model", [TKMeans(3, cluster_weights="equal"), FastTKMeans(3, random_state=0)])
def test_an_onnx_model_gives_ties_the_labels_of_predict(model):
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'tkmeans[onnx]'")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.repeat([[9, 9], [0, 0], [9, -9]], [40, 30, 20], axis=0)
    ties = np.array([[np.nan, np.nan], [1e30, 1e30], [-1e30, 1e30]], np.float32)
    session = runtime.InferenceSession(to_onnx(model.fit(X)).SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["labels"], {"X": ties})[0], model.predict(ties.astype(float)))


def test_a_class_in_place_of_a_fitted_model_is_refused_by_the_onnx_export_in_our_words():
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    with pytest.raises(TypeError, match=r"to_onnx takes a fitted TKMeans, .* got <class 'tkmeans.*TKMeans'>"):
        to_onnx(TKMeans)
