"""k-medians and k-medoids against brute force and numpy's medians."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from support.model_inputs import t_mixture

from tkmeans.baselines import KMedians, KMedoids
from tkmeans.baselines.hard_assignment import weighted_medians

X, _, CENTERS = t_mixture(n=120, n_features=2, dof=5.0)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 31])
def test_weighted_medians_are_numpys_medians_of_repeated_rows(n):
    rng = np.random.default_rng(n)
    x, weight = rng.normal(size=(n, 3)), rng.integers(1, 4, n)
    repeated = np.repeat(x, weight, axis=0)
    np.testing.assert_allclose(weighted_medians(x, weight.astype(float)), np.median(repeated, axis=0), rtol=1e-15)


def test_every_centre_of_kmedians_is_the_median_of_its_cluster_and_every_row_goes_to_the_nearest():
    model = KMedians(4, random_state=0).fit(X)
    for k in range(4):
        np.testing.assert_allclose(model.cluster_centers_[k], np.median(X[model.labels_ == k], axis=0))
    np.testing.assert_array_equal(model.labels_, cdist(X, model.cluster_centers_, "cityblock").argmin(axis=1))
    nearest = cdist(X, model.cluster_centers_, "cityblock").min(axis=1)
    assert model.inertia_ == pytest.approx(nearest.sum()) == pytest.approx(-model.score(X))


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "sqeuclidean"])
@pytest.mark.parametrize("seed", range(4))
def test_kmedoids_with_swaps_finds_the_best_of_all_pairs_of_medoids(seed, metric):
    rows = np.random.default_rng(seed).normal(size=(25, 2))
    distances = cdist(rows, rows, metric)
    best = min(distances[:, list(pair)].min(axis=1).sum() for pair in combinations(range(25), 2))
    model = KMedoids(2, metric=metric, n_init=20, random_state=0).fit(rows)
    assert model.inertia_ == pytest.approx(best)


@pytest.mark.parametrize("weighted", [False, True])
def test_after_kmedoids_no_swap_of_a_medoid_lowers_the_inertia(weighted):
    weight = np.random.default_rng(0).integers(1, 5, len(X)).astype(float) if weighted else np.ones(len(X))
    model = KMedoids(5, random_state=0).fit(X, sample_weight=weight)
    distances = cdist(X, X)
    medoids = list(model.medoid_indices_)
    assert model.inertia_ == pytest.approx(weight @ distances[:, medoids].min(axis=1))
    for k in range(5):
        for row in range(len(X)):
            other = [*medoids[:k], row, *medoids[k + 1 :]]
            assert weight @ distances[:, other].min(axis=1) >= model.inertia_ * (1 - 1e-9)


def test_alternating_kmedoids_ends_with_the_medoid_of_every_cluster_as_its_centre():
    model = KMedoids(4, method="alternate", random_state=0).fit(X)
    for k in range(4):
        own = X[model.labels_ == k]
        np.testing.assert_array_equal(model.cluster_centers_[k], own[cdist(own, own).sum(axis=1).argmin()])


def test_medoids_are_rows_with_the_row_numbers_in_medoid_indices():
    for method in ("swap", "alternate"):
        model = KMedoids(4, method=method, random_state=0).fit(X)
        np.testing.assert_array_equal(X[model.medoid_indices_], model.cluster_centers_)


@pytest.mark.parametrize("model", [KMedians(3), KMedoids(3)], ids=["medians", "medoids"])
def test_baselines_start_from_given_centres_of_the_right_shape(model):
    model.set_params(init=CENTERS[:3]).fit(X)
    assert model.cluster_centers_.shape == (3, 2)
    with pytest.raises(ValueError, match=r"init must have shape \(3, 2\)"):
        model.set_params(init=CENTERS[:2]).fit(X)


def test_clusters_of_kmedians_are_numbered_by_size():
    sizes = np.bincount(KMedians(4, random_state=3).fit(X).labels_)
    assert np.all(np.diff(sizes) <= 0)


def test_kmedians_cut_short_by_max_iter_warns():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        KMedians(6, max_iter=1, init="random", n_init=1, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "great circle"}, "metric must be one of 'euclidean'"),
        ({"method": "pam"}, "method must be one of 'swap', 'alternate', got 'pam'"),
        ({"init": "robust"}, r"init must be one of 'k-means\+\+', 'random' or an array of centres"),
        ({"n_clusters": 1000}, "choose at most 120 clusters"),
    ],
)
def test_kmedoids_refuses_invalid_parameters_and_names_the_valid_ones(options, words):
    with pytest.raises(ValueError, match=words):
        KMedoids(**options).fit(X)


def distances_of_medoids(place):
    """As of a model whose file was edited."""
    model = KMedoids(2).fit(np.random.default_rng(0).normal(size=(20, 2)))
    model._fitted_model.params.centers[0] = place
    return model.transform(np.zeros((3, 2)))


@pytest.mark.parametrize("baseline", [KMedians, KMedoids])
def test_baselines_tell_of_clusters_without_rows(baseline):
    with pytest.warns(ConvergenceWarning, match="2 of 3 clusters hold hardly any or none of the 20 rows"):
        baseline(3, random_state=0).fit(np.ones((20, 2)))


def test_distances_of_medoids_far_beyond_all_squares_are_numbers():
    assert np.all(np.isfinite(distances_of_medoids(1e300)))
