import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_t

from tkmeans.models.dof import BOUNDS, first_dof, least_dof, log_gamma_ratio, log_minus_digamma, solve_dof


@given(st.floats(-3, 8))
def test_log_minus_digamma_has_full_precision_at_any_argument(exponent):
    a = 10.0**exponent
    with mpmath.workdps(50):
        exact = mpmath.log(a) - mpmath.digamma(a)
    np.testing.assert_allclose(log_minus_digamma(a), float(exact), rtol=1e-13)


@given(st.floats(-2, 12), st.floats(-1, 3))
def test_the_log_gamma_ratio_has_full_precision_at_any_argument(exponent_a, exponent_b):
    a, b = 10.0**exponent_a, 10.0**exponent_b
    with mpmath.workdps(60):
        exact = mpmath.loggamma(mpmath.mpf(a) + mpmath.mpf(b)) - mpmath.loggamma(a) - b * mpmath.log(a)
    np.testing.assert_allclose(float(log_gamma_ratio(a, b)), float(exact), rtol=1e-12, atol=1e-12 * b)


@given(st.floats(BOUNDS[0] * 1.001, BOUNDS[1] * 0.999))
def test_solve_dof_returns_the_dof_that_the_nu_equation_was_made_from(nu):
    with mpmath.workdps(40):
        eta = float(-(mpmath.log(mpmath.mpf(nu) / 2) - mpmath.digamma(mpmath.mpf(nu) / 2)))
    np.testing.assert_allclose(solve_dof(eta), nu, rtol=1e-10)


@pytest.mark.parametrize(
    ("eta", "bound"), [(-100.0, BOUNDS[0]), (-1e-9, BOUNDS[1]), (0.0, BOUNDS[1]), (0.5, BOUNDS[1])]
)
def test_solve_dof_returns_the_nearer_bound_where_no_root_lies_within_them(eta, bound):
    assert solve_dof(eta) == bound


def test_the_papers_approximation_misses_the_root_of_the_nu_equation_that_solve_dof_finds():
    eta = -log_minus_digamma(1.5)
    assert abs(solve_dof(eta) - 3) < 1e-10
    assert abs(1 / -eta - 3) > 0.25


@pytest.mark.parametrize("n_features", [1, 2, 8, 32, 1000])
def test_the_first_dof_lets_no_row_weigh_more_than_nine_times_an_ordinary_one(n_features):
    nu = first_dof(n_features)
    assert nu == BOUNDS[0] or (nu + n_features) / nu == pytest.approx(9)
    assert (nu + n_features) / nu <= 9


@pytest.mark.parametrize(("n_clusters", "n_features", "n_rows"), [(4, 128, 288), (8, 50, 60), (15, 2, 5000)])
def test_with_the_least_dof_the_likelihood_falls_as_the_scale_vanishes(n_clusters, n_features, n_rows):
    nu = least_dof(n_clusters, n_features, n_rows)
    X = np.random.default_rng(0).standard_normal((n_rows, n_features))
    nearest = cdist(X, X[:n_clusters]).min(axis=1)  # every centre on a row

    def log_likelihood(scale):
        density = multivariate_t(np.zeros(n_features), scale * np.eye(n_features), df=nu)
        return np.sum(density.logpdf(nearest[:, None] * np.eye(n_features)[0]))

    assert 1 <= nu <= 200
    assert log_likelihood(1e-20) < log_likelihood(1e-15) < log_likelihood(1e-10)
