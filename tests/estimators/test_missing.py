"""Missing values: a row counts with the features it has, by the exact marginal."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from support.density_oracle import mixture_log_density
from support.model_inputs import t_mixture, three_groups
from support.paper_data import benchmark_set

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans, select_clusters
from tkmeans.datasets import make_contaminated
from tkmeans.fitted import ENOUGH_COMPLETE_ROWS
from tkmeans.fitting.incomplete_rows import _unlike, complete
from tkmeans.sources import Sample
from tkmeans.stats import Params

X, LABELS, CENTERS = t_mixture(n=400, n_clusters=4, n_features=3, dof=4.0, scale=0.02)


def with_holes(X, fraction, seed=0):
    """Rows with values missing completely at random, but never all of a row."""
    missing = np.random.default_rng(seed).random(X.shape) < fraction
    missing[missing.all(axis=1), 0] = False
    return np.where(missing, np.nan, X)


HOLES = with_holes(X, 0.2)
WITH_EMPTY = HOLES.copy()
WITH_EMPTY[[5, 17]] = np.nan


def fitted_params(model):
    return Params(model.cluster_centers_, model.scale_, model.dof_, np.log(model.cluster_weights_))


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_the_log_likelihood_with_missing_values_is_that_of_scipys_marginals_in_any_unit(unit):
    rows = HOLES * unit
    model = TKMeans(4, init=CENTERS * unit).fit(rows)
    expected = mixture_log_density(rows, fitted_params(model))
    np.testing.assert_allclose(model.score_samples(rows), expected, rtol=0, atol=1e-10)
    assert model.lower_bound_ == pytest.approx(expected.mean(), rel=1e-6)
    assert np.all(np.diff(model.lower_bounds_) >= 0)


@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans])
def test_a_fifth_of_the_values_missing_changes_few_labels(Estimator):
    whole, partly = (Estimator(4, random_state=0).fit(rows) for rows in (X, HOLES))
    seen = ~np.isnan(HOLES).any(axis=1)
    assert adjusted_rand_score(partly.labels_[seen], whole.labels_[seen]) > 0.95
    assert np.all(np.isfinite(partly.cluster_centers_))
    assert np.all(np.isfinite(partly.predict_proba(HOLES)))


def fitted_to_rows_of_which_two_are_empty(Estimator=TKMeans, **options):
    with pytest.warns(UserWarning, match=r"^2 of 400 rows without a single observed value \(row 5, 17\): they"):
        return Estimator(4, random_state=0, **options).fit(WITH_EMPTY)


@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans])
def test_a_row_without_observed_values_gets_the_cluster_weights_as_probabilities_and_a_warning(Estimator):
    model = fitted_to_rows_of_which_two_are_empty(Estimator)
    np.testing.assert_allclose(model.predict_proba(WITH_EMPTY[[5, 17]]), [model.cluster_weights_] * 2, rtol=1e-12)
    assert np.all(model.transform(WITH_EMPTY[[5]]) == 0)


def test_a_row_without_observed_values_has_no_pvalue_and_is_no_outlier():
    model = fitted_to_rows_of_which_two_are_empty(cluster_weights="estimate")
    expected = np.zeros(400, dtype=bool)
    expected[[5, 17]] = True
    np.testing.assert_array_equal(np.isnan(model.outlier_pvalues_), expected)
    np.testing.assert_array_equal(np.isnan(model.outlier_pvalues(WITH_EMPTY)), expected)
    for rule in ("strays", "tail"):
        assert not model.outliers(WITH_EMPTY, rule=rule)[expected].any()
    assert np.all(model.predict(WITH_EMPTY, outlier_label=-1)[expected] == model.cluster_weights_.argmax())
    np.testing.assert_allclose(model.score_samples(WITH_EMPTY[expected]), 0, atol=1e-12)
    entropy = stats.entropy(model.cluster_weights_)
    np.testing.assert_allclose(model.assignment_entropy(WITH_EMPTY[expected]), entropy, rtol=1e-12)


def test_a_row_without_observed_values_changes_no_estimate():
    kept = ~np.isnan(WITH_EMPTY).all(axis=1)
    with_them = fitted_to_rows_of_which_two_are_empty(cluster_weights="equal")
    without = TKMeans(4, random_state=0, cluster_weights="equal").fit(WITH_EMPTY[kept])
    np.testing.assert_allclose(with_them.cluster_centers_, without.cluster_centers_, atol=1e-5)
    assert with_them.scale_ == pytest.approx(without.scale_, rel=1e-4)
    np.testing.assert_array_equal(with_them.outliers(WITH_EMPTY)[kept], without.outliers(WITH_EMPTY[kept]))


def test_tail_probabilities_of_rows_with_missing_values_are_uniform():
    rows, _, centers = t_mixture(n=4000, n_clusters=2, n_features=4, dof=3.0, scale=1e-6, seed=2)
    rows = with_holes(rows, 0.3)
    pvalues = TKMeans(2, dof=3.0, init=centers).fit(rows).outlier_pvalues_
    assert stats.kstest(pvalues[~np.isnan(pvalues)], "uniform").pvalue > 1e-3


def test_a_weight_is_a_number_of_repetitions_for_rows_with_missing_values():
    times = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = TKMeans(4, random_state=0).fit(HOLES, sample_weight=times)
    repeated = TKMeans(4, random_state=0).fit(HOLES.repeat(times, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-8)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_engines_agree_on_rows_with_missing_values(engine):
    model = TKMeans(4, init=CENTERS, engine=engine).fit(HOLES)
    other = TKMeans(4, init=CENTERS, engine="reference").fit(HOLES)
    np.testing.assert_allclose(model.cluster_centers_, other.cluster_centers_, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_rows", "n_clusters", "n_features"), [(300, 4, 4), (600, 8, 6)])
def test_the_search_finds_the_clusters_where_few_rows_are_complete(n_rows, n_clusters, n_features, seed):
    rows, y = make_contaminated(n_rows, n_clusters, n_features, cluster_std=0.1, random_state=seed)
    holes = with_holes(rows, 0.4, seed)
    truth = np.array([rows[y == k].mean(axis=0) for k in range(n_clusters)])
    best = TKMeans(n_clusters, init=truth, cluster_weights="equal").fit(holes)
    found = TKMeans(n_clusters, random_state=seed, cluster_weights="equal").fit(holes)
    assert found.lower_bound_ > best.lower_bound_ - 0.01


def test_a_feature_without_observed_values_is_an_error_that_names_it():
    rows = HOLES.copy()
    rows[:, 1] = np.nan
    with pytest.raises(ValueError, match="feature 1 has no observed value in any row; drop it"):
        TKMeans(4).fit(rows)
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="feature 'age' has no observed value"):
        TKMeans(4).fit(pd.DataFrame(rows, columns=["height", "age", "weight"]))


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.4])
def test_dim032_is_clustered_perfectly_with_up_to_two_fifths_of_its_values_missing(fraction):
    rows, y = benchmark_set("dim032")
    model = TKMeans(16, random_state=0).fit(with_holes(rows, fraction))
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.parametrize("seed", range(2))
def test_on_s1_with_a_fifth_missing_tkmeans_beats_imputation_of_means(seed):
    rows, y = benchmark_set("S1")
    holes = np.where(np.random.default_rng(seed).random(rows.shape) < 0.2, np.nan, rows)
    with pytest.warns(UserWarning, match="rows without a single observed value"):
        ours = adjusted_rand_score(y, TKMeans(15, random_state=seed).fit_predict(holes))
    for other in (KMeans(15, n_init=10, random_state=seed), GaussianMixture(15, random_state=seed)):
        labels = other.fit_predict(SimpleImputer().fit_transform(holes))
        assert ours > adjusted_rand_score(y, labels) + 0.05


# ---- columns that a cluster never has ------------------------------------------------------------


def four_groups(n_features, distance):
    """Rows of four groups, all in the first two columns; the last column was not measured in the last group."""
    centers = np.zeros((4, n_features))
    centers[:, :2] = distance * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    y = np.repeat(range(4), 100)
    X = centers[y] + np.random.default_rng(0).normal(size=(400, n_features))
    X[y == 3, -1] = np.nan
    return X, y, centers


@pytest.mark.parametrize("fitted", [TKMeans, StudentTMixture, MiniBatchTKMeans, "k-means++"])
@pytest.mark.parametrize(("n_features", "distance"), [(3, 20), (8, 10)])
def test_a_cluster_in_which_a_column_was_never_observed_is_found(fitted, n_features, distance):
    X, y, _ = four_groups(n_features, distance)
    model = TKMeans(4, init=fitted, n_init=10, random_state=0) if isinstance(fitted, str) else fitted(4, random_state=0)
    labels = model.fit(X).predict(X)
    assert adjusted_rand_score(y, labels) > 0.95
    assert np.mean(model.outliers(X)[y == 3]) < 0.1


def test_a_fit_without_a_column_in_one_cluster_is_as_good_as_one_from_the_true_centres():
    X, _, centers = four_groups(3, 20)
    assert TKMeans(4).fit(X).lower_bound_ > TKMeans(4, init=centers).fit(X).lower_bound_ - 1e-3


def test_a_choice_of_k_counts_a_cluster_in_which_a_column_was_never_observed():
    X, y = make_contaminated(400, 4, 3, random_state=1)
    X[y == 0, 0] = np.nan
    assert select_clusters(X, range(1, 8)).best == 4


def test_holes_here_and_there_leave_the_complete_rows_as_the_sample():
    X, _ = make_contaminated(400, 4, 3, outlier_fraction=0.0, random_state=1)
    rows = X.copy()
    rows[::3, 1] = np.nan
    whole = complete(Sample(rows, np.ones(400)), 4, rows)
    np.testing.assert_array_equal(whole.X, X[~np.isnan(rows).any(axis=1)])


# ---- weights of rows with holes ------------------------------------------------------------------


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


# ---- rows that hold nothing, or hardly anything --------------------------------------------------

PLANE, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


def test_rows_without_any_value_do_not_change_the_numbers_of_the_clusters():
    rows = np.vstack([PLANE, np.full((300, 2), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours = TKMeans(3, random_state=0).fit(rows)
    theirs = TKMeans(3, random_state=0).fit(PLANE)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-3)
    assert np.mean(ours.predict(PLANE) == theirs.labels_) > 0.98  # rows between clusters may change sides


def test_a_nan_that_signals_is_a_missing_value_like_any_other():
    signalling = np.frombuffer(np.uint64(0x7FF0_0000_0000_0001).tobytes(), np.float64)[0]
    rows, quiet = PLANE.copy(), PLANE.copy()
    rows[3, 1], quiet[3, 1] = signalling, np.nan
    model = TKMeans(3, random_state=0).fit(rows)
    assert np.array_equal(model.cluster_centers_, TKMeans(3, random_state=0).fit(quiet).cluster_centers_)
    assert np.array_equal(model.predict(rows), model.predict(quiet))


def test_a_single_complete_row_is_compared_with_rows_with_holes_without_a_warning_of_numpy():
    X = np.array([[0.0, np.nan], [np.nan, 9.0], [9.0, 9.0], [np.nan, np.nan]])
    with warnings.catch_warnings(action="error"):
        found = _unlike(Sample(X, np.ones(4)), np.array([False, False, True, False]))
    assert not np.any(found)
