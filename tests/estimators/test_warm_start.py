"""Warm starts: a fit goes on from the one before, with the parameters and the rows of now."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture, three_groups

from tkmeans import StudentTMixture

X, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


def warm(**params):
    return StudentTMixture(3, warm_start=True, **params).fit(X)


# ---- parameters that were set since --------------------------------------------------------------


def test_a_warm_start_follows_a_dof_that_was_set_since():
    assert np.all(warm().set_params(dof=4.0).fit(X).dof_ == 4.0)


def test_a_warm_start_follows_noise_that_was_switched_off_or_on_since():
    far = np.vstack([X, np.random.default_rng(0).uniform(-50, 50, (12, 3))])
    model = StudentTMixture(3, warm_start=True, noise=True).fit(far)
    first = model.noise_weight_
    assert model.set_params(noise=False).fit(far).noise_weight_ == 0.0
    assert model.set_params(noise=True).fit(far).noise_weight_ == pytest.approx(first, rel=0.05)


def test_a_warm_start_follows_a_size_ratio_that_was_set_since():
    sizes = np.linalg.det(warm(noise=False).set_params(size_ratio=1.0).fit(X).covariances_)
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_warm_start_with_other_components_or_features_begins_anew(kind):
    for other in {"full", "tied", "diag", "spherical"} - {kind}:
        fresh = StudentTMixture(3, covariance_type=kind).fit(X).covariances_
        np.testing.assert_array_equal(
            warm(covariance_type=other).set_params(covariance_type=kind).fit(X).covariances_, fresh
        )
    assert warm(covariance_type=kind).set_params(n_components=2).fit(X).means_.shape == (2, 3)
    assert warm(covariance_type=kind).fit(X[:, :2]).means_.shape == (3, 2)


def test_a_warm_start_with_the_same_settings_never_loses_likelihood():
    model = StudentTMixture(3, warm_start=True, max_iter=1, shrinkage=0.0, noise=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        bounds = [model.fit(X).lower_bound_ for _ in range(6)]
    assert np.all(np.diff(bounds) >= -1e-9)


# ---- other rows ----------------------------------------------------------------------------------

GROUPS = np.repeat(range(3), 100)
SPOILED = three_groups((slice(10, 15), 2, 9999.0), (slice(200, 205), 0, -500.0))


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 1e6, 1e30])
def test_a_warm_start_on_the_same_rows_in_another_unit_begins_anew(unit):
    model = warm().fit(X * unit)
    np.testing.assert_array_equal(model.means_, StudentTMixture(3).fit(X * unit).means_)


def test_a_second_fit_with_a_warm_start_knows_the_bad_cells_of_the_first():
    model = StudentTMixture(3, warm_start=True).fit(SPOILED)
    cells, bound = model.find_bad_cells(SPOILED), model.lower_bound_
    model.fit(SPOILED)
    assert np.sum(cells) == 10
    np.testing.assert_array_equal(model.find_bad_cells(SPOILED), cells)
    assert adjusted_rand_score(GROUPS, model.labels_) == 1.0
    assert model.lower_bound_ >= bound


def test_a_warm_start_on_other_rows_finds_the_bad_cells_of_these():
    model = StudentTMixture(3, warm_start=True).fit(three_groups())
    assert not hasattr(model, "cell_bounds_")
    model.fit(SPOILED)
    np.testing.assert_array_equal(model.find_bad_cells(SPOILED), (SPOILED > 9000) | (SPOILED < -400))
    assert adjusted_rand_score(GROUPS, model.labels_) == 1.0
    assert not hasattr(model.fit(three_groups()), "cell_bounds_")
