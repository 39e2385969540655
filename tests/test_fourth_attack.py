"""What a fourth attack found, one test for each: sentences that were not true of tables that are quite ordinary."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tkmeans import MiniBatchTKMeans, StudentTMixture, TKMeans, select_clusters
from tkmeans.datasets import make_contaminated
from tkmeans.fitting.starts import complete
from tkmeans.sources import Sample

# ---- missing values ---------------------------------------------------------------------------


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
