"""Rows of few values: equal rows, lattices and whole numbers have the same clusters in any unit, and no outliers."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tkmeans import MiniBatchTKMeans, StudentTMixture, TKMeans, select_clusters


def whole_numbers(spacing, spread, seed, n_clusters=3, p=1):
    y = np.repeat(np.arange(n_clusters), 100)
    rng = np.random.default_rng(seed)
    return np.round(spacing * y[:, None] + spread * rng.normal(size=(len(y), p))), y


# ---- clusters ------------------------------------------------------------------------------------


def answers_from_1_to_5():
    rng = np.random.default_rng(1)
    centers = rng.integers(1, 6, (3, 6))
    return np.clip(np.rint(centers[rng.integers(0, 3, 300)] + rng.normal(size=(300, 6))), 1, 5)


TWO_HEAPS = [((900, 100), 0.5), ((900, 100), 1), ((950, 50), 0.7), ((700, 300), 0.7), ((900, 100), 1.5), ((950, 50), 3)]


@pytest.mark.parametrize(("sizes", "spread"), TWO_HEAPS)
@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
def test_two_heaps_of_whole_numbers_are_two_clusters_without_outliers(estimator, sizes, spread, p):
    """They are 50 apart. A centre on each of two frequent numbers is no better, and no number of a heap is noise."""
    for seed in range(4):
        rng, y = np.random.default_rng(seed), np.repeat([0, 1], sizes)
        X = np.rint(50 * y[:, None] + spread * rng.normal(size=(len(y), p)))
        model = estimator(2).fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1
        assert np.mean(model.outliers(X)) < 0.01


RATES = {  # sizes, and means of counts
    "visits": ((800, 120, 80), [[0.2] * 4, [15, 1, 10, 0.2], [0.2, 20, 1, 15]]),
    "two claims": ((900, 100), [[0.3] * 2, [20] * 2]),
    "five claims": ((900, 100), [[0.3] * 5, [20] * 5]),
}


@pytest.mark.parametrize("kind", RATES)
def test_clusters_of_counts_are_found_beside_rows_of_hardly_any(kind):
    sizes, rates = RATES[kind]
    for seed in range(4):
        y = np.repeat(range(len(sizes)), sizes)
        X = np.random.default_rng(seed).poisson(np.array(rates)[y]).astype(float)
        assert adjusted_rand_score(y, TKMeans(len(sizes)).fit(X).labels_) > 0.95


def test_values_below_a_limit_that_are_set_to_it_make_no_cluster_of_their_own():
    for seed in range(4):
        y = np.repeat([0, 1], [400, 60])
        shares = np.clip(np.array([-0.05, 0.8])[y] + np.random.default_rng(seed).normal(0, 0.05, 460), 0, 1)
        assert adjusted_rand_score(y, TKMeans(2).fit(shares[:, None]).labels_) > 0.95


@pytest.mark.parametrize("unit", [1.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_the_scale_of_rounded_rows_is_not_below_the_variance_of_rounding(seed, unit):
    """Most rows equal their centre, where a t distribution without a least scale has a pole."""
    y = np.repeat(range(3), 200)
    X = np.round(np.random.default_rng(seed).normal(np.array([[0, 0], [5, 5], [0, 5]])[y], 0.6))
    model = TKMeans(3).fit(unit * X)
    assert model.scale_ >= unit**2 / 12 * (1 - 1e-9)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert model.n_iter_ < 20
    assert np.mean(model.outlier_pvalues_ < 0.01) < 0.02


@pytest.mark.parametrize("fitted", [TKMeans, StudentTMixture])
def test_the_unit_and_the_offset_change_no_cluster_of_rows_on_a_lattice(fitted):
    for seed in range(15 if fitted is TKMeans else 5):
        rows = np.random.default_rng(seed).integers(1, 6, (200, 3)).astype(float)  # answers from 1 to 5
        labels = fitted(4).fit(rows).labels_
        for same in (rows + 0.1, 0.1 * rows, 3 * rows - 7):
            assert adjusted_rand_score(labels, fitted(4).fit(same).labels_) > 0.999


@pytest.mark.parametrize(("unit", "offset", "digits"), [(0.01, 100, 2), (0.1, 1000, 1)])
@pytest.mark.filterwarnings("ignore")
def test_the_offset_and_the_unit_of_rounded_data_change_no_cluster_and_no_number_of_clusters(unit, offset, digits):
    Z = answers_from_1_to_5()
    moved = np.round(Z * unit + offset, digits)
    plain, other = (StudentTMixture(3, random_state=0).fit(rows) for rows in (Z, moved))
    clear = plain.predict_proba(Z).max(axis=1) > 0.6  # how EM ends decides about a row right between two clusters
    assert np.mean(clear) > 0.95
    np.testing.assert_array_equal(plain.labels_[clear], other.labels_[clear])
    assert select_clusters(Z, random_state=0).best == select_clusters(moved, random_state=0).best


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_clusters", [3, 7])
@pytest.mark.parametrize("others", ["none", "constant", "binary"])
def test_mixtures_find_groups_in_one_column_of_whole_numbers(seed, n_clusters, others):
    """Equal rows are joined before units are measured: a value is frequent by its rows, not among distinct ones."""
    X, y = whole_numbers(6, 0.3, seed, n_clusters)
    other = {"none": np.empty((len(y), 0)), "constant": np.ones((len(y), 1)), "binary": np.arange(len(y))[:, None] % 2}
    model = StudentTMixture(n_clusters).fit(np.hstack([X, other[others]]))
    assert adjusted_rand_score(y, model.labels_) == 1


def test_the_number_of_groups_in_one_column_of_whole_numbers_is_found():
    for seed in range(3):
        assert select_clusters(whole_numbers(20, 0.3, seed)[0], range(1, 7)).best == 3


# ---- outliers ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("fitted", [TKMeans, MiniBatchTKMeans, StudentTMixture])
@pytest.mark.parametrize("unit", [1e-7, 0.1, 1.0, 1e4])
def test_rows_that_equal_their_centre_are_no_outliers_in_any_unit(fitted, unit):
    for corners in ([[0, 0], [1, 0], [0, 1]], [[0, 0], [10, 0], [0, 10], [10, 10]]):
        rows = unit * np.repeat(np.array(corners, float), 20, axis=0)
        model = fitted(len(corners), random_state=0).fit(rows)
        assert not np.any(model.outliers(rows))
        assert np.min(model.predict(rows, outlier_label=-1)) == 0


def test_a_row_far_from_clusters_of_equal_rows_is_an_outlier():
    rows = np.repeat([[0.0, 0], [1, 0], [0, 1]], 20, axis=0)
    model = TKMeans(3).fit(rows)
    assert model.outliers([[0.5, 0.5], [1.0, 0.0]]).tolist() == [True, False]


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
@pytest.mark.parametrize("p", [1, 2])
def test_whole_numbers_beside_a_frequent_one_are_no_outliers(estimator, p):
    for seed in range(4):
        X, _ = whole_numbers(20, 0.4, seed, 2, p)
        assert not np.any(estimator(2).fit(X).outliers(X))


@pytest.mark.parametrize("p", [4, 6])
def test_rare_ones_in_rows_of_zeros_are_no_outliers(p):
    for seed in range(4):
        X = (np.random.default_rng(seed).random((300, p)) < 0.1).astype(float)
        assert not np.any(StudentTMixture(1).fit(X).outliers(X))
