"""Tails in many columns: what is as light as a Gaussian depends on the number of columns."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

from tkmeans import TKMeans
from tkmeans.models.dof import BOUNDS, LIGHTEST, most_dof


@pytest.mark.parametrize("p", [2, 20, 100, 400])
def test_p_values_of_new_rows_of_gaussian_clusters_are_uniform_in_any_number_of_columns(p):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(3000, p))
    X[:, 0] += 20 * rng.integers(0, 3, 3000)
    found = TKMeans(3).fit(X[:2000]).outlier_pvalues(X[2000:])
    for level in (0.05, 0.5, 0.95):  # the scale is estimated, too: a little more than chance may differ
        low, high = binom(1000, level).ppf([1e-4, 1 - 1e-4])
        assert low - 20 <= np.sum(found < level) <= high + 20


@pytest.mark.parametrize("p", [1, 2, 50, 100])
def test_the_lightest_tails_are_nearly_those_of_a_gaussian(p):
    rng = np.random.default_rng(0)
    d2 = chi2(p).rvs(200_000, random_state=rng) / (chi2(most_dof(p)).rvs(200_000, random_state=rng) / most_dof(p))
    assert np.var(d2) / chi2(p).var() == pytest.approx(1 + p / most_dof(p), abs=0.05)


def test_the_lightest_tails_are_bounded_in_few_and_in_very_many_columns():
    assert most_dof(1) == most_dof(2) == BOUNDS[1]
    assert most_dof(10_000) == LIGHTEST
