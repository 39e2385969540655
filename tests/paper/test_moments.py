"""Moments and distances of rows against the definitions."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tkmeans.paper.authors.soft_models import Rows


def example(p, n=200, n_components=5):
    rng = np.random.default_rng(p)
    x = rng.uniform(-1, 1, size=(n, p))
    weight = rng.random((n_components, n)) ** 60  # a few rows count, most hardly at all
    roots = rng.normal(size=(n_components, p, p))
    return x, weight, rng.uniform(-1, 1, size=(n_components, p)), roots @ roots.swapaxes(1, 2) + 0.01 * np.eye(p)


@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_ellipsoid_means_scatters_and_distances_follow_their_definitions(p):
    x, weight, centers, covariances = example(p)
    rows = Rows(x)
    np.testing.assert_allclose(rows.means(weight), [np.average(x, axis=0, weights=w) for w in weight], rtol=1e-12)
    long_way = [
        sum(w * np.outer(a, a) for w, a in zip(ws, x - c, strict=True)) for ws, c in zip(weight, centers, strict=True)
    ]
    np.testing.assert_allclose(rows.scatters(weight, centers), long_way, rtol=1e-11, atol=1e-13)
    distances, det = rows.measure(centers, covariances)
    np.testing.assert_allclose(det, np.linalg.det(covariances), rtol=1e-11)
    for k, d2 in enumerate(distances):
        far = cdist(x, centers[[k]], "mahalanobis", VI=np.linalg.inv(covariances[k]))[:, 0] ** 2
        np.testing.assert_allclose(d2, far, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("p", [2, 8])
def test_a_nan_in_one_ellipsoid_component_does_not_reach_the_others(p):
    x, weight, centers, covariances = example(p)
    weight[1, 17] = covariances[1, 0, 0] = np.nan
    rows = Rows(x)
    with np.errstate(invalid="ignore"):
        measured = rows.measure(centers, covariances)
    for found in (rows.scatters(weight, centers), *measured):
        np.testing.assert_array_equal(np.isnan(found).all(axis=tuple(range(1, found.ndim))), np.arange(5) == 1)


@pytest.mark.parametrize("p", [2, 8])
def test_ellipsoid_distances_use_the_inverse_of_a_matrix_that_is_not_positive_definite(p):
    x, _, centers, _ = example(p)
    sign = np.diag([-1.0] + [1.0] * (p - 1))
    (d2,), det = Rows(x).measure(centers[:1], sign[None])
    np.testing.assert_allclose(det, -1)
    away = x - centers[0]
    np.testing.assert_allclose(d2, (away[:, 1:] ** 2).sum(axis=1) - away[:, 0] ** 2, atol=1e-13)
