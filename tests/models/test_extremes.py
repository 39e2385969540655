"""Densities and trust at arguments where a formula written down plainly has no digits left, against mpmath."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincc, gammaln
from scipy.stats import chi2
from scipy.stats import f as f_distribution
from support.model_inputs import plain_frame

from tkmeans import TKMeans
from tkmeans.engines import native, reference
from tkmeans.fitted import tail_of_f
from tkmeans.models import Student
from tkmeans.models.dof import BOUNDS, log_gamma_ratio, log_minus_digamma, solve_dof
from tkmeans.stats import Block, Params


@pytest.mark.parametrize("a", [1e-6, 1e-3, 19.999, 20.0, 20.001, 1e8, 1e16, 1e150, 1e300])
def test_log_minus_digamma_is_mpmaths_at_extreme_arguments(a):
    with mpmath.workdps(700):  # the two logarithms agree in 300 digits
        exact = mpmath.log(a) - mpmath.digamma(a)
    np.testing.assert_allclose(log_minus_digamma(a), float(exact), rtol=2e-15)


@pytest.mark.parametrize("a", [1e-6, 0.5, 19.999, 20.0, 20.001, 1e8, 1e16, 1e150, 1e300])
@pytest.mark.parametrize("b", [0.0, 0.5, 3.0, 500.0])
def test_the_log_gamma_ratio_is_mpmaths_at_extreme_arguments(a, b):
    with mpmath.workdps(700):
        A, B = mpmath.mpf(a), mpmath.mpf(b)
        exact = mpmath.loggamma(A + B) - mpmath.loggamma(A) - B * mpmath.log(A)
    # What is subtracted is b ln(a + b) in size, and below 20, where SciPy's function serves, ln Gamma itself.
    size = b * np.log(a + b + 2) + (np.abs(gammaln([a, a + b])).sum() if a < 20 else 0)
    np.testing.assert_allclose(float(log_gamma_ratio(a, b)), float(exact), rtol=1e-14, atol=1e-15 * size)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1))
def test_the_root_of_the_nu_equation_is_mpmaths(position):
    nu = BOUNDS[0] * (BOUNDS[1] / BOUNDS[0]) ** (0.001 + 0.998 * position)
    eta = -log_minus_digamma(nu / 2)
    with mpmath.workdps(40):
        exact = mpmath.findroot(lambda x: mpmath.log(x / 2) - mpmath.digamma(x / 2) + mpmath.mpf(eta), nu)
    np.testing.assert_allclose(solve_dof(eta), float(exact), rtol=1e-12)


def mp_t(d2, p, scale, dof):
    """ln of the t density, and the trust u, at a squared distance."""
    with mpmath.workdps(60):
        d2, p, scale, nu = map(mpmath.mpf, (d2, p, scale, dof))
        log_f = mpmath.loggamma((nu + p) / 2) - mpmath.loggamma(nu / 2) - p / 2 * mpmath.log(nu * mpmath.pi * scale)
        log_f -= (nu + p) / 2 * mpmath.log1p(d2 / (nu * scale))
        return float(log_f), float((nu + p) / (nu + d2 / scale))


@pytest.mark.parametrize("engine", [reference, native], ids=lambda engine: engine.NAME)
@pytest.mark.parametrize("dof", [1e-6, 0.5, 1.0, 7.0, 200.0, 1e6, 1e12])
@pytest.mark.parametrize("scale", [1e-20, 1e10])
@pytest.mark.parametrize("p", [1, 5])
def test_log_density_and_trust_are_mpmaths_from_the_centre_to_the_horizon(engine, dof, scale, p):
    distances = np.array([0.0, 1e-150, 1e-20, 1e-8, 1e-3, 1.0, 3.0, 1e4, 1e16, 1e50, 1e90])
    X = np.zeros((len(distances), p))
    X[:, -1] = distances
    params = Params(np.zeros((1, p)), scale, dof, np.zeros(1))
    rows = engine.rows(Block(X, None, plain_frame(p)), params, Student().kernel(params))
    exact = np.array([mp_t(float(d) ** 2, p, scale, dof) for d in distances])
    # A rounding of the distance is one of (dof + p) d2 / (dof scale + d2) times that in the density.
    conditioning = (dof + p) * distances**2 / (dof * scale + distances**2)
    error = np.abs(rows.log_density - exact[:, 0])
    assert np.all(error <= 1e-13 * (1 + np.abs(exact[:, 0]) + conditioning))
    np.testing.assert_allclose(rows.trust, exact[:, 1], rtol=1e-12)


@pytest.mark.parametrize("dof", [0.5, 7.0, 0.999e6, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("p", [1, 2, 3, 40])
def test_tail_probabilities_are_those_of_the_f_distribution(p, dof):
    d2 = np.array([0.0, 1e-3, 0.7, 5.0, 30.0, 90.0])
    with mpmath.workdps(60):
        ratio = [mpmath.mpf(value) / dof for value in d2]
        exact = [
            mpmath.betainc(mpmath.mpf(dof) / 2, mpmath.mpf(p) / 2, 0, 1 / (1 + r), regularized=True) for r in ratio
        ]
    np.testing.assert_allclose(tail_of_f(p, dof, d2), np.array(exact, float), rtol=1e-9)


@pytest.mark.parametrize("dof", [1e15, 1e20, 1e100, 1e300])
def test_tail_probabilities_with_a_huge_dof_are_those_of_chi_squared(dof):
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = TKMeans(1, dof=dof).fit(X)
    d2 = ((X - model.cluster_centers_) ** 2).sum(axis=1) / model.scale_
    np.testing.assert_allclose(model.outlier_pvalues_, chi2(3).sf(d2), rtol=1e-12)  # they differ by about d2^2 / dof


@pytest.mark.parametrize("dof", [1.0, 3.0, 30.0, 200.0, 9e5])
@pytest.mark.parametrize("p", [1, 2, 3, 16, 100, 784, 2000])
def test_tail_probabilities_of_many_rows_are_those_of_one_row_to_eight_digits(p, dof):
    rng = np.random.default_rng(0)
    model = rng.chisquare(p, 4000) / (rng.chisquare(dof, 4000) / dof)
    d2 = np.concatenate([model, p * 10 ** rng.uniform(-12, 12, 2000), p * 10 ** rng.uniform(-1, 1, 4000), [0.0, 1e300]])
    near = betaincc(p / 2, dof / 2, d2 / dof / (1 + d2 / dof))  # there the F distribution of SciPy 1.14 loses digits
    alone = np.where(d2 < p, near, f_distribution(p, dof).sf(d2 / p))
    known = alone > 1e-300
    np.testing.assert_allclose(tail_of_f(p, dof, d2)[known], alone[known], rtol=1e-8)
    assert np.all(tail_of_f(p, dof, d2)[~known] < 1e-300)


def test_tail_probabilities_of_many_rows_with_holes_are_those_of_their_own_number_of_features():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(10_000) < 0.05, rng.choice([1.0, 2.0, np.nan], 10_000), 5.0)
    d2 = rng.chisquare(5, 10_000)
    np.testing.assert_allclose(tail_of_f(p, 7.0, d2), f_distribution(p, 7.0).sf(d2 / p), rtol=1e-8)
