"""Parameters of KMeans and MiniBatchKMeans, and the warnings that go with them."""

import numpy as np
import pytest
from sklearn.cluster import KMeans, MiniBatchKMeans
from support.model_inputs import t_mixture

from tkmeans import MiniBatchTKMeans, TKMeans

X, LABELS, CENTERS = t_mixture(n=400, n_clusters=4, n_features=3, dof=4.0, scale=0.05)


@pytest.mark.parametrize(("theirs", "ours"), [(KMeans, TKMeans), (MiniBatchKMeans, MiniBatchTKMeans)])
def test_every_parameter_of_scikit_learns_class_is_taken_with_its_default(theirs, ours):
    defaults, taken = theirs().get_params(), ours().get_params()
    own = {"init", "tol"}  # whose defaults are our own
    assert defaults.keys() <= taken.keys()
    assert [name for name, value in defaults.items() if name not in own and taken[name] != value] == []


@pytest.mark.parametrize(
    "model",
    [
        TKMeans(4, algorithm="elkan", copy_x=False),
        MiniBatchTKMeans(4, compute_labels=False, reassignment_ratio=0.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_parameters_without_a_meaning_here_change_nothing(model):
    plain = type(model)(4, random_state=0).fit(X)
    other = model.set_params(random_state=0).fit(X)
    np.testing.assert_array_equal(other.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(other.labels_, plain.labels_)


def test_an_algorithm_that_kmeans_does_not_know_is_refused():
    with pytest.raises(ValueError, match="algorithm must be one of 'lloyd', 'elkan'"):
        TKMeans(algorithm="full").fit(X)


def test_an_init_size_below_n_clusters_is_raised_with_a_warning():
    with pytest.warns(RuntimeWarning, match="init_size=2 should be larger than n_clusters=4"):
        assert MiniBatchTKMeans(4, init_size=2, random_state=0).fit(X).n_samples_seen_ == len(X)


def test_minibatches_fitted_as_a_whole_stop_earlier_with_a_larger_tol():
    fits = [MiniBatchTKMeans(4, init=CENTERS + 1, tol=tol).fit(X) for tol in (10.0, 1e-3, 1e-6)]
    n_iter = [fit.n_iter_ for fit in fits]
    assert n_iter == sorted(n_iter)
    assert n_iter[0] < n_iter[2]
