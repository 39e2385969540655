"""Missing values: a row counts with the features it has, by the exact marginal."""

import numpy as np
import pytest
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from support.density_oracle import mixture_log_density
from support.model_inputs import t_mixture
from support.paper_data import benchmark_set

from tkmeans import FastTKMeans, TKMeans
from tkmeans.datasets import make_contaminated
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
