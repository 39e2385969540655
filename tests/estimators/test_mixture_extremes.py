"""StudentTMixture at the ends of numbers: rows far away, few rows, offsets, and components without rows or width."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture

from tkmeans import StudentTMixture, load, save
from tkmeans.mixture_components import Components
from tkmeans.models.covariances import AxisAligned

# ---- rows far away -------------------------------------------------------------------------------

X, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


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


def test_distances_of_a_mixture_in_single_precision_are_numbers_however_far_a_row_is():
    rows = np.vstack([X, [[3e38, 3e38]]]).astype(np.float32)
    found = StudentTMixture(3, random_state=0).fit(rows[:-1]).transform(rows)
    assert found.dtype == np.float32
    assert np.all(np.isfinite(found))
    assert np.all(found[-1] > 1e38)


@pytest.mark.parametrize("p", [2, 12, 30])
def test_beside_noise_a_row_on_a_centre_counts_at_most_four_times_as_much_as_an_ordinary_one(p):
    rows, _, _ = t_mixture(n=400, n_clusters=2, n_features=p, dof=1.0, scale=0.001, seed=1)
    model = StudentTMixture(2).fit(rows)
    assert np.all(model.dof_ >= max(3.0, p / 3) - 1e-9)
    assert StudentTMixture(2, noise=False).fit(rows).dof_[0] < 3.0  # where there is no noise it is free


# ---- few rows and constant columns ---------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("n_rows", "n_components"), [(6, 1), (8, 1), (10, 2)])
@pytest.mark.filterwarnings("ignore")
def test_few_rows_in_a_plane_of_many_dimensions_are_fitted(n_rows, n_components):
    for seed in range(50):
        rows = np.random.default_rng(seed).normal(size=(n_rows, 2)) + np.repeat([[0], [3]], n_rows // 2, axis=0)
        model = StudentTMixture(n_components).fit(np.pad(rows, ((0, 0), (0, 2))))
        assert np.all(np.isfinite(model.means_))
        assert np.all(model.means_[:, 2:] == 0)


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


# ---- rounding ------------------------------------------------------------------------------------


def test_a_covariance_from_which_rounding_takes_all_digits_is_still_one():
    rows = [[5.390308083294175, 4.681450485306344, 7.594263610163585]]
    rows = np.array([*rows, [4.463220640000253, 4.443919764130477, 5.3411475374507456]])
    options = {"covariance_type": "tied", "dof": 4.0, "init_params": "kmeans", "shared_dof": False, "size_ratio": 1.0}
    found = StudentTMixture(**options, max_iter=20, reg_covar=1e-300, random_state=20251).fit(rows).covariances_
    deviations = np.sqrt(np.diag(found))
    assert np.linalg.eigvalsh(found / deviations / deviations[:, None]).min() > -1e-14


def test_the_frame_of_a_mixture_is_the_same_to_the_last_bit_in_whatever_order_the_components_are():
    rng = np.random.default_rng(0)
    for _ in range(20):
        centers, covariances = rng.normal(size=(6, 3)), rng.lognormal(0, 9, (6, 3))
        components = Components(centers, covariances, np.ones(6), np.full(6, 1 / 6), AxisAligned())
        turned = components.take(rng.permutation(6)).frame(np.float64)
        np.testing.assert_array_equal(components.frame(np.float64).origin, turned.origin)
        assert components.frame(np.float64).unit == turned.unit


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1e5), ("float32", 1e6), ("float64", 1e14)])
def test_mixtures_of_rows_with_an_offset_are_those_of_the_same_numbers_without_it(dtype, offset):
    y = np.repeat(np.arange(3), 200)
    for seed in range(4):
        X = np.array([[0, 0], [5, 0], [0, 5]])[y] + np.random.default_rng(seed).normal(size=(600, 2))
        stored = (X + offset).astype(dtype)
        model, same = (StudentTMixture(3).fit(rows) for rows in (stored, stored.astype(float) - offset))
        assert adjusted_rand_score(model.labels_, same.labels_) > 0.98
        np.testing.assert_allclose(model.covariances_, same.covariances_, rtol=0.03, atol=0.03)


# ---- many features -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["diag", "spherical"])
def test_a_mixture_parallel_to_the_axes_needs_no_matrices_of_many_features(shape):
    rows = np.random.default_rng(0).normal(size=(50, 5000)) + np.repeat([[0.0], [0.5]], 25, axis=0)
    tracemalloc.start()
    found = StudentTMixture(2, covariance_type=shape).fit(rows).labels_
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 5000**2  # a tenth of one matrix
    assert adjusted_rand_score(np.repeat([0, 1], 25), found) == 1
