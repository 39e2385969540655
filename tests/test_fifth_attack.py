"""What a fifth attack found in Python, each with a test that fails if it comes back. docs/development lists them."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score

from tkmeans import FastTKMeans, StudentTMixture, TKMeans, describe, load, save, to_onnx, trimming_curves
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.fitted import ENOUGH_COMPLETE_ROWS
from tkmeans.fitting.incomplete_rows import _unlike
from tkmeans.metrics import clustering_mse
from tkmeans.sources import Sample

GROUPS = np.repeat(range(3), 100)


def three_groups(*bad):
    """Rows of three groups; some cells, (rows, column, value), are wrong."""
    X = np.random.default_rng(0).normal(size=(300, 4)) + 6.0 * GROUPS[:, None]
    for rows, column, value in bad:
        X[rows, column] = value
    return X


SPOILED = three_groups((slice(10, 15), 2, 9999.0), (slice(200, 205), 0, -500.0))

# ---- bad cells --------------------------------------------------------------------------------


def test_a_second_fit_with_a_warm_start_knows_the_bad_cells_of_the_first():
    model = StudentTMixture(3, warm_start=True).fit(SPOILED)
    cells, bound = model.find_bad_cells(SPOILED), model.lower_bound_
    model.fit(SPOILED)
    assert np.sum(cells) == 10
    np.testing.assert_array_equal(model.find_bad_cells(SPOILED), cells)
    assert adjusted_rand_score(GROUPS, model.labels_) == 1.0
    assert model.lower_bound_ >= bound


def test_a_warm_start_on_other_rows_finds_the_bad_cells_of_these():
    model = StudentTMixture(3, warm_start=True).fit(three_groups())
    assert not hasattr(model, "cell_bounds_")
    model.fit(SPOILED)
    np.testing.assert_array_equal(model.find_bad_cells(SPOILED), (SPOILED > 9000) | (SPOILED < -400))
    assert adjusted_rand_score(GROUPS, model.labels_) == 1.0
    assert not hasattr(model.fit(three_groups()), "cell_bounds_")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_model_with_bad_cells_answers_for_sparse_rows_as_for_the_same_rows_with_zeros(dtype):
    model, X = TKMeans(3).fit(SPOILED), SPOILED.astype(dtype)
    X[::7, 1] = 0
    for ask in (model.predict, model.predict_proba, model.assignment_entropy, model.robust_weights, model.transform):
        np.testing.assert_allclose(ask(sparse.csr_array(X)), ask(X), rtol=1e-6, atol=1e-6)


# ---- weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", [TKMeans(6), StudentTMixture(6)])
@pytest.mark.filterwarnings("ignore")
def test_a_row_of_weight_2_with_holes_is_that_row_twice(model, seed):
    rng = np.random.default_rng(seed + 3)
    X = 3 * rng.normal(size=(6, 3))[rng.integers(0, 6, 100)] + rng.normal(size=(100, 3))
    X[rng.random(X.shape) < 0.08] = np.nan
    twice = model.fit(np.repeat(X, 2, axis=0)).lower_bound_, model.predict(X)
    weighted = model.fit(X, sample_weight=np.full(100, 2.0)).lower_bound_, model.predict(X)
    assert weighted[0] == pytest.approx(twice[0], abs=1e-9)
    np.testing.assert_array_equal(weighted[1], twice[1])


@pytest.mark.parametrize("model", [TKMeans(3), StudentTMixture(3)])
def test_weights_that_sum_to_1_do_not_make_complete_rows_few(model):
    X = three_groups((slice(0, 300, 4), 1, np.nan))
    centers = model.fit(X).cluster_centers_
    np.testing.assert_allclose(model.fit(X, sample_weight=np.full(300, 1 / 300)).cluster_centers_, centers, atol=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_outliers_among_rows_of_weight_2_with_holes_are_those_among_the_rows_given_twice():
    far = np.random.default_rng(1).uniform(-60, 60, (8, 4))
    X, far[:, 1] = three_groups((slice(0, 300, 4), 1, np.nan)), np.nan
    X = np.concatenate([X[::3], far])
    complete = np.count_nonzero(~np.any(np.isnan(X), axis=1))
    assert complete < ENOUGH_COMPLETE_ROWS < 2 * complete
    weighted, twice = TKMeans(3).fit(X, sample_weight=np.full(len(X), 2.0)), TKMeans(3).fit(np.repeat(X, 2, axis=0))
    outwards = weighted.cluster_centers_[0] - np.linspace(0, 30, 301)[:, None]
    np.testing.assert_array_equal(weighted.outliers(outwards), twice.outliers(outwards))


# ---- components without rows ------------------------------------------------------------------


@pytest.mark.parametrize("seed", [2, 8, 11])
def test_both_engines_put_the_component_of_extremely_far_rows_where_these_are(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (4, 6))[rng.integers(0, 4, 400)] + rng.normal(size=(400, 6))
    X[:20] = rng.uniform(-100, 100, (20, 6))
    X[rng.integers(20, 400, 5), rng.integers(0, 6, 5)] = 1e5
    native, reference = (
        StudentTMixture(5, covariance_type="diag", engine=engine).fit(X) for engine in ("native", "reference")
    )
    assert native.lower_bound_ == pytest.approx(reference.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(native.means_, reference.means_, atol=1e-3)
    for mean in native.means_:
        assert np.min(np.max(np.abs(X - mean), axis=1)) < 10


def test_a_component_that_no_row_belongs_to_stays_where_it_is():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)), rng.uniform(-50, 50, (20, 2))])
    far = [[0.0, 0.0], [1e7, 3e7]]
    for engine in ("native", "reference"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = StudentTMixture(2, covariance_type="diag", means_init=far, noise=True, engine=engine).fit(X)
        np.testing.assert_allclose(model.means_[1], far[1])


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
@pytest.mark.parametrize("options", [{}, {"shrinkage": 0, "noise": False}])
@pytest.mark.parametrize("n_components", [1, 2])
def test_a_constant_column_without_a_ridge_is_fitted_as_a_component_without_width(
    kind, options, n_components, tmp_path
):
    X = np.column_stack([np.random.default_rng(0).normal(size=50), np.zeros(50)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1 of 2 clusters hold hardly any")
        warnings.simplefilter("error", RuntimeWarning)
        model = StudentTMixture(n_components, covariance_type=kind, reg_covar=0, **options).fit(X)
    assert np.all(model.means_[:, 1] == 0)
    assert np.all(np.isfinite(model.score_samples(X)))
    assert np.all(np.isfinite(model.score_samples(np.add(X, [0, 1]))))
    save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").score_samples(X), model.score_samples(X))


# ---- infinite values --------------------------------------------------------------------------

QUESTIONS = ["predict", "score_samples", "transform", "outliers", "score", "bic"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_infinite_values_of_new_rows_in_a_file_are_refused_as_those_of_arrays_are(question, tmp_path):
    model, X = TKMeans(3).fit(three_groups()), three_groups((5, 1, np.inf))
    with pytest.raises(ValueError, match="infinity"):
        getattr(model, question)(X)
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="X has infinite values in feature 1; clip them or mark them as NaN"):
        getattr(model, question)(tmp_path / "rows.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_infinite_values_of_new_rows_in_a_dask_collection_are_refused_with_the_partition(question):
    da = pytest.importorskip("dask.array")
    model, X = TKMeans(3).fit(three_groups()), da.from_array(three_groups((150, 1, -np.inf)), chunks=(100, 4))
    with pytest.raises(RuntimeError, match=r"partition 1 of X .* infinite values in feature 1"):
        np.asarray(getattr(model, question)(X))


# ---- attributes that were edited --------------------------------------------------------------


def _in_place(model):
    vars(model)["means_" if hasattr(model, "means_") else "cluster_centers_"][:] += 4


def _replaced(model):
    name = "means_" if hasattr(model, "means_") else "cluster_centers_"
    setattr(model, name, getattr(model, name) + 4)


@pytest.mark.parametrize("edit", [_in_place, _replaced])
@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("model", [TKMeans(3), FastTKMeans(3, random_state=0), StudentTMixture(3), KMedians(3)])
def test_an_edited_attribute_changes_no_answer_of_the_model_its_pickle_and_its_file(
    model, asked_before, edit, tmp_path
):
    X = three_groups()
    expected = model.fit(X).transform(X)
    model.fit(X)
    if asked_before:
        model.transform(X)
    edit(model)
    save(model, tmp_path / "model.json")
    for other in (model, pickle.loads(pickle.dumps(model)), load(tmp_path / "model.json")):
        np.testing.assert_array_equal(other.transform(X), expected)


# ---- ties, weights, memory and messages -------------------------------------------------------


@pytest.mark.parametrize("model", [TKMeans(3, cluster_weights="equal"), FastTKMeans(3, random_state=0)])
def test_an_onnx_model_gives_ties_the_labels_of_predict(model):
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'tkmeans[onnx]'")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.repeat([[9, 9], [0, 0], [9, -9]], [40, 30, 20], axis=0)
    ties = np.array([[np.nan, np.nan], [1e30, 1e30], [-1e30, 1e30]], np.float32)
    session = runtime.InferenceSession(to_onnx(model.fit(X)).SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["labels"], {"X": ties})[0], model.predict(ties.astype(float)))


def test_weights_of_another_number_of_rows_in_dask_are_refused_in_our_words():
    da = pytest.importorskip("dask.array")
    X = da.from_array(three_groups(), chunks=(100, 4))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(300,\), one weight per row, got \(299,\)"):
        TKMeans(3).fit(X, sample_weight=da.ones(299, chunks=100))


def test_the_mean_squared_error_of_many_clusters_takes_memory_by_rows_and_clusters_not_their_product():
    labels = np.arange(8000) % 4000
    X = np.random.default_rng(0).normal(size=(8000, 2))
    tracemalloc.start()
    found = clustering_mse(X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    halves = (X[:4000] - X[4000:]) / 2  # two rows lie symmetrically around their mean
    assert found == pytest.approx(np.mean(np.sum(halves**2, axis=1)))
    assert peak < 8000 * 4000 / 8


def test_a_clusterer_that_cannot_predict_is_refused_by_describe():
    with pytest.raises(TypeError, match="model must be a clusterer with predict, such as TKMeans"):
        describe(HDBSCAN(copy=True).fit(three_groups()), three_groups())


def test_a_heap_below_the_least_size_of_a_cluster_is_no_missed_cluster():
    rng = np.random.default_rng(0)
    X = np.repeat([[-8, 6], [10, 2], [2, -2]], 200, axis=0) + rng.normal(size=(600, 2))
    X[:12] = [60, 60]
    with warnings.catch_warnings(action="error"):
        assert np.all(TKMeans(3, min_cluster_size=20).fit(X).outliers(X)[:12])


@pytest.mark.parametrize("what", ["sample_weight", "init"])
def test_a_checkpoint_is_not_written_over_the_file_of_weights_or_of_first_centres(what, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
    path = tmp_path / "given.npy"
    np.save(path, np.ones(200) if what == "sample_weight" else X[[0, 150]])
    before, given = path.read_bytes(), np.load(path, mmap_mode="r")
    model = TKMeans(2, checkpoint=path, **({"init": given} if what == "init" else {}))
    with pytest.raises(FileExistsError, match="is the input"):
        model.fit(X, sample_weight=given if what == "sample_weight" else None)
    assert path.read_bytes() == before


def test_what_a_campaign_of_hostile_calls_has_met_ends_in_our_words_or_in_an_answer():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [9]], 30, axis=0)
    with pytest.raises(ValueError, match="weights_init must be finite real numbers"):
        StudentTMixture(2, weights_init=np.array([0.5 + 1j, 0.5])).fit(X)
    assert [*trimming_curves(X, np.array([1, 2], dtype=np.int8), levels=[0.0])] == ["1 cluster", "2 clusters"]
    with warnings.catch_warnings(action="error"):
        model = KMedoids(2, max_iter=np.int8(127)).fit(X)
    assert len(set(model.labels_)) == 2


def test_a_single_complete_row_is_compared_with_rows_with_holes_without_a_warning_of_numpy():
    X = np.array([[0.0, np.nan], [np.nan, 9.0], [9.0, 9.0], [np.nan, np.nan]])
    with warnings.catch_warnings(action="error"):
        found = _unlike(Sample(X, np.ones(4)), np.array([False, False, True, False]))
    assert not np.any(found)
