"""Fits against `studenttmixture` (MIT), a mixture of t distributions by other people.

Where it is right: with the degrees of freedom fixed, and a shape for each component, it is plain EM for the same
likelihood, with a smaller regularisation. It estimates degrees of freedom per component by a few Newton
steps, which need not end at the maximum, so there only the likelihoods are compared, from one side.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_t
from support.model_inputs import t_mixture

from tkmeans import StudentTMixture

EMStudentMixture = pytest.importorskip("studenttmixture").EMStudentMixture

PLAIN = {"noise": False, "shrinkage": 0.0, "size_ratio": np.inf, "reg_covar": 1e-12, "tol": 1e-13, "max_iter": 5000}


def theirs(X, n_components, dof, *, fixed=True):
    model = EMStudentMixture(
        n_components=n_components, tol=1e-10, reg_covar=1e-10, max_iter=5000, df=dof, fixed_df=fixed, n_init=3
    )
    model.fit(X)
    return model


@pytest.mark.parametrize("dof", [1.5, 4.0, 30.0])
def test_one_component_with_fixed_dof_is_that_of_the_package_studenttmixture(dof):
    rng = np.random.default_rng(0)
    X = multivariate_t.rvs([1.0, -2.0], [[2.0, 0.6], [0.6, 0.5]], df=4, size=400, random_state=rng)
    ours = StudentTMixture(1, dof=dof, **PLAIN).fit(X)
    other = theirs(X, 1, dof)
    # Both stop when an iteration gains 1e-10 or less: a move of about 1e-5 widths.
    np.testing.assert_allclose(ours.means_, other.location, atol=1e-4)
    np.testing.assert_allclose(ours.covariances_[0], np.squeeze(other.scale), atol=1e-4)
    np.testing.assert_allclose(ours.score_samples(X), other.score_samples(X), atol=1e-4)


def test_well_separated_components_with_fixed_dof_are_those_of_the_package_studenttmixture():
    X, _, _ = t_mixture(n=600, n_clusters=3, n_features=2, dof=4.0, scale=0.02, seed=3)
    ours = StudentTMixture(3, dof=4.0, random_state=0, **PLAIN).fit(X)
    other = theirs(X, 3, 4.0)
    order = np.linalg.norm(ours.means_[:, None] - other.location, axis=2).argmin(axis=1)
    np.testing.assert_allclose(ours.means_, other.location[order], atol=1e-4)
    np.testing.assert_allclose(ours.weights_, other.mix_weights[order], atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X)[:, order], atol=1e-3)
    np.testing.assert_allclose(ours.score(X), other.score(X), atol=1e-6)


def test_a_mixture_with_estimated_dof_is_at_least_as_likely_as_that_of_the_package_studenttmixture():
    X = multivariate_t.rvs([0.0, 0.0], np.eye(2), df=3, size=500, random_state=np.random.default_rng(1))
    ours = StudentTMixture(1, **PLAIN).fit(X)
    other = theirs(X, 1, 4.0, fixed=False)
    assert ours.score(X) >= other.score(X) - 1e-9
    np.testing.assert_allclose(ours.dof_, other.degrees_of_freedom, rtol=0.05)
