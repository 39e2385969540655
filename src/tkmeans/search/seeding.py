"""Where EM begins: centres from a sample of the rows, and a scale to go with them.

Every seeding sees the sample in a canonical order with equal rows joined, so the
outcome depends on the data and the random state, not on the order of the rows nor
on whether a row stands twice or has weight two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.sources import Sample
from tkmeans.stats import Array

# Fewer complete rows than this show the clusters less well than all rows with their holes filled.
COMPLETE_ROWS_PER_CLUSTER = 20
DONORS = 1000  # rows that holes are filled from

Seeding = Callable[[Sample, int, np.random.RandomState], Array]


def uniform(sample: Sample, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Uniform in the bounding box of the rows: the paper's start."""
    low, high = sample.X.min(axis=0), sample.X.max(axis=0)
    return low + (high - low) * rng.random_sample((n_clusters, sample.X.shape[1]))


def random_rows(sample: Sample, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Distinct rows, drawn in proportion to their weight."""
    weight = sample.weight.copy()
    chosen = []
    for _ in range(n_clusters):
        chosen.append(_draw(weight, rng))
        weight[chosen[-1]] = 0
        if not np.any(weight):  # fewer distinct rows than clusters
            weight = sample.weight.copy()
    return sample.X[chosen]


def kmeans_plusplus(sample: Sample, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Greedy k-means++: of a few rows drawn by weight times D^2, the one that helps most."""
    X, weight = sample
    n_trials = 2 + int(np.log(n_clusters))
    chosen = [_draw(weight, rng)]
    nearest = _squared_distances(X, X[chosen])[:, 0]  # (m,)
    for _ in range(n_clusters - 1):
        odds = weight * nearest
        tries = [_draw(odds if np.any(odds) else weight, rng) for _ in range(n_trials)]
        after = np.minimum(nearest[:, None], _squared_distances(X, X[tries]))  # (m, n_trials)
        best = int(np.argmin(weight @ after))
        chosen.append(tries[best])
        nearest = after[:, best]
    return X[chosen]


def complete(sample: Sample, n_clusters: int) -> Sample:
    """A sample without missing values: its complete rows if they are enough, else all with their holes filled.

    Only the start is chosen on it; EM then takes every row as it is.
    """
    missing = np.isnan(sample.X)
    whole = ~np.any(missing, axis=1)
    if np.count_nonzero(whole) >= COMPLETE_ROWS_PER_CLUSTER * n_clusters or np.all(whole):
        return Sample(sample.X[whole], sample.weight[whole])
    some = ~np.all(missing, axis=1)
    ordered = canonical(Sample(np.where(missing, np.inf, sample.X)[some], sample.weight[some]))
    return Sample(_filled(np.where(np.isinf(ordered.X), np.nan, ordered.X)), ordered.weight)


def _filled(X: Array) -> Array:
    """Every hole filled from the row most like it, in the features that both have, of those that have the feature.

    Medians in the holes would gather rows of all clusters in the middle, where a search finds one cluster more.
    """
    from sklearn.metrics.pairwise import nan_euclidean_distances  # 5 MB that complete rows can do without

    donors = X[:: -(-len(X) // DONORS)]
    filled = np.where(np.isnan(X), 0.0, X)  # the median, in the frame, where no donor has anything in common
    for start in range(0, len(X), DONORS):
        part = slice(start, start + DONORS)
        unlike = np.nan_to_num(nan_euclidean_distances(X[part], donors, squared=True), nan=np.inf)
        for feature in range(X.shape[1]):
            holes = np.flatnonzero(np.isnan(X[part, feature]))
            able = np.flatnonzero(~np.isnan(donors[:, feature]))
            if len(holes) and len(able):
                choice = unlike[np.ix_(holes, able)]
                found = np.isfinite(choice.min(axis=1))
                filled[start + holes[found], feature] = donors[able[choice.argmin(axis=1)[found]], feature]
    return filled


def canonical(sample: Sample) -> Sample:
    """Rows in lexicographic order, equal ones joined and their weights added."""
    X = sample.X + 0.0  # -0.0 and 0.0 are one value
    order = _lexicographic(X)
    X, weight = X[order], sample.weight[order]
    first = np.ones(len(X), dtype=bool)
    first[1:] = np.any(X[1:] != X[:-1], axis=1)
    return Sample(X[first], np.add.reduceat(weight, np.flatnonzero(first)))


def starting_scale(sample: Sample, centers: Array) -> float:
    """alpha from the median squared distance to the nearest centre; 0 if most rows are centres."""
    nearest = _squared_distances(sample.X, centers).min(axis=1)
    middle = np.quantile(nearest, 0.5, weights=sample.weight, method="inverted_cdf")
    if middle == 0:
        middle = np.average(nearest, weights=sample.weight)
    return float(middle) / sample.X.shape[1]


def _lexicographic(X: Array) -> Array:
    """The sorting order of the rows; each column sorts only the rows that those before it left tied."""
    order = np.argsort(X[:, 0], kind="stable")
    differs = _changes(X[order, 0])  # from the row above, in the columns so far
    for column in range(1, X.shape[1]):
        tied = ~(differs & np.append(differs[1:], True))
        if not np.any(tied):
            break
        rows, group = order[tied], np.cumsum(differs)[tied]
        order[tied] = rows[np.lexsort([X[rows, column], group])]
        differs |= _changes(X[order, column])
    return order


def _changes(values: Array) -> Array:
    """Which values are not the same as the one before; the first is not."""
    return np.append(True, values[1:] != values[:-1])


def _draw(odds: Array, rng: np.random.RandomState) -> int:
    """An index in proportion to `odds`, never one whose odds are 0."""
    up_to = np.cumsum(odds)
    return int(np.searchsorted(up_to, rng.random_sample() * up_to[-1], side="right"))


def _squared_distances(X: Array, centers: Array) -> Array:
    return cdist(X, centers, "sqeuclidean")
