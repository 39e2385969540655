import tracemalloc

import numpy as np
import pytest
from sklearn.cluster import KMeans
from support.model_inputs import t_mixture

from tkmeans.metrics import adjusted_rand_score, centroid_index, clustering_mse, within_between_ratio

X = np.random.default_rng(0).normal(size=(200, 3))


def test_the_mse_of_kmeans_is_its_inertia_per_row():
    model = KMeans(4, n_init=1, tol=0, random_state=0).fit(X)
    assert clustering_mse(X, model.labels_) == pytest.approx(model.inertia_ / len(X))


def test_within_and_between_scatter_add_up_to_the_total_where_centres_are_means():
    model = KMeans(4, n_init=1, tol=0, random_state=0).fit(X)
    total = X.var(axis=0).sum()
    within = clustering_mse(X, model.labels_)
    ratio = within_between_ratio(X, model.labels_, model.cluster_centers_)
    assert ratio == pytest.approx(within / (total - within))


def test_clustering_mse_and_within_between_ratio_follow_their_formulas():
    labels = np.random.default_rng(1).integers(5, size=200)
    centers = np.random.default_rng(2).normal(size=(5, 3))
    mse = within = between = 0.0
    for k in range(5):
        own = X[labels == k]
        mse += sum(np.sum((x - own.mean(axis=0)) ** 2) for x in own)
        within += sum(np.sum((x - centers[k]) ** 2) for x in own)
        between += len(own) * np.sum((X.mean(axis=0) - centers[k]) ** 2)
    assert clustering_mse(X, labels) == pytest.approx(mse / 200)
    assert within_between_ratio(X, labels, centers) == pytest.approx(within / between)


def test_clusters_without_rows_do_not_change_clustering_metrics():
    labels = np.array([0, 0, 3, 3])
    rows = np.array([[0.0], [2.0], [10.0], [12.0]])
    assert clustering_mse(rows, labels) == 1.0
    assert within_between_ratio(rows, labels, [[1.0], [99.0], [-99.0], [11.0]]) == pytest.approx(1 / 25)


def test_the_within_between_ratio_of_equal_centres_is_infinite():
    assert within_between_ratio([[-1.0], [1.0]], [0, 1], [[0.0], [0.0]]) == np.inf


def test_clustering_metrics_refuse_labels_that_are_no_row_numbers_of_the_centres():
    with pytest.raises(ValueError, match="labels must be row numbers of centers, 0 to 1, got 0 to 2"):
        within_between_ratio(X[:3], [0, 1, 2], X[:2])
    with pytest.raises(ValueError, match="labels must have an entry for each of the 200 rows"):
        clustering_mse(X, [0, 1])


def test_the_adjusted_rand_score_is_scikit_learns():
    from sklearn import metrics

    assert adjusted_rand_score is metrics.adjusted_rand_score


# ---- the centroid index ------------------------------------------------------------------


def orphans(mapped, other):
    """Centres of `other` that no centre of `mapped` is nearest to, one by one."""
    nearest = {min(range(len(other)), key=lambda j: np.sum((np.array(c) - other[j]) ** 2)) for c in mapped}
    return len(other) - len(nearest)


@pytest.mark.parametrize("seed", range(10))
def test_the_centroid_index_is_the_larger_number_of_orphans_of_both_directions(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(rng.integers(1, 9), 2)), rng.normal(size=(rng.integers(1, 9), 2))
    assert centroid_index(a, b) == centroid_index(b, a) == max(orphans(a, b), orphans(b, a))


def test_the_centroid_index_counts_the_centres_that_have_to_move():
    true = np.arange(10.0)[:, None] * 100
    for moved in range(5):
        found = true + 1
        found[:moved] = true[9] + np.arange(moved)[:, None]  # these clusters have no centre
        assert centroid_index(true, found) == moved
    assert centroid_index(true, true[::-1] + 3) == 0


def test_the_centroid_index_of_centres_with_different_features_is_an_error():
    with pytest.raises(ValueError, match="centers have 2 features and other 3"):
        centroid_index(np.zeros((2, 2)), np.zeros((2, 3)))


# ---- labels and memory ---------------------------------------------------------------------------

PLANE, PLANE_LABELS, PLANE_CENTERS = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


def test_labels_of_another_length_are_refused_by_name():
    for call in (
        lambda: clustering_mse(PLANE[:1], PLANE_LABELS),
        lambda: within_between_ratio(PLANE[:1], PLANE_LABELS, PLANE_CENTERS),
    ):
        with pytest.raises(ValueError, match="labels must have an entry for each of the 1 rows of X, got 120"):
            call()


def test_the_mean_squared_error_of_many_clusters_takes_memory_by_rows_and_clusters_not_their_product():
    labels = np.arange(8000) % 4000
    X = np.random.default_rng(0).normal(size=(8000, 2))
    tracemalloc.start()
    found = clustering_mse(X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    halves = (X[:4000] - X[4000:]) / 2  # two rows lie symmetrically around their mean
    assert found == pytest.approx(np.mean(np.sum(halves**2, axis=1)))
    assert peak < 8000 * 4000 / 8
