"""Batches of a stream: equal rows at its beginning, parameters that are set on the way, and how many are counted."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from support.model_inputs import t_mixture, two_groups

from tkmeans import MiniBatchTKMeans

# ---- equal rows at the beginning -----------------------------------------------------------------


def test_a_stream_that_begins_with_equal_rows_finds_the_clusters_of_those_that_follow():
    rng = np.random.default_rng(0)
    model = MiniBatchTKMeans(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal rows
        model.partial_fit(np.zeros((3000, 2)))
        for _ in range(8):
            model.partial_fit(np.vstack([rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + 10]))
    np.testing.assert_allclose(np.sort(model.cluster_centers_[:, 0]), [0, 10], atol=0.2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of one distinct row, and a scale near 0
def test_a_stream_that_begins_with_equal_rows_does_not_forget_them(container):
    rows = np.random.default_rng(0).normal(10, 1, size=(12_000, 2))
    model = MiniBatchTKMeans(2, random_state=0)
    for n in (3000, 6000, 9000):
        assert model.partial_fit(container(np.ones((3000, 2)))).n_samples_seen_ == n
    model.partial_fit(container(rows))
    assert model.n_samples_seen_ == 21_000
    away = np.sort(np.linalg.norm(model.cluster_centers_ - 1, axis=1))
    assert away[0] < 1e-3
    assert away[1] > 9
    assert len(set(model.predict([[1, 1], [9.5, 9.5]]))) == 2


def test_a_first_row_of_weight_zero_does_not_hide_equal_ones():
    model = MiniBatchTKMeans(2, init_size=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.partial_fit(np.ones((5, 2)), sample_weight=[0, 1, 1, 1, 1])
        for seed in range(3):
            model.partial_fit(np.random.default_rng(seed).normal(9, 0.1, size=(5, 2)))
    np.testing.assert_allclose(np.sort(model.cluster_centers_[:, 0]), [1, 9], atol=0.3)


# ---- parameters and counts -----------------------------------------------------------------------

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)
TWO_GROUPS = two_groups()


def test_a_stream_follows_a_dof_and_weights_that_were_set_since():
    stream = MiniBatchTKMeans(3).partial_fit(np.vstack([SPACE] * 20))
    assert stream.set_params(dof=3.0).partial_fit(SPACE).dof_ == 3.0
    np.testing.assert_allclose(stream.set_params(cluster_weights="equal").partial_fit(SPACE).cluster_weights_, 1 / 3)


def test_a_stream_counts_the_batches_that_it_has_learned_from():
    model = MiniBatchTKMeans(2, random_state=0)
    assert model.partial_fit(TWO_GROUPS).n_steps_ == 1
    assert model.partial_fit(TWO_GROUPS[:10]).n_steps_ == 2  # learned from as they come
    assert model.partial_fit(TWO_GROUPS).n_steps_ == 3  # searched anew
    stream = MiniBatchTKMeans(2, init_size=50, random_state=0)
    counts = [getattr(stream.partial_fit(TWO_GROUPS[i : i + 1]), "n_steps_", 0) for i in range(70)]
    assert counts == [0, *range(2, 71)]


def test_one_large_batch_of_a_stream_is_one_step():
    rows = np.tile(TWO_GROUPS, (12, 1)) + np.random.default_rng(1).normal(size=(12 * len(TWO_GROUPS), 3))
    model = MiniBatchTKMeans(2, init_size=100, batch_size=100, random_state=0).partial_fit(rows)
    assert (model.n_steps_, model.n_samples_seen_) == (1, len(rows))
    assert model.partial_fit(TWO_GROUPS).n_steps_ == 2
