"""StudentTMixture, seen from outside."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_t, t
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from support.paper_data import benchmark_set

from tkmeans import StudentTMixture, load, save

TYPES = ("full", "tied", "diag", "spherical")
SHAPES = np.array([[[1.0, 0.8], [0.8, 1.0]], [[0.3, 0.0], [0.0, 2.0]]])


def ellipses(n=3000, dof=(3.0, 3.0), seed=0, centers=((0, 0), (8, 2)), weights=(0.6, 0.4), matrices=SHAPES):
    rng = np.random.default_rng(seed)
    y = rng.choice(2, n, p=weights)
    X = np.empty((n, 2))
    for k in range(2):
        own = y == k
        X[own] = multivariate_t.rvs(centers[k], matrices[k], df=dof[k], size=own.sum(), random_state=rng)
    return X, y


@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_recovers_the_parameters_that_rows_were_drawn_with(seed):
    X, _ = ellipses(n=20000, dof=(3.0, 8.0), seed=seed)
    model = StudentTMixture(2, shared_dof=False, noise=False, random_state=0).fit(X)
    np.testing.assert_allclose(model.means_, [[0, 0], [8, 2]], atol=0.08)
    np.testing.assert_allclose(model.weights_, [0.6, 0.4], atol=0.02)
    np.testing.assert_allclose(model.covariances_, SHAPES, atol=0.12)
    np.testing.assert_allclose(model.dof_, [3, 8], rtol=0.25)


def test_a_mixture_with_shared_dof_has_one_dof_for_all_components():
    X, _ = ellipses(n=5000)
    model = StudentTMixture(2, noise=False, random_state=0).fit(X)
    assert model.dof_[0] == model.dof_[1] == pytest.approx(3.0, rel=0.15)


@pytest.mark.parametrize("kind", TYPES)
def test_score_samples_of_a_mixture_is_scipys_density_of_its_fitted_attributes(kind):
    X, _ = ellipses(n=400)
    plain = {"noise": False, "shrinkage": 0.0, "reg_covar": 0.0}
    model = StudentTMixture(2, covariance_type=kind, random_state=0, **plain).fit(X * [1, 1000] + [1e4, 0])
    Z = X[:50] * [1, 1000] + [1e4, 0]
    density = 0
    for k in range(2):
        matrix = {
            "full": lambda k=k: model.covariances_[k],
            "tied": lambda: model.covariances_,
            "diag": lambda k=k: np.diag(model.covariances_[k]),
            "spherical": lambda k=k: model.covariances_[k] * np.eye(2),
        }[kind]()
        density = density + model.weights_[k] * multivariate_t.pdf(Z, model.means_[k], matrix, df=model.dof_[k])
    np.testing.assert_allclose(model.score_samples(Z), np.log(density), rtol=1e-8)
    assert model.score(X * [1, 1000] + [1e4, 0]) == pytest.approx(model.lower_bound_, rel=1e-6)


def test_attributes_of_a_mixture_have_the_shapes_of_scikit_learns_gaussian_mixture():
    X, _ = ellipses(n=300)
    for kind in TYPES:
        theirs = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        ours = StudentTMixture(3, covariance_type=kind, random_state=0).fit(X)
        for name in ("means_", "weights_", "covariances_"):
            assert getattr(ours, name).shape == getattr(theirs, name).shape


def test_information_criteria_of_a_mixture_count_the_parameters_of_a_gaussian_one_and_the_dofs():
    X, _ = ellipses(n=300)
    for kind in TYPES:
        theirs = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)._n_parameters()
        for options, extra in (({"dof": 5.0}, 0), ({}, 1), ({"shared_dof": False}, 3)):
            ours = StudentTMixture(3, covariance_type=kind, noise=False, random_state=0, **options).fit(X)
            log_likelihood = ours.score(X) * len(X)
            assert ours.aic(X) == pytest.approx(-2 * log_likelihood + 2 * (theirs + extra))
            assert ours.bic(X) == pytest.approx(-2 * log_likelihood + np.log(300) * (theirs + extra))
    tau = ours.predict_proba(X)
    assert ours.icl(X) == pytest.approx(ours.bic(X) - 2 * np.sum(tau * np.log(tau)))


def test_heavy_tails_break_a_gaussian_mixture_and_not_a_student_t_mixture():
    ours, theirs = [], []
    for seed in range(5):
        X, y = ellipses(n=1000, dof=(1.5, 1.5), seed=seed)
        ours.append(adjusted_rand_score(y, StudentTMixture(2, means_init=[[0, 0], [8, 2]]).fit_predict(X)))
        gaussian = GaussianMixture(2, means_init=[[0, 0], [8, 2]], random_state=0)
        theirs.append(adjusted_rand_score(y, gaussian.fit_predict(X)))
    assert min(ours) > 0.7
    assert np.mean(ours) > np.mean(theirs) + 0.3


@pytest.mark.parametrize("kind", TYPES)
def test_a_mixture_of_features_in_other_units_is_the_same_mixture(kind):
    X, _ = ellipses(n=500)
    unit, origin = ([1e-6, 1e6], [3.0, -1e8]) if kind != "spherical" else ([1e3, 1e3], [3.0, -1e5])
    plain = StudentTMixture(2, covariance_type=kind, tol=1e-9, random_state=0).fit(X)
    other = StudentTMixture(2, covariance_type=kind, tol=1e-9, random_state=0).fit(X * unit + origin)
    np.testing.assert_allclose((other.means_ - origin) / unit, plain.means_, atol=1e-3)  # another start
    np.testing.assert_array_equal(other.predict(X * unit + origin), plain.predict(X))


@pytest.mark.parametrize("kind", TYPES)
def test_a_mixture_of_rows_on_a_line_and_repeated_rows_is_finite(kind):
    line = np.linspace(0, 1, 40)[:, None] * [1, 2, 3]
    spot = np.tile([[5.0, 5.0, 5.0]], (40, 1))
    X = np.vstack([line, spot])
    model = StudentTMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert np.all(np.isfinite(model.score_samples(X)))
    assert np.all(np.isfinite(model.covariances_))
    assert len(np.unique(model.predict(spot))) == 1


def test_a_constant_feature_leaves_a_mixture_sound():
    X, y = ellipses(n=300)
    X = np.column_stack([X, np.full(300, 7.0)])
    model = StudentTMixture(2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.predict(X)) > 0.8


def test_a_row_at_1e300_does_not_change_the_components_of_a_mixture():
    X, y = ellipses(n=300)
    X = np.vstack([X, [[1e300, -1e300]]])
    model = StudentTMixture(2, means_init=[[0, 0], [8, 2]]).fit(X)
    assert adjusted_rand_score(y, model.predict(X)[:-1]) > 0.8
    assert model.robust_weights(X)[-1] < 1e-50


def test_the_order_of_the_rows_does_not_change_a_mixture():
    X, _ = ellipses(n=400)
    order = np.random.default_rng(0).permutation(len(X))
    a = StudentTMixture(2, random_state=0).fit(X)
    b = StudentTMixture(2, random_state=0).fit(X[order])
    np.testing.assert_allclose(a.means_, b.means_, atol=1e-9)
    np.testing.assert_array_equal(a.labels_[order], b.labels_)


@pytest.mark.parametrize("kind", TYPES)
def test_transform_of_a_mixture_is_the_mahalanobis_distance_of_scipy_to_each_component(kind):
    X, _ = ellipses(n=300)
    model = StudentTMixture(2, covariance_type=kind, random_state=0).fit(X)
    full = {
        "full": lambda: model.covariances_,
        "tied": lambda: [model.covariances_] * 2,
        "diag": lambda: [np.diag(variances) for variances in model.covariances_],
        "spherical": lambda: [variance * np.eye(2) for variance in model.covariances_],
    }[kind]()
    pairs = zip(model.means_, full, strict=True)
    expected = [cdist(X, mean[None], "mahalanobis", VI=np.linalg.inv(covariance))[:, 0] for mean, covariance in pairs]
    np.testing.assert_allclose(model.transform(X), np.transpose(expected), rtol=1e-9)


def test_labels_of_a_fitted_mixture_are_its_predictions():
    X, _ = ellipses(n=300)
    model = StudentTMixture(2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_samples_are_drawn_from_the_fitted_mixture():
    X, _ = ellipses(n=3000, dof=(5.0, 5.0))
    for kind in TYPES:
        model = StudentTMixture(2, covariance_type=kind, random_state=0).fit(X)
        Z, labels = model.sample(20000)
        again = StudentTMixture(2, covariance_type=kind, random_state=0).fit(Z)
        np.testing.assert_allclose(again.means_, model.means_, atol=0.1)
        np.testing.assert_allclose(again.covariances_, model.covariances_, atol=0.15)
        np.testing.assert_allclose(np.bincount(labels) / 20000, model.weights_, atol=0.02)


def test_a_mixture_cut_short_by_max_iter_warns():
    X, _ = ellipses(n=300)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        StudentTMixture(3, max_iter=1, tol=0.0, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1 or \"auto\", got 0"),
        ({"covariance_type": "round"}, "covariance_type must be one of 'full', 'tied', 'diag', 'spherical'"),
        ({"dof": -1.0}, "dof must be a positive number"),
        ({"reg_covar": -1.0}, "reg_covar must be a number of at least 0"),
        ({"size_ratio": 0.5}, "size_ratio must be at least 1, or inf for no bound, got 0.5"),
        ({"noise": "yes"}, "noise must be one of 'auto', True or False, got 'yes'"),
        ({"shrinkage": -1.0}, "shrinkage must be a number of at least 0"),
        ({"init_params": "t-k-means"}, "init_params must be one of 'robust', 'kmeans', 'k-means"),
        ({"weights_init": [0.5, 0.6], "n_components": 2}, "weights_init by its sum"),
        ({"precisions_init": [[1.0]], "n_components": 2}, "'full precision' should have the shape of"),
        ({"means_init": [[0.0, 0.0]], "n_components": 2}, "means_init must have shape"),
        ({"n_components": 500}, "choose at most 100 components"),
    ],
)  # fmt: skip
def test_a_mixture_refuses_invalid_parameters_and_names_the_valid_ones(options, words):
    X, _ = ellipses(n=100)
    with pytest.raises(ValueError, match=words):
        clone(StudentTMixture(**options)).fit(X)


def test_a_mixture_with_verbose_prints_its_iterations(capsys):
    X, _ = ellipses(n=100)
    StudentTMixture(2, verbose=1, random_state=0).fit(X)
    assert "[StudentTMixture] iteration 1" in capsys.readouterr().out


@pytest.mark.parametrize("unit", [1e-310, 1e200])
def test_a_mixture_refuses_rows_whose_squares_overflow_and_says_to_rescale(unit):
    rows = np.random.default_rng(0).normal(size=(60, 3)) * unit
    with pytest.raises(ValueError, match=r"the spread of X is .* unless it is between 1e-120 and 1e\+50; rescale X"):
        StudentTMixture(3).fit(rows)


# ---- noise ------------------------------------------------------------------------------------


def clusters_and_noise(seed=0, n_noise=60):
    X, y = ellipses(n=600, dof=(30.0, 30.0), seed=seed)
    noise = np.random.default_rng(seed).uniform(-80, 80, (n_noise, 2))
    return np.vstack([X, noise]), np.r_[y, np.full(n_noise, -1)]


def clusters_in_a_box_of_noise():
    rng = np.random.default_rng(0)
    centers = np.array([[x, y] for x in (-6, 0, 6) for y in (-6, 0, 6)])
    return np.vstack([(rng.normal(size=(100, 9, 2)) + centers).reshape(-1, 2), rng.uniform(-10, 10, size=(300, 2))])


@pytest.mark.parametrize("box", [False, True])
def test_score_samples_of_a_mixture_with_noise_is_scipys_density_plus_that_of_the_noise(box):
    X = clusters_in_a_box_of_noise() if box else clusters_and_noise()[0]
    model = StudentTMixture(9 if box else 2, random_state=0).fit(X)
    assert model.noise_in_box_ == box
    parts = zip(model.weights_, model.means_, model.covariances_, model.dof_, strict=True)
    clusters = sum(w * multivariate_t.pdf(X, mean, matrix, df=dof) for w, mean, matrix, dof in parts)
    away = np.linalg.solve(np.linalg.cholesky(model.noise_covariance_), (X - model.noise_center_).T)
    r = np.linalg.norm(away, ord=np.inf if box else 2, axis=0)
    volume = (4 if box else np.pi) * np.sqrt(np.linalg.det(model.noise_covariance_))
    within, beyond = model._noise_shares
    falling = beyond / (2 * volume) * np.maximum(r, 1) ** -2.0 / (1 + np.log(np.maximum(r, 1))) ** 2
    noise = np.where(r <= 1, within / volume, falling)
    assert within + beyond == pytest.approx(model.noise_weight_)
    whole = (1 - model.noise_weight_) * clusters + noise
    np.testing.assert_allclose(model.score_samples(X), np.log(whole), rtol=1e-9)
    np.testing.assert_allclose(model.noise_probability(X), noise / whole, atol=1e-9)


def test_noise_in_a_box_is_saved_and_over_fewer_features_is_even_in_the_box_of_these(tmp_path):
    X = clusters_in_a_box_of_noise()
    model = StudentTMixture(9, random_state=0).fit(X)
    save(model, tmp_path / "model.json")
    same = load(tmp_path / "model.json")
    assert same.noise_in_box_
    np.testing.assert_array_equal(same.score_samples(X), model.score_samples(X))
    first = np.column_stack([X[:, 0], np.full(len(X), np.nan)])
    parts = zip(model.weights_, model.means_[:, 0], model.covariances_[:, 0, 0], model.dof_, strict=True)
    clusters = sum(w * t.pdf(X[:, 0], dof, mean, np.sqrt(variance)) for w, mean, variance, dof in parts)
    half = np.sqrt(model.noise_covariance_[0, 0])
    inside = np.abs(X[:, 0] - model.noise_center_[0]) < half
    whole = (1 - model.noise_weight_) * clusters + model._noise_shares[0] / (2 * half)
    np.testing.assert_allclose(model.score_samples(first)[inside], np.log(whole)[inside], rtol=1e-9)


def test_scattered_rows_are_noise_and_outliers_of_a_mixture_and_rows_of_clusters_are_not():
    for seed in range(3):
        X, y = clusters_and_noise(seed)
        model = StudentTMixture(2, random_state=0).fit(X)
        found = model.outliers(X)
        np.testing.assert_array_equal(found, model.noise_probability(X) > 0.5)
        assert np.mean(found[y == -1]) > 0.9
        assert np.mean(found[y >= 0]) < 0.01
        np.testing.assert_array_equal(model.predict(X, outlier_label=-1) == -1, found)
        assert adjusted_rand_score(y[y >= 0], model.labels_[y >= 0]) > 0.98


def test_a_mixture_without_noise_seeks_noise_and_outliers_by_distances():
    X, y = clusters_and_noise()
    model = StudentTMixture(2, noise=False, random_state=0).fit(X)
    assert model.noise_weight_ == 0
    assert not hasattr(model, "noise_center_")
    np.testing.assert_array_equal(model.noise_probability(X) > 0.5, model.outliers(X))
    assert np.mean(model.outliers(X)[y == -1]) > 0.8


def test_noise_that_would_take_most_rows_is_dropped_from_a_mixture():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 3)) * 0.2, rng.uniform(-30, 30, (300, 3))])
    assert StudentTMixture(2, random_state=0).fit(X).noise_weight_ <= 0.4
    assert StudentTMixture(2, noise=True, random_state=0).fit(X).noise_weight_ > 0.4  # unless it is asked for


# ---- what bounded sizes, the prior and the search are for -------------------------------------


def test_sizes_of_components_stay_within_the_ratio():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)) * 0.05, rng.normal(size=(200, 2)) * 10 + 60])
    for kind in ("full", "diag", "spherical"):
        for ratio in (1.0, 4.0, 25.0):
            model = StudentTMixture(2, covariance_type=kind, size_ratio=ratio, random_state=0).fit(X)
            shapes = model.covariances_ if kind == "full" else [np.diag(v * np.ones(2)) for v in model.covariances_]
            sizes = np.sqrt(np.linalg.det(shapes))
            assert sizes.max() / sizes.min() <= ratio * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_irises_and_ties_make_no_spurious_maximum(seed):
    X, y = load_iris(return_X_y=True)
    assert adjusted_rand_score(y, StudentTMixture(3, random_state=seed).fit_predict(X)) > 0.9


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_clusters_do_not_depend_on_a_linear_map_of_the_rows(kind):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(150, 3)) @ np.diag([1, 4, 0.5]) + c for c in ([0, 0, 0], [9, 0, 4], [0, 25, 4])])
    plain = StudentTMixture(3, covariance_type=kind, random_state=0).fit_predict(X)
    for _ in range(5):
        turned = X @ rng.normal(size=(3, 3)) + rng.normal(size=3)
        assert (
            adjusted_rand_score(plain, StudentTMixture(3, covariance_type=kind, random_state=0).fit_predict(turned))
            > 0.98
        )


def test_missing_values_of_a_mixture_are_not_filled_in():
    X, y = ellipses(n=1500, dof=(8.0, 8.0))
    X = np.column_stack([X, X @ [1.0, 1.0] + 0.1 * np.random.default_rng(0).normal(size=len(X))])
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    holes[np.isnan(holes).all(axis=1)] = 0.0
    model = StudentTMixture(2, random_state=0).fit(holes)
    whole = StudentTMixture(2, random_state=0).fit(X)
    np.testing.assert_allclose(model.means_, whole.means_, atol=0.25)
    assert adjusted_rand_score(y, model.labels_) > adjusted_rand_score(y, whole.labels_) - 0.1
    assert np.isnan(model.outlier_pvalues([[np.nan] * 3]))[0]
    np.testing.assert_allclose(model.predict_proba([[np.nan] * 3])[0], model.weights_)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, _ = ellipses(n=400)
    model = StudentTMixture(3, warm_start=True, max_iter=2, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X).lower_bound_
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert model.lower_bounds_[0] == pytest.approx(first, abs=1e-12)
    assert model.lower_bound_ >= model.lower_bounds_[0]


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("accelerate", [False, True])
def test_a_fit_in_two_parts_is_the_fit_in_one(kind, accelerate):
    X, _ = ellipses(n=300)
    options = {"covariance_type": kind, "accelerate": accelerate, "tol": 0.0}
    whole = StudentTMixture(3, max_iter=7, **options).fit(X)
    parts = pickle.loads(pickle.dumps(StudentTMixture(3, max_iter=3, warm_start=True, **options).fit(X)))
    parts.set_params(max_iter=4).fit(X)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-9)
    np.testing.assert_allclose(parts.covariances_, whole.covariances_, rtol=1e-9)
    np.testing.assert_allclose(parts.lower_bounds_, whole.lower_bounds_[3:], rtol=1e-12)


def test_a_warning_that_a_fit_did_not_converge_begins_as_that_of_a_gaussian_mixture():
    X, _ = ellipses(n=100)
    messages = []
    for model in (GaussianMixture(3, max_iter=1), StudentTMixture(3, max_iter=1, tol=0.0)):
        with pytest.warns(ConvergenceWarning) as caught:
            model.fit(X)
        messages.append(str(caught[0].message))
    assert messages[1].startswith(messages[0])


@pytest.mark.parametrize("kind", TYPES)
def test_the_number_of_parameters_is_that_of_a_gaussian_mixture_with_noise_and_tails(kind):
    X, _ = ellipses(n=200)
    theirs = GaussianMixture(2, covariance_type=kind).fit(X)._n_parameters()
    gaussian = StudentTMixture(2, covariance_type=kind, dof=1e6, noise=False).fit(X)
    assert gaussian._n_parameters() == theirs
    assert StudentTMixture(2, covariance_type=kind, noise=True).fit(X)._n_parameters() == theirs + 2
    assert gaussian.bic(X) == pytest.approx(np.log(len(X)) * theirs - 2 * len(X) * gaussian.score(X))


def test_precisions_are_the_inverses_of_the_scale_matrices_in_every_form():
    X, _ = ellipses(n=300)
    for kind in TYPES:
        model = StudentTMixture(2, covariance_type=kind, random_state=0).fit(X)
        if kind in ("full", "tied"):
            np.testing.assert_allclose(model.precisions_, np.linalg.inv(model.covariances_), rtol=1e-8)
            roots = model.precisions_cholesky_
            np.testing.assert_allclose(roots @ np.swapaxes(roots, -1, -2), model.precisions_, rtol=1e-8)
        else:
            np.testing.assert_allclose(model.precisions_ * model.covariances_, 1)
            np.testing.assert_allclose(model.precisions_cholesky_**2, model.precisions_)


@pytest.mark.parametrize(("name", "kind", "least"), [("S4", "full", 0.63), ("S3", "full", 0.72), ("A1", "tied", 0.97)])
def test_mixtures_of_the_papers_sets_have_no_spurious_maximum(name, kind, least):
    X, y = benchmark_set(name)
    model = StudentTMixture(len(np.unique(y)), covariance_type=kind, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) >= least


@pytest.mark.parametrize("scaler", [None, StandardScaler(), MinMaxScaler(), RobustScaler()], ids=str)
def test_unbalanced_clusters_are_found_in_any_scaling(scaler):
    X, y = benchmark_set("unbalance")
    X = X if scaler is None else scaler.fit_transform(X)
    assert adjusted_rand_score(y, StudentTMixture(8, random_state=0).fit_predict(X)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("deviations", [(1, 5), (3, 3), (5, 5)])
def test_a_small_wide_cluster_far_from_a_dense_one_is_a_cluster_and_not_noise(share, deviations):
    for n in (150, 1000):
        rng, m = np.random.default_rng(1), round(share * n)
        X = np.vstack([rng.normal(size=(n - m, 2)), rng.normal(size=(m, 2)) * deviations + [30, 0]])
        y = np.repeat([0, 1], [n - m, m])
        assert adjusted_rand_score(y, StudentTMixture(2, random_state=0).fit_predict(X)) > 0.9
