"""A short shape: a variance for each feature, which all clusters share.

Copy this file to begin a shape of your own for `StudentTMixture`. A shape
tells EM how to whiten differences, what follows from the sums over rows, and
how to extrapolate. The search, noise, bounded sizes, missing values and the
outliers are there already.

The file runs as a test: `pytest new_shape.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from tkmeans import StudentTMixture
from tkmeans.models.covariances import SHAPES, AxisAligned
from tkmeans.shape_stats import ShapeStats
from tkmeans.stats import Array

OWN = AxisAligned()  # a variance for each feature and component

# ---- the shape ------------------------------------------------------


@final
@dataclass(frozen=True)
class SharedVariances(AxisAligned):
    """Clusters as long and as wide as each other, along the axes."""

    tied = True  # one shape for all components; EM pools their sums

    def of_matrices(self, matrices: Array, mass: Array) -> Array:
        """1. The most likely shapes (K, p) for scale matrices (K, p, p)."""
        variances = np.diagonal(matrices, axis1=1, axis2=2)  # (K, p)
        shared = np.average(variances, axis=0, weights=mass)
        return np.repeat(shared[None], len(mass), axis=0)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """2. For the BIC: one variance for each feature."""
        return n_features

    # 3. The rest is as if every component had variances of its own.

    def diagonal(self, variances: Array) -> Array:
        """One shape with these variances, (p,)."""
        return OWN.diagonal(variances)

    def whitening(
        self, covariances: Array, n_features: int
    ) -> tuple[Array, Array]:
        """Factors that make differences round, and ln det."""
        return OWN.whitening(covariances, n_features)

    def log_sizes(self, covariances: Array) -> Array:
        """The logarithm of |Sigma|^(1/p), (K,)."""
        return OWN.log_sizes(covariances)

    def around(self, scatter: Array, w: Array, step: Array) -> Array:
        """The sums around centres that lie `step` away."""
        return OWN.around(scatter, w, step)

    def squares(self, factors: Array, scatter: Array) -> Array:
        """The trace of each inverse shape times `scatter`, (K,)."""
        return OWN.squares(factors, scatter)

    def part(self, covariances: Array, features: Array) -> Array:
        """The shapes over some of the features: for missing values."""
        return OWN.part(covariances, features)

    def completed(
        self, stats: ShapeStats, covariances: Array, features: Array
    ) -> ShapeStats:
        """The expected sums over all features, where some are missing."""
        return OWN.completed(stats, covariances, features)

    def logarithm(self, covariances: Array) -> Array:
        """Numbers without constraints, to extrapolate with."""
        return OWN.logarithm(covariances)

    def exponential(self, logarithm: Array, like: Array) -> Array:
        """The way back."""
        return OWN.exponential(logarithm, like)


SHAPES["tied_diag"] = SharedVariances()

# ---- checks against independent oracles ------------------------------


def rows() -> tuple[Array, Array]:
    """Three clusters, long in the second feature; their labels."""
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
    centers = np.array([[0.0, 0.0], [9.0, 0.0], [18.0, 30.0]])
    return centers[labels] + rng.normal(size=(600, 2)) * [1, 6], labels


def nearly_gaussian() -> StudentTMixture:
    """Without noise, prior or heavy tails, so that oracles are simple."""
    return StudentTMixture(
        3,
        covariance_type="tied_diag",
        dof=1e6,
        noise=False,
        shrinkage=0.0,
        reg_covar=0.0,
        tol=1e-12,
        random_state=0,
    )


def test_the_shape_is_a_maximum_of_the_likelihood() -> None:
    """By SciPy's density: any other variances are less likely."""
    X, _ = rows()
    model = nearly_gaussian().fit(X)
    assert model.covariances_.shape == (2,)

    def log_likelihood(variances: Array) -> float:
        density = np.zeros(len(X))
        for share, center in zip(model.weights_, model.means_, strict=True):
            density += share * multivariate_normal(center, variances).pdf(X)
        return float(np.mean(np.log(density)))

    most = log_likelihood(model.covariances_)
    assert_allclose(model.score(X), most, rtol=1e-4)
    for change in [1.02, 1], [1 / 1.02, 1], [1, 1.02], [1, 1 / 1.02]:
        assert log_likelihood(model.covariances_ * change) < most


def test_long_clusters_are_found_among_noise_and_missing_values() -> None:
    """What the search and the noise do with the new shape."""
    X, labels = rows()
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.02] = np.nan
    far = rng.uniform(-200, 200, size=(30, 2))
    model = StudentTMixture(3, covariance_type="tied_diag", random_state=0)
    model.fit(np.vstack([X, far]))
    assert np.mean(model.labels_[:600] == labels) > 0.98
    assert model.outliers(far).mean() > 0.8
