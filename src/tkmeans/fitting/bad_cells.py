"""Bad cells: values far from all others of their column, in rows that are ordinary otherwise.

Such a value is treated as missing, so that its row is not lost. What is far is measured by quantiles, and three things
are not bad cells though they are far: the end of a long tail, which leaves no gap; many cells of a row, which is an
outlier as a whole; and a small true cluster. That shows in the rest of its rows, which are alike, where bad cells
are found in rows of all clusters. What is open is left to the centres of the start: what is near one is not bad.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from tkmeans.search import robust_search
from tkmeans.sources import Sample, Source
from tkmeans.sources.base import out_of_bounds, quantile
from tkmeans.stats import Array

FAR = 9.0  # deviations from the column's median
FEW = 3  # rows are no cluster
TAILS = 10.0  # the nu of the search for clusters of the other rows
COMPARED_ROWS = 1000


class Usual(NamedTuple):
    """Where the values of each column are: the median, and a deviation on each side."""

    middle: Array  # (p,)
    below: Array  # (p,) infinite where most values are equal
    above: Array  # (p,)


def usual(sample: Sample) -> Usual:
    """The larger of the deviations that the median deviation, the quartiles and the outer tenth of a side tell of."""
    lowest, low, middle, high, highest = quantile(*sample, 0.1, 0.25, 0.5, 0.75, 0.9)
    width = np.maximum(quantile(np.abs(sample.X - middle), sample.weight) * 1.4826, (high - low) / 1.349)
    below, above = (np.maximum(width, side / 1.2816) for side in (middle - lowest, highest - middle))
    return Usual(middle, np.where(width > 0, below, np.inf), np.where(width > 0, above, np.inf))


def limits(sample: Sample, centers: Array | None = None) -> tuple[Array, Array]:
    """Bounds of each column, (p,) each: FAR deviations out, from the outermost of these centres too.

    They are infinite on a side where fewer values are out of bounds than lie between them and half as far out.
    """
    (X, weight), (middle, below, above) = sample, usual(sample)
    low, high = middle - FAR * below, middle + FAR * above
    n_low, n_high = weight @ (low > X), weight @ (high < X)
    gap_low = 2 * n_low > weight @ (middle - FAR / 2 * below > X)
    gap_high = 2 * n_high > weight @ (middle + FAR / 2 * above < X)
    if centers is not None:
        low = np.minimum(low, np.min(centers, axis=0) - FAR * below)
        high = np.maximum(high, np.max(centers, axis=0) + FAR * above)
    return np.where(gap_low, low, -np.inf), np.where(gap_high, high, np.inf)


def without_bad_cells(sample: Sample, n_clusters: int) -> Sample:
    """The rows without cells that are bad whatever the clusters are: those found in rows of all clusters."""
    X, weight = sample
    low, high = limits(sample)
    bad = out_of_bounds(X, low, high)
    core = np.flatnonzero(np.all((low <= X) & (high >= X), axis=1))  # not those with missing values
    if not np.any(bad) or 2 * np.sum(weight[core]) < np.sum(weight) or len(core) <= n_clusters:
        return sample
    inner = X[core]
    centers = robust_search(Sample(inner, weight[core]), n_clusters, np.random.RandomState(0), TAILS, 1).centers
    inner = inner[:: -(-len(core) // COMPARED_ROWS)]
    total = np.var(inner, axis=0)
    total = np.where(total > 0, total, np.inf)
    squares = np.stack([np.sum((inner - center) ** 2, axis=1) for center in centers], axis=1)
    within = np.minimum(np.mean((inner - centers[np.argmin(squares, axis=1)]) ** 2, axis=0) / total, 1)  # (p,)
    for j in np.flatnonzero(np.any(bad, axis=0)):
        of_all = _spread(squares - (inner[:, [j]] - centers[:, j]) ** 2, np.ones(len(inner)))
        for beyond in (X[:, j] < low[j], X[:, j] > high[j]):
            rows = np.flatnonzero(bad[:, j] & beyond)
            if len(rows) < FEW:
                continue
            rest = np.where(bad[rows], np.nan, X[rows])
            some = ~np.all(np.isnan(rest), axis=0)
            rest = rest[:, some]
            spread = _spread(np.nanmean((rest[:, None] - centers[:, some]) ** 2, axis=2), weight[rows])
            excess = (1 - within[some]) @ (np.nanvar(rest, axis=0) / total[some] - (1 + within[some]) / 2)
            if spread - 1 < (of_all - 1) / 2 or excess < 0:  # nearer to that of one cluster
                bad[rows, j] = False
    return Sample(np.where(bad, np.nan, X), weight)


def _spread(squares: Array, weight: Array) -> float:
    """Over how many clusters rows with these squared distances, (n, K), are spread: the exponential of the entropy."""
    sizes = np.bincount(np.argmin(squares, axis=1), weight)
    return float(np.exp(np.sum(entr(sizes / np.sum(sizes)))))


def forgive(source: Source, sample: Sample, centers: Array) -> None:
    """Let the source leave out bad cells, where the sample of it has some beside these centres."""
    low, high = limits(sample, centers)
    if np.any(out_of_bounds(sample.X, low, high)):
        low, high = (np.nan_to_num(source.frame.leave(bound).astype(np.float64)) for bound in (low, high))
        source.bounds = low, high
