"""Classical seedings (uniform, random rows, greedy k-means++), and a scale to go with the centres.

Every seeding sees the sample in a canonical order with equal rows joined, so the outcome depends on the data and the
random state, not on the order of the rows nor on whether a row stands twice or has weight two.
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.sources.base import Sample, quantile
from tkmeans.stats import Array

FIRST_WIDTH = 10.0  # a first alpha over the median squared distance to the nearest centre, per feature
_ENTRIES, _MOST_ENTRIES = 2**20, 2**24  # distances at once, and in all

Seeding = Callable[[Sample, int, np.random.RandomState], Array]


def uniform(sample: Sample, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Uniform in the bounding box of the rows: the paper's start."""
    low, high = sample.X.min(axis=0), sample.X.max(axis=0)
    return low + (high - low) * rng.random_sample((n_clusters, sample.X.shape[1]))


def random_rows(sample: Sample, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Distinct rows, drawn in proportion to their weight."""
    weight, chosen = sample.weight.copy(), []
    for _ in range(n_clusters):
        chosen.append(drawn(weight, rng.random_sample()))
        weight[chosen[-1]] = 0
        if not np.any(weight):  # fewer distinct rows than clusters
            weight = sample.weight.copy()
    return sample.X[chosen]


def kmeans_plusplus(sample: Sample, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Greedy k-means++: of a few rows drawn by weight times D^2, the one that helps most."""
    X, weight = sample
    n_trials, chosen = 2 + int(np.log(n_clusters)), [drawn(weight, rng.random_sample())]
    nearest = cdist(X, X[chosen], "sqeuclidean")[:, 0]  # (m,)
    for _ in range(n_clusters - 1):
        odds = weight * nearest
        tries = [drawn(odds if np.any(odds) else weight, rng.random_sample()) for _ in range(n_trials)]
        after = np.minimum(nearest[:, None], cdist(X, X[tries], "sqeuclidean"))  # (m, n_trials)
        best = int(np.argmin(weight @ after))
        chosen.append(tries[best])
        nearest = after[:, best]
    return X[chosen]


def starting_scale(sample: Sample, centers: Array) -> float:
    """A first alpha for centres in a frame: ten times the median squared distance to the nearest; 0 on equal rows.

    A narrow start freezes memberships while centres are wrong: EM ends at a lower maximum. A wide one lets
    the clusters sort themselves out first; no wider than all rows together, whose scale is 1.
    """
    X, weight = (values[:: 1 + len(sample.X) * len(centers) // _MOST_ENTRIES] for values in sample)
    blocks = np.array_split(X, 1 + len(X) * len(centers) // _ENTRIES)
    nearest = np.concatenate([cdist(rows, centers, "sqeuclidean").min(axis=1) for rows in blocks])
    middle = quantile(nearest, weight) or np.average(nearest, weights=weight)
    return min(FIRST_WIDTH * float(middle) / sample.X.shape[1], 1.0)


def drawn(odds: Array, uniform: float) -> int:
    """An index in proportion to `odds`, never one whose odds are 0."""
    up_to = np.cumsum(odds)
    return int(np.searchsorted(up_to, uniform * up_to[-1], side="right"))
