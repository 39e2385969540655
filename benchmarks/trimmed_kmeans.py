"""Trimmed k-means (Cuesta-Albertos, Gordaliza and Matran 1997) as strong as we can make it, to compare with.

As tclust's tkmeans does it: many starts at random rows, three concentration steps each, and the five best of them run
to the end. It is told the fraction to leave out, which no other method here is.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClusterMixin


class TrimmedKMeans(ClusterMixin, BaseEstimator):
    """k-means that leaves out the given share of the farthest rows."""

    def __init__(self, n_clusters=8, *, trimmed=0.05, n_init=500, random_state=None):
        self.n_clusters, self.trimmed, self.n_init, self.random_state = n_clusters, trimmed, n_init, random_state

    def fit(self, X, y=None):
        """Cluster the rows of X."""
        X = np.asarray(X, dtype=float)
        rng = np.random.RandomState(self.random_state)
        rows = [rng.choice(len(X), self.n_clusters, replace=False) for _ in range(self.n_init)]
        starts = [self._steps(X, X[own], 3) for own in rows]
        ends = [self._steps(X, centers, 100) for _, centers in sorted(starts, key=lambda end: end[0])[:5]]
        self.inertia_, self.cluster_centers_ = min(ends, key=lambda end: end[0])
        self.labels_ = cdist(X, self.cluster_centers_, "sqeuclidean").argmin(axis=1)
        return self

    def _steps(self, X, centers, n_steps):
        """Assign, leave out, average; the sum of squares of the rows kept, and the centres."""
        keep, before = len(X) - round(self.trimmed * len(X)), np.inf
        for _ in range(n_steps):
            d2 = cdist(X, centers, "sqeuclidean")
            nearest = d2.argmin(axis=1)
            away = d2[np.arange(len(X)), nearest]
            kept = np.argpartition(away, keep - 1)[:keep]
            inertia = away[kept].sum()
            if not inertia < before:
                break
            before, own = inertia, nearest[kept]
            member = csr_array((np.ones(keep), (own, kept)), shape=(len(centers), len(X)))
            sizes = np.bincount(own, minlength=len(centers))[:, None]
            centers = np.where(sizes > 0, member @ X / np.maximum(sizes, 1), centers)
        return before, centers
