"""Clusters with outliers, made to measure."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def make_contaminated(
    n_samples: int = 3000,
    n_clusters: int = 15,
    n_features: int = 2,
    *,
    outlier_fraction: float = 0.05,
    outlier_range: float = 10.0,
    cluster_std: float = 0.05,
    random_state: Any = None,
) -> tuple[Any, Any]:
    """Make round clusters in the cube [-1, 1]^p, and outliers scattered far beyond it.

    Parameters
    ----------
    n_samples : int, default=3000
        Rows in clusters; the outliers come on top.
    n_clusters : int, default=15
        Clusters, of equal size. Their centres keep a distance from each other.
    n_features : int, default=2
        Features.
    outlier_fraction : float, default=0.05
        Outliers, as a fraction of `n_samples`.
    outlier_range : float, default=10.0
        Outliers are uniform in [-outlier_range, outlier_range]^p.
    cluster_std : float, default=0.05
        The standard deviation of a cluster, in every feature.
    random_state : int, RandomState instance or None, default=None
        Makes the data reproducible.

    Returns
    -------
    X : ndarray of shape (n_samples + n_outliers, n_features)
        The rows, outliers last.
    y : ndarray of shape (n_samples + n_outliers,)
        The cluster of each row, -1 for outliers.

    Examples
    --------
    >>> from tkmeans.datasets import make_contaminated
    >>> X, y = make_contaminated(n_samples=100, n_clusters=4, random_state=0)
    >>> X.shape, int((y == -1).sum())
    ((105, 2), 5)
    """
    rng = check_random_state(random_state)
    centers = spaced_points(n_clusters, n_features, rng)
    y = np.arange(n_samples) % n_clusters
    X = centers[y] + cluster_std * rng.standard_normal((n_samples, n_features))
    n_outliers = round(outlier_fraction * n_samples)
    outliers = rng.uniform(-outlier_range, outlier_range, (n_outliers, n_features))
    return np.vstack([X, outliers]), np.concatenate([y, np.full(n_outliers, -1)])


def spaced_points(n_points: int, n_features: int, rng: np.random.RandomState) -> Any:
    """Random points in the cube, each the one of many that is farthest from those before."""
    points = rng.uniform(-1, 1, (1, n_features))
    while len(points) < n_points:
        tries = rng.uniform(-1, 1, (50, n_features))
        nearest = ((tries[:, None] - points) ** 2).sum(-1).min(1)
        points = np.vstack([points, tries[nearest.argmax()]])
    return points
