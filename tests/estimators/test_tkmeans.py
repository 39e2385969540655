"""What a person may rely on when KMeans is replaced by TKMeans."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.density_oracle import mixture_log_density
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, TKMeans
from tkmeans.datasets import make_contaminated
from tkmeans.stats import Params

X, LABELS, CENTERS = t_mixture(n=400, n_clusters=4, n_features=3, dof=4.0, scale=0.05)
BOTH = [TKMeans, FastTKMeans]


def fitted_params(model):
    return Params(model.cluster_centers_, model.scale_, model.dof_, np.log(model.cluster_weights_))


# ---- the answer --------------------------------------------------------------------


def test_five_per_cent_of_outliers_break_kmeans_and_not_tkmeans():
    rows, y = make_contaminated(n_clusters=6, random_state=0)
    genuine = y >= 0
    ours = TKMeans(6, random_state=0).fit(rows)
    theirs = KMeans(6, n_init=10, random_state=0).fit(rows)
    assert adjusted_rand_score(y[genuine], ours.labels_[genuine]) > 0.99
    assert adjusted_rand_score(y[genuine], theirs.labels_[genuine]) < 0.7


@pytest.mark.parametrize("cluster_weights", ["equal", "estimate", "auto"])
def test_cluster_weights_are_equal_or_the_clusters_shares(cluster_weights):
    sizes = [400, 100, 100]
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(10 * k, 1, (size, 2)) for k, size in enumerate(sizes)])
    model = TKMeans(3, cluster_weights=cluster_weights, random_state=0).fit(rows)
    assert model.cluster_weights_.sum() == pytest.approx(1)
    expected = [1 / 3] * 3 if cluster_weights == "equal" else [4 / 6, 1 / 6, 1 / 6]
    np.testing.assert_allclose(model.cluster_weights_, expected, atol=0.01)


def test_cluster_weights_auto_keeps_the_choice_with_the_better_icl():
    for rows in (X, make_contaminated(n_clusters=5, random_state=1)[0]):
        icl = {
            c: TKMeans(4, cluster_weights=c, random_state=0).fit(rows).icl(rows) for c in ("equal", "estimate", "auto")
        }
        assert icl["auto"] == pytest.approx(min(icl["equal"], icl["estimate"]))


def test_a_number_fixes_dof_and_an_estimated_dof_stays_within_its_bounds():
    assert TKMeans(4, dof=2.5, random_state=0).fit(X).dof_ == 2.5
    gaussian = np.random.default_rng(0).normal(size=(500, 2))
    assert 20 < TKMeans(1).fit(gaussian).dof_ <= 200
    cauchy = np.random.default_rng(0).standard_cauchy((500, 1)) ** 3
    assert TKMeans(1).fit(cauchy).dof_ == 1


# ---- labels and their numbers ---------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("max_iter", [1, 2, 5, 100])
def test_labels_are_what_predict_returns_for_the_same_rows(Estimator, max_iter):
    model = Estimator(4, max_iter=max_iter, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_array_equal(labels, model.predict_proba(X).argmax(axis=1))


@pytest.mark.parametrize("Estimator", BOTH)
def test_clusters_are_numbered_by_size_and_then_by_coordinates(Estimator):
    square = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) * 100.0
    rng = np.random.default_rng(0)
    rows = np.vstack(
        [corner + rng.normal(size=(size, 2)) for corner, size in zip(square, (10, 20, 20, 30), strict=True)]
    )
    for seed in range(5):
        model = Estimator(4, random_state=seed).fit(rows)
        assert list(np.bincount(model.labels_)) == [30, 20, 20, 10]
        np.testing.assert_allclose(model.cluster_centers_, square[[3, 1, 2, 0]], atol=2)


# ---- invariances ------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
def test_a_row_of_weight_two_is_that_row_twice_and_of_weight_zero_is_no_row(Estimator):
    times = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = Estimator(4, random_state=0).fit(X, sample_weight=times)
    repeated = Estimator(4, random_state=0).fit(X.repeat(times, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-8)
    np.testing.assert_allclose(weighted.scale_, repeated.scale_, rtol=1e-8)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-8)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_array_equal(weighted.labels_[times > 0].repeat(times[times > 0]), repeated.labels_)


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e5, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e8])
def test_shifted_and_scaled_rows_give_shifted_and_scaled_clusters(Estimator, scale, offset):
    # The offset is in units of the data, so a double keeps eight of its digits at 1e8.
    plain = Estimator(4, random_state=0).fit(X)
    moved = Estimator(4, random_state=0).fit((X + offset) * scale)
    lost = 1e-7 if offset == 1e8 else 1e-9
    np.testing.assert_allclose(moved.cluster_centers_ / scale - offset, plain.cluster_centers_, rtol=0, atol=20 * lost)
    np.testing.assert_array_equal(moved.labels_, plain.labels_)
    np.testing.assert_allclose(moved.inertia_ / scale**2, plain.inertia_, rtol=10 * lost)
    if Estimator is TKMeans:
        np.testing.assert_allclose(moved.scale_ / scale**2, plain.scale_, rtol=10 * lost)
        np.testing.assert_allclose(moved.dof_, plain.dof_, rtol=100 * lost)
        np.testing.assert_allclose(moved.lower_bound_ + 3 * np.log(scale), plain.lower_bound_, rtol=lost)
        np.testing.assert_allclose(moved.outlier_pvalues_, plain.outlier_pvalues_, rtol=1e-4)


@pytest.mark.parametrize("Estimator", BOTH)
def test_the_order_of_rows_and_of_columns_does_not_change_the_clusters_of_tkmeans(Estimator):
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(3)
    plain = Estimator(4, random_state=0).fit(X)
    by_rows = Estimator(4, random_state=0).fit(X[rows])
    np.testing.assert_allclose(by_rows.cluster_centers_, plain.cluster_centers_, atol=1e-8)
    np.testing.assert_array_equal(by_rows.labels_, plain.labels_[rows])
    by_columns = Estimator(4, random_state=0).fit(X[:, columns])
    np.testing.assert_allclose(by_columns.cluster_centers_, plain.cluster_centers_[:, columns], atol=1e-4)


@pytest.mark.parametrize("Estimator", BOTH)
def test_the_number_of_threads_changes_no_bit_of_a_fit(Estimator):
    rows, _, _ = t_mixture(n=30_000, n_clusters=3, n_features=2)
    one, two, all_of_them = (Estimator(3, random_state=0, n_jobs=n).fit(rows) for n in (1, 2, -1))
    for other in (two, all_of_them):
        np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
        np.testing.assert_array_equal(one.labels_, other.labels_)
        assert one.lower_bounds_ == other.lower_bounds_
        np.testing.assert_array_equal(one.predict_proba(rows), other.predict_proba(rows))


@pytest.mark.parametrize("Estimator", BOTH)
def test_equal_random_states_give_equal_fits_and_copies_predict_alike(Estimator):
    model = Estimator(4, random_state=1).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, clone(model).fit(X).cluster_centers_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(model.fit(X[::-1]).fit(X).labels_, clone(model).fit(X).labels_)


# ---- what goes in and what comes out ------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
def test_a_fit_to_float32_rows_stays_float32_and_agrees_with_float64(Estimator):
    offset = 1000.0
    low, high = (Estimator(4, random_state=0).fit((X + offset).astype(dtype)) for dtype in ("f4", "f8"))
    assert low.cluster_centers_.dtype == np.float32
    for method in ("transform", "predict_proba", "robust_weights"):
        assert getattr(low, method)((X + offset).astype("f4")).dtype == np.float32
    np.testing.assert_allclose(low.cluster_centers_, high.cluster_centers_, atol=1e-3)
    assert np.mean(low.labels_ == high.labels_) > 0.99
    assert Estimator(4, random_state=0).fit((8 * X).round().astype(int)).cluster_centers_.dtype == np.float64


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("Estimator", BOTH)
def test_data_frames_go_in_with_their_names_and_come_out_on_request(Estimator, frame):
    table = frame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    model = Estimator(4, random_state=0).set_output(transform=frame.__module__.split(".")[0]).fit(table)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.labels_, Estimator(4, random_state=0).fit_predict(X))
    out = model.transform(table)
    assert isinstance(out, frame)
    assert list(out.columns) == [f"{Estimator.__name__.lower()}{k}" for k in range(4)]


@pytest.mark.parametrize("Estimator", BOTH)
def test_the_memory_layout_of_the_rows_does_not_change_the_fit_nor_the_fit_the_rows(Estimator):
    expected = Estimator(4, random_state=0).fit(X).cluster_centers_
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    read_only = X.copy()
    read_only.flags.writeable = False
    for rows in (np.asfortranarray(X), strided, read_only, X.tolist(), X.astype(">f8"), X.astype(object)):
        np.testing.assert_array_equal(Estimator(4, random_state=0).fit(rows).cluster_centers_, expected)
    np.testing.assert_array_equal(read_only, X)


def test_tkmeans_works_in_a_pipeline_inside_a_grid_search():
    pipeline = make_pipeline(StandardScaler(), TKMeans(random_state=0))
    search = GridSearchCV(pipeline, {"tkmeans__n_clusters": [1, 2, 4]}).fit(X)
    assert search.best_params_ == {"tkmeans__n_clusters": 4}


# ---- what it tells ------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
def test_transform_gives_euclidean_distances_and_inertia_their_squares(Estimator):
    model = Estimator(4, random_state=0).fit(X)
    expected = cdist(X, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.inertia_, (expected.min(axis=1) ** 2).sum(), rtol=1e-9)


@pytest.mark.parametrize("cluster_weights", ["equal", "estimate"])
def test_scores_and_criteria_follow_from_scipys_density(cluster_weights):
    model = TKMeans(4, cluster_weights=cluster_weights, random_state=0).fit(X)
    density = mixture_log_density(X, fitted_params(model))
    np.testing.assert_allclose(model.score_samples(X), density, rtol=0, atol=1e-9)
    weight = np.arange(len(X)) % 3
    np.testing.assert_allclose(model.score(X, sample_weight=weight), density @ weight / weight.sum(), rtol=1e-9)
    np.testing.assert_allclose(model.lower_bound_, density.mean(), rtol=1e-6)
    n_parameters = 4 * 3 + 2 + (3 if cluster_weights == "estimate" else 0)
    np.testing.assert_allclose(model.aic(X), -2 * density.sum() + 2 * n_parameters, rtol=1e-9)
    np.testing.assert_allclose(model.bic(X), -2 * density.sum() + np.log(len(X)) * n_parameters, rtol=1e-9)
    tau = model.predict_proba(X)
    entropy = stats.entropy(tau, axis=1).sum()
    np.testing.assert_allclose(model.icl(X), model.bic(X) + 2 * entropy, rtol=1e-9)


@pytest.mark.parametrize(("n_features", "dof"), [(1, 1.0), (2, 3.0), (7, 30.0)])
def test_tail_probabilities_of_rows_from_the_model_are_uniform(n_features, dof):
    rows, _, centers = t_mixture(n=4000, n_clusters=3, n_features=n_features, dof=dof, scale=1e-8, seed=1)
    model = TKMeans(3, dof=dof, init=centers).fit(rows)
    assert stats.kstest(model.outlier_pvalues(rows), "uniform").pvalue > 1e-3
    np.testing.assert_array_equal(model.outlier_pvalues(rows), model.outlier_pvalues_)


def test_rows_drawn_by_sample_follow_the_fitted_model():
    model = TKMeans(2, dof=5.0, cluster_weights="estimate", random_state=0)
    model.fit(
        np.vstack([t_mixture(n=900, n_clusters=1, seed=1)[0] - 50, t_mixture(n=300, n_clusters=1, seed=2)[0] + 50])
    )
    rows, labels = model.sample(20_000)
    assert rows.shape == (20_000, 3)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, [0.75, 0.25], atol=0.02)
    np.testing.assert_array_equal(model.predict(rows), labels)
    standard = (rows - model.cluster_centers_[labels]) / np.sqrt(model.scale_)
    assert stats.kstest(standard[:, 0], stats.t(5.0).cdf).pvalue > 1e-3
    assert stats.kstest(model.outlier_pvalues(rows), "uniform").pvalue > 1e-3


def test_robust_weights_are_near_zero_for_outliers_and_average_to_one():
    model = TKMeans(4, random_state=0, tol=1e-10).fit(X)
    assert model.robust_weights(X).mean() == pytest.approx(1, abs=1e-3)
    assert model.robust_weights(np.full((1, 3), 1e6)) < 1e-6


def test_lower_bounds_never_fall_from_the_start_to_lower_bound():
    model = TKMeans(4, cluster_weights="equal", random_state=0).fit(X)
    assert len(model.lower_bounds_) == model.n_iter_ + 1
    assert model.lower_bounds_[-1] == model.lower_bound_
    assert np.all(np.diff(model.lower_bounds_) >= 0)


def test_fast_tkmeans_has_no_density_and_scores_like_kmeans():
    model = FastTKMeans(4, random_state=0).fit(X)
    for name in ("bic", "aic", "icl", "score_samples", "sample", "outlier_pvalues"):
        assert not hasattr(model, name)
    assert model.score(X) == pytest.approx(-model.inertia_)
    assert model.score(X, sample_weight=np.full(len(X), 2.0)) == pytest.approx(-2 * model.inertia_)


def test_a_row_halfway_between_two_centres_has_the_label_that_predict_gives_it():
    side = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [1.0, 1.0]])
    for repeats in ((3, 3), (4, 3), (3, 4)):  # sizes decide the numbers of the clusters, not who gets the row between
        X = np.vstack(
            [np.repeat(side, repeats[0], axis=0), np.repeat(side + np.array([10.0, 0.0]), repeats[1], axis=0)]
        )
        X = np.vstack([X, [[6.0, 1.0], [6.0, 5.0], [6.0, -3.0]]])
        model = TKMeans(2, init=np.array([[1.0, 1.0], [11.0, 1.0]]), max_iter=1, dof=5.0, cluster_weights="equal")
        with pytest.warns(ConvergenceWarning):
            model.fit(X)
        np.testing.assert_array_equal(model.labels_, model.predict(X))
