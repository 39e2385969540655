import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkmeans.models.dof import BOUNDS, solve_dof
from tkmeans.models.special import log_gamma_ratio, log_minus_digamma


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
def test_the_root_is_the_dof_that_the_equation_was_made_from(nu):
    with mpmath.workdps(40):
        eta = float(-(mpmath.log(mpmath.mpf(nu) / 2) - mpmath.digamma(mpmath.mpf(nu) / 2)))
    np.testing.assert_allclose(solve_dof(eta), nu, rtol=1e-10)


@pytest.mark.parametrize(
    ("eta", "bound"), [(-100.0, BOUNDS[0]), (-1e-9, BOUNDS[1]), (0.0, BOUNDS[1]), (0.5, BOUNDS[1])]
)
def test_without_a_root_within_the_bounds_the_nearer_bound_is_returned(eta, bound):
    assert solve_dof(eta) == bound


def test_the_papers_approximation_misses_the_root_that_we_find():
    eta = -log_minus_digamma(1.5)
    assert abs(solve_dof(eta) - 3) < 1e-10
    assert abs(1 / -eta - 3) > 0.25
