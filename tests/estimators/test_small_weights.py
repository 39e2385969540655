"""Weights tell how much rows count beside each other; that they are small does not make rows few."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from support.thoroughness import thorough

from tkmeans import MiniBatchTKMeans, StudentTMixture, TKMeans, select_clusters
from tkmeans.datasets import make_contaminated

SIZES = (500, 30, 30)


def three_sizes(seed: int = 0, distance: float = 40.0):
    """One large cluster and two small ones."""
    y = np.repeat(np.arange(3), SIZES)
    centers = np.array([[0, 0], [distance, 0], [0, distance]])
    return centers[y] + np.random.default_rng(seed).normal(size=(len(y), 2)), y


@pytest.mark.parametrize("weight", [1e-6, *thorough(1 / sum(SIZES), 0.05, 0.5)])
@pytest.mark.parametrize("estimator", [TKMeans(3), StudentTMixture(3)])
def test_equal_weights_below_one_lead_to_the_clusters_and_outliers_without_weights(estimator, weight):
    X, y = three_sizes()
    plain = estimator.fit(X)
    labels, outliers = plain.labels_, plain.outliers(X)
    assert adjusted_rand_score(y, labels) == 1
    weighted = estimator.fit(X, sample_weight=np.full(len(X), weight))
    np.testing.assert_array_equal(weighted.labels_, labels)
    np.testing.assert_array_equal(weighted.outliers(X), outliers)


@pytest.mark.parametrize("weight", [1e-2, 1e-6])
@pytest.mark.parametrize("Estimator", [TKMeans, MiniBatchTKMeans, StudentTMixture])
def test_far_rows_are_outliers_however_small_the_weights_of_all_rows_are(Estimator, weight):
    X, y = make_contaminated(600, 3, outlier_fraction=0.04, random_state=0)
    weights = np.full(len(X), weight)
    np.testing.assert_array_equal(Estimator(3, random_state=0).fit(X, sample_weight=weights).outliers(X), y < 0)
    if Estimator is MiniBatchTKMeans:
        model = Estimator(3, random_state=0).partial_fit(X, sample_weight=weights)
        np.testing.assert_array_equal(model.outliers(X), y < 0)


@pytest.mark.parametrize("estimator", [TKMeans(3), StudentTMixture(3), StudentTMixture("auto")])
def test_weights_divided_by_their_sum_find_small_clusters_too(estimator):
    X, y = three_sizes(1)
    weight = np.random.default_rng(2).lognormal(size=len(X))
    assert adjusted_rand_score(y, estimator.fit(X, sample_weight=weight / weight.sum()).labels_) == 1


def test_the_number_of_clusters_does_not_depend_on_the_unit_of_small_weights():
    X, _ = three_sizes(2, 12.0)
    assert select_clusters(X, range(1, 6), sample_weight=np.full(len(X), 1 / len(X))).best == 3
