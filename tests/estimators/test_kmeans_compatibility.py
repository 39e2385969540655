"""What scikit-learn's own tests ask of KMeans, asked of us where it is not asked elsewhere (see CONTRIBUTING)."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, TKMeans

X, LABELS, CENTERS = t_mixture(n=400, n_clusters=4, n_features=3, dof=4.0, scale=0.05)
BOTH = [TKMeans, FastTKMeans]

pytestmark = pytest.mark.parametrize("Estimator", BOTH)


def short_fit(model, rows, **options):
    """A fit that may end before it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, **options)


def test_a_fit_with_a_tolerance_of_zero_ends_at_a_fixed_point(Estimator):
    model = Estimator(4, tol=0, max_iter=1000, random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ < 1000
    again = short_fit(Estimator(4, init=model.cluster_centers_, tol=0, max_iter=1000), X)
    np.testing.assert_allclose(again.cluster_centers_, model.cluster_centers_, atol=1e-6)


def test_a_fit_of_a_single_iteration_has_labels(Estimator):
    model = short_fit(Estimator(4, max_iter=1, random_state=0), X)
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_more_iterations_never_lower_the_objective(Estimator):
    start = X[:4]
    reached = [short_fit(Estimator(4, init=start, max_iter=n, tol=0), X).lower_bound_ for n in (1, 3, 10, 100)]
    assert all(later >= earlier - 1e-12 for earlier, later in itertools.pairwise(reached))


def test_a_fit_that_starts_from_the_centres_of_a_fit_ends_there(Estimator):
    model = Estimator(4, random_state=0).fit(X)
    again = Estimator(4, init=model.cluster_centers_).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_allclose(again.cluster_centers_, model.cluster_centers_, atol=1e-4)


def test_a_given_start_is_neither_changed_nor_shared_with_the_fit(Estimator):
    start, rows = CENTERS.copy(), X.copy()
    model = Estimator(4, init=start).fit(rows)
    np.testing.assert_array_equal(start, CENTERS)
    np.testing.assert_array_equal(rows, X)
    assert not np.shares_memory(model.cluster_centers_, start)


def test_an_array_given_as_init_is_one_start_and_a_warning_if_n_init_is_more(Estimator):
    with pytest.warns(RuntimeWarning, match="performing only one init in .* instead of n_init=10"):
        several = Estimator(4, init=CENTERS, n_init=10).fit(X)
    np.testing.assert_array_equal(several.cluster_centers_, Estimator(4, init=CENTERS).fit(X).cluster_centers_)


def test_sample_weights_of_one_give_the_unweighted_fit(Estimator):
    plain = Estimator(4, random_state=0).fit(X)
    weighted = Estimator(4, random_state=0).fit(X, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(weighted.labels_, plain.labels_)
    np.testing.assert_allclose(weighted.cluster_centers_, plain.cluster_centers_, atol=1e-12)


@pytest.mark.parametrize("factor", [0.25, 8.0])
def test_only_the_ratios_of_sample_weights_matter(Estimator, factor):
    weight = np.random.default_rng(0).integers(1, 5, len(X)).astype(float)
    fits = [Estimator(4, tol=1e-14, random_state=0).fit(X, sample_weight=w) for w in (weight, factor * weight)]
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    np.testing.assert_allclose(fits[0].cluster_centers_, fits[1].cluster_centers_, atol=1e-6)


def test_a_fit_does_not_change_the_sample_weights(Estimator):
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    before = weight.copy()
    Estimator(4, random_state=0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(weight, before)


def test_the_seeding_draws_no_row_of_weight_zero(Estimator):
    weight = np.r_[np.ones(4), np.zeros(len(X) - 4)]
    far_apart = np.vstack([CENTERS, X[4:]])
    for init in ("random", "k-means++", "robust"):
        model = short_fit(Estimator(4, init=init, n_init=1, random_state=0), far_apart, sample_weight=weight)
        distance = cdist(CENTERS, model.cluster_centers_).min(axis=1)
        np.testing.assert_allclose(distance, 0, atol=0.05)


def test_integer_rows_give_the_fit_of_the_same_rows_as_floats(Estimator):
    rows = np.round(20 * X).astype(int)
    fits = [Estimator(4, random_state=0).fit(kind) for kind in (rows, rows.astype(float), rows.astype(np.int16))]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.cluster_centers_, fits[0].cluster_centers_)


def test_predict_puts_every_centre_into_its_own_cluster(Estimator):
    model = Estimator(4, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(model.cluster_centers_), np.arange(4))


def test_predict_does_not_change_the_centres(Estimator):
    for dtype in (np.float32, np.float64):
        model = Estimator(4, random_state=0).fit(X.astype(dtype))
        before = model.cluster_centers_.copy()
        model.predict(X.astype(dtype) + 100)
        np.testing.assert_array_equal(model.cluster_centers_, before)


def test_distances_of_fit_transform_are_those_of_transform(Estimator):
    model = Estimator(4, random_state=0)
    np.testing.assert_array_equal(model.fit_transform(X), model.transform(X))
    np.testing.assert_allclose(model.transform(X), cdist(X, model.cluster_centers_), rtol=1e-9)


def test_a_start_far_from_all_rows_leaves_finite_centres(Estimator):
    start = np.vstack([CENTERS[:3], CENTERS[:1] + 1e6])
    model = short_fit(Estimator(4, init=start), X)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(np.abs(model.cluster_centers_ - X.mean(axis=0)) <= np.ptp(X, axis=0) + 1e6)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_rows_repeated_many_times_are_clustered_exactly(Estimator):
    rows = np.repeat(CENTERS, [60, 50, 40, 30], axis=0)
    model = short_fit(Estimator(4, random_state=0), rows)
    np.testing.assert_allclose(model.cluster_centers_, CENTERS, atol=1e-6)
    np.testing.assert_array_equal(np.bincount(model.labels_), [60, 50, 40, 30])


def test_features_out_are_named_by_estimator_and_cluster(Estimator):
    names = Estimator(4, random_state=0).fit(X).get_feature_names_out()
    assert names.tolist() == [f"{Estimator.__name__.lower()}{k}" for k in range(4)]


def test_more_random_starts_never_give_a_worse_fit(Estimator):
    def loss(model):
        if Estimator is TKMeans:
            return model.icl(X)
        return np.sum(model.predict_proba(X) * model.transform(X) ** 2)

    one, many = (loss(Estimator(4, init="random", n_init=n, random_state=0).fit(X)) for n in (1, 8))
    assert many <= one * (1 + 1e-9)
