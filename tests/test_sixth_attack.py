"""What campaigns of hostile inputs and a sixth attack found, each with a test that fails if it comes back."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans, to_onnx
from tkmeans.baselines import KMedoids
from tkmeans.mixture_components import Components
from tkmeans.models.covariances import AxisAligned
from tkmeans.plots import ClustersDisplay
from tkmeans.search.shape_search import round_labels
from tkmeans.sources import Sample
from tkmeans.sources.base import canonical

# ---- rows beyond all others ----------------------------------------------------------------------


def test_the_frame_of_a_mixture_is_the_same_to_the_last_bit_in_whatever_order_the_components_are():
    rng = np.random.default_rng(0)
    for _ in range(20):
        centers, covariances = rng.normal(size=(6, 3)), rng.lognormal(0, 9, (6, 3))
        components = Components(centers, covariances, np.ones(6), np.full(6, 1 / 6), AxisAligned())
        turned = components.take(rng.permutation(6)).frame(np.float64)
        np.testing.assert_array_equal(components.frame(np.float64).origin, turned.origin)
        assert components.frame(np.float64).unit == turned.unit


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
@pytest.mark.filterwarnings("ignore")
def test_labels_of_rows_beyond_the_horizon_are_what_predict_gives(shape):
    options = {"noise": True, "shared_dof": False, "size_ratio": np.inf, "max_iter": 20}
    for seed in range(60):
        X = np.random.default_rng(seed).normal(size=(6, 6))
        X[2] = 1e300
        options |= {"covariance_type": shape, "init_params": "random_from_data", "random_state": seed}
        model = StudentTMixture(4, **options).fit(X)
        np.testing.assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("model", [TKMeans(2), MiniBatchTKMeans(2, dof=4.0, init="uniform", random_state=0)])
def test_centres_at_the_largest_numbers_are_compared_without_a_warning_of_numpy(model):
    most = np.finfo(float).max
    rows = np.array([[0.0, -most, most, 0.0], [1.0, -most, -most, 0.0]])
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        warnings.simplefilter("ignore", UserWarning)
        labels = model.fit(rows).labels_
    assert set(labels) == {0, 1}


# ---- few rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_components"), [(6, 1), (8, 1), (10, 2)])
@pytest.mark.filterwarnings("ignore")
def test_few_rows_in_a_plane_of_many_dimensions_are_fitted(n_rows, n_components):
    for seed in range(50):
        rows = np.random.default_rng(seed).normal(size=(n_rows, 2)) + np.repeat([[0], [3]], n_rows // 2, axis=0)
        model = StudentTMixture(n_components).fit(np.pad(rows, ((0, 0), (0, 2))))
        assert np.all(np.isfinite(model.means_))
        assert np.all(model.means_[:, 2:] == 0)


@pytest.mark.parametrize("n_pieces", [2, 3])
def test_a_round_search_that_leaves_every_centre_a_single_row_still_tells_the_nearest_centre_of_each(n_pieces):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(8, 2)) + np.repeat([[0], [3]], 4, axis=0)
        sample = canonical(Sample(np.pad(rows, ((0, 0), (0, 4))), np.ones(8)))
        assert np.any(round_labels(sample, n_pieces, np.random.RandomState(seed), None, 0) >= 0)


# ---- classes in place of instances ----------------------------------------------------------------


def test_a_class_in_place_of_a_fitted_model_is_refused_by_the_onnx_export_in_our_words():
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'tkmeans[onnx]'")
    with pytest.raises(TypeError, match=r"to_onnx takes a fitted TKMeans, .* got <class 'tkmeans.*TKMeans'>"):
        to_onnx(TKMeans)


# ---- checkpoints ------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0], [9]], 20, axis=0)
FITS = [FastTKMeans(2, init=ROWS[[0, 1]], max_iter=3), TKMeans(2, init=ROWS[[0, 1]], max_iter=3, tol=0)]
FITS += [StudentTMixture(2, covariance_type=shape, max_iter=2) for shape in ("full", "tied", "diag", "spherical")]


def checkpoint_of(model, path):
    model.set_params(checkpoint=path).fit(ROWS)
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("model", FITS)
@pytest.mark.filterwarnings("ignore")
def test_entries_of_a_checkpoint_with_another_shape_are_refused(model, tmp_path):
    path = tmp_path / "forged.npz"
    arrays = checkpoint_of(model, path)
    model.set_params(checkpoint=None).fit(ROWS, resume=path)  # as it is, a fit goes on from it
    numbers = [name for name in arrays if name.startswith(("run_", "best_")) and arrays[name].dtype.kind == "f"]
    assert any("history" in name for name in numbers)
    for name in numbers:
        np.savez(path, **arrays | {name: arrays[name][..., None]})
        with pytest.raises(ValueError, match=rf"forged.*not a whole checkpoint.*{name} has the shape"):
            model.fit(ROWS, resume=path)


# ---- an attack on the tree ----------------------------------------------------------------------


@pytest.mark.parametrize("n_distinct", [1, 2, 5, 12])
@pytest.mark.parametrize("estimator", [TKMeans(2), FastTKMeans(2), MiniBatchTKMeans(2)])
def test_wide_sparse_rows_of_which_few_are_distinct_have_the_clusters_of_dense_ones(estimator, n_distinct):
    X = sparse.csr_array(np.eye(n_distinct, 1100)[np.arange(200) % n_distinct])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of one distinct row
        labels = clone(estimator).fit(X).labels_
    assert len({*zip((np.arange(200) % n_distinct).tolist(), labels.tolist(), strict=True)}) == n_distinct
    assert len({*labels.tolist()}) == min(n_distinct, 2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of one distinct row, and a scale near 0
def test_a_stream_that_begins_with_equal_rows_does_not_forget_them(container):
    rows = np.random.default_rng(0).normal(10, 1, size=(12_000, 2))
    model = MiniBatchTKMeans(2, random_state=0)
    for n in (3000, 6000, 9000):
        assert model.partial_fit(container(np.ones((3000, 2)))).n_samples_seen_ == n
    model.partial_fit(container(rows))
    assert model.n_samples_seen_ == 21_000
    away = np.sort(np.linalg.norm(model.cluster_centers_ - 1, axis=1))
    assert away[0] < 1e-3
    assert away[1] > 9
    assert len(set(model.predict([[1, 1], [9.5, 9.5]]))) == 2


def test_a_first_row_of_weight_zero_does_not_hide_equal_ones():
    model = MiniBatchTKMeans(2, init_size=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.partial_fit(np.ones((5, 2)), sample_weight=[0, 1, 1, 1, 1])
        for seed in range(3):
            model.partial_fit(np.random.default_rng(seed).normal(9, 0.1, size=(5, 2)))
    np.testing.assert_allclose(np.sort(model.cluster_centers_[:, 0]), [1, 9], atol=0.3)


def test_masked_values_are_missing_in_dask_collections_and_pictures_too():
    dask_array, pyplot = pytest.importorskip("dask.array"), pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 8]
    mask = rng.random(X.shape) < 0.1
    masked = np.ma.array(np.where(mask, -999.0, X), mask=mask)
    whole = TKMeans(2).fit(np.where(mask, np.nan, X))
    of_dask = TKMeans(2).fit(dask_array.from_array(masked, chunks=(50, 2), asarray=False))
    np.testing.assert_allclose(of_dask.cluster_centers_, whole.cluster_centers_, atol=1e-6)
    display = ClustersDisplay.from_estimator(whole, masked)
    assert display.ax_.get_xlim()[0] > -20
    pyplot.close(display.figure_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the scale collapses
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_drawn_with_very_heavy_tails_are_finite(dtype):
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(dtype)
    for model in (TKMeans(2, dof=1e-6), StudentTMixture(2, dof=0.01, noise=False)):
        assert np.all(np.isfinite(model.fit(X).sample(1000)[0]))


def test_a_search_for_outliers_ignores_underflow_even_where_it_would_raise():
    X = np.random.default_rng(0).normal(size=(100, 2)) + np.repeat([[0], [9]], 50, axis=0)
    X[0] = 1e9
    model = TKMeans(2).fit(X)
    with np.errstate(all="raise"):
        assert model.outliers(X)[0]


def test_a_warning_of_outliers_in_a_picture_refers_to_the_line_that_drew_it():
    pytest.importorskip("matplotlib")
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0], [60]], [260, 40], axis=0)
    with pytest.warns(UserWarning, match="lie together") as caught:
        ClustersDisplay.from_estimator(TKMeans(1).fit(X), X)
    assert {warning.filename for warning in caught if "together" in str(warning.message)} == {__file__}


def test_rows_of_which_a_constant_column_is_all_that_was_observed_have_p_values():
    X = np.c_[np.random.default_rng(0).normal(size=60), np.full(60, 3.0)]
    X[:6, 0] = np.nan
    assert np.all(np.isfinite(StudentTMixture(1).fit(X).outlier_pvalues_))


def test_distances_of_medoids_far_beyond_all_squares_are_numbers():
    assert np.all(np.isfinite(distances_of_medoids(1e300)))


def distances_of_medoids(place):
    """As of a model whose file was edited."""
    model = KMedoids(2).fit(np.random.default_rng(0).normal(size=(20, 2)))
    model._fitted_model.params.centers[0] = place
    return model.transform(np.zeros((3, 2)))
