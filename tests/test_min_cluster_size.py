"""The least size of a cluster: heaps of fewer rows are left out of the search, and are outliers."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import two_groups

from tkmeans import StudentTMixture, TKMeans

ESTIMATORS = (TKMeans, StudentTMixture)


def groups_and_heap(n_group=100, n_heap=24, seed=0):
    """Three groups, two of which touch, and far away a tight heap: labels 0 to 2, and -1."""
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(3 * n_group, 2)) + np.repeat([[0, 0], [4, 0], [0, 30]], n_group, axis=0)
    heap = [200.0, 90.0] + 0.01 * rng.normal(size=(n_heap, 2))
    return np.vstack([groups, heap]), np.repeat([0, 1, 2, -1], [n_group, n_group, n_group, n_heap])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_heap_is_a_cluster_by_default_and_outliers_if_clusters_must_have_more_rows(estimator):
    X, y = groups_and_heap()
    plain = estimator(3, bad_cells=False).fit(X)
    assert np.min(np.bincount(plain.labels_)) == 24
    model = estimator(3, bad_cells=False, min_cluster_size=25).fit(X)
    assert adjusted_rand_score(y[y >= 0], model.labels_[y >= 0]) > 0.85
    found = model.outliers(X)  # without a warning: the user knows of such heaps
    assert np.all(found[y == -1])
    assert np.mean(found[y >= 0]) < 0.01


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_heap_of_just_the_least_size_is_a_cluster(estimator):
    X, _ = groups_and_heap()
    plain, same = (estimator(3, min_cluster_size=least).fit(X) for least in (None, 24))
    np.testing.assert_array_equal(same.labels_, plain.labels_)
    np.testing.assert_array_equal(same.cluster_centers_, plain.cluster_centers_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_least_size_of_a_cluster_counts_weights(estimator):
    X, y = groups_and_heap()
    weight = np.where(y == -1, 3.0, 1.0)
    heavy = estimator(3, min_cluster_size=40).fit(X, sample_weight=weight)
    assert np.min(np.bincount(heavy.labels_)) == 24
    light = estimator(3, min_cluster_size=80).fit(X, sample_weight=weight)
    assert np.min(np.bincount(light.labels_)) >= 80


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_least_size_of_a_cluster_counts_all_rows_where_a_sample_is_searched(estimator):
    X, y = groups_and_heap(2500, 800)
    assert np.min(np.bincount(estimator(3).fit(X).labels_)) == 800
    model = estimator(3, min_cluster_size=1000).fit(X)
    assert adjusted_rand_score(y[y >= 0], model.labels_[y >= 0]) > 0.85


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_several_heaps_and_single_far_rows_are_left_out_one_after_the_other(estimator):
    X, y = groups_and_heap()
    far = np.array([[-500.0, 10.0], [90.0, -700.0]])
    X = np.vstack([X, np.repeat([[-300.0, -80.0], [60.0, 400.0]], 15, axis=0), far])
    model = estimator(3, bad_cells=False, min_cluster_size=50).fit(X)
    assert adjusted_rand_score(y[y >= 0], model.labels_[: len(y)][y >= 0]) > 0.85


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_least_size_that_not_all_clusters_can_have_is_refused(estimator):
    X, _ = groups_and_heap()
    with pytest.raises(ValueError, match="min_cluster_size is 40% of the rows, too much for each of 3 clusters"):
        estimator(3, min_cluster_size=130).fit(X)
    with pytest.raises(TypeError, match="min_cluster_size must be an integer of at least 1"):
        estimator(3, min_cluster_size=0.1).fit(X)


def test_the_warning_of_outliers_that_lie_together_names_rows_their_number_and_the_way_out():
    X, _ = groups_and_heap()
    model = TKMeans(3, bad_cells=False, init=np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 30.0]])).fit(X)
    with pytest.warns(UserWarning, match=r"24 rows, such as 300, 301, 302\): .*; .* min_cluster_size=25 keeps them so"):
        model.outliers(X)


# ---- messages ------------------------------------------------------------------------------------

X = two_groups()


def test_a_heap_below_the_least_size_of_a_cluster_is_no_missed_cluster():
    rng = np.random.default_rng(0)
    X = np.repeat([[-8, 6], [10, 2], [2, -2]], 200, axis=0) + rng.normal(size=(600, 2))
    X[:12] = [60, 60]
    with warnings.catch_warnings(action="error"):
        assert np.all(TKMeans(3, min_cluster_size=20).fit(X).outliers(X)[:12])


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
def test_a_least_size_beyond_all_rows_is_told_without_a_per_cent_of_millions(estimator):
    with pytest.raises(ValueError, match="min_cluster_size is more than all of the rows, too much for each of 2"):
        estimator(2, min_cluster_size=180_000_000).fit(X)
