"""Labels to start a mixture of ellipses from: round clusters in two frames, and round pieces joined to ellipses.

A round search (`tkmeans.search.center_search`) depends on the units of the columns, and ellipses do not. So it is made
in the user's units and with a unit for each column, with heavy tails, which far rows do not disturb, and
with light ones, which see clusters that touch. It cuts long and bent clusters in pieces; hence a start from
above: many round pieces, of which always the two are joined whose union costs least as one ellipse instead of two, or
the one is given to the noise that costs least there. EM then decides (`tkmeans.fitting.mixture_choice`).
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from tkmeans.models.covariances import SHAPES
from tkmeans.models.dof import first_dof
from tkmeans.search.center_search import QUIET_BREATHS, robust_search, same_clusters
from tkmeans.search.criterion import NOISE_REACH
from tkmeans.sources import Sample
from tkmeans.stats import Array

LIGHT_TAILS = 10.0  # the nu of a search that sees clusters which touch
FARTHEST = 1e4  # units: what is farther is as far, and an ellipse that holds it has a determinant
SAME_UNIT = 1.05  # columns whose units differ by less are in one unit
DENSE, LEAST_DENSE = 0.25, 10  # of an equal share of the rows, and rows, at least, are the densest part of a column
SOME_DENSER, MOST_DENSE = 2.0, 100.0  # times denser than the others is a column in which clusters may lie apart
PIECES_PER_COMPONENT, LEAST_PIECES = 3, 24
PIECE_ROWS = 2  # for each parameter of its centre, on average: the ellipse of a piece must mean something
NEIGHBOURS = 12  # of a piece, with which it may be joined
RIDGE = 1e-4  # of the pooled variances: rows on a line have a volume
_MATRIX_ENTRIES = 2**22  # at once
MANY_FEATURES = 1000  # of more the matrices are not worth their memory for a start


class Pieces(NamedTuple):
    """Sums over the rows of each piece."""

    mass: Array  # (m,)
    mean: Array  # (m, p)
    scatter: Array  # (m, p, p) around the mean


def start_labels(sample: Sample, units: Array, log_volume: float, n_components: int, seed: int) -> Iterator[Array]:
    """Labels of the rows of a canonical sample, (n,), one array for each start; -1 for rows of no cluster.

    `units` are those of the columns, (p,); `log_volume` is that of the bulk of the rows, where noise is uniform.
    Where two quick searches of different kinds find the same clusters, these are all there is to try.
    """
    in_units = in_units_of(sample, units)
    log_volume, light = log_volume - float(np.sum(np.log(units))), max(LIGHT_TAILS, first_dof(len(units)))
    several_units = np.max(units) > SAME_UNIT * np.min(units)
    first, rng = sample if several_units else in_units, RandomState(seed)
    quick = round_labels(first, n_components, rng, breaths=0)
    other = next(joined_labels(in_units, log_volume, n_components, rng, quick=True), None)
    if other is not None and same_clusters(quick, other, sample.weight):
        yield quick
        return
    rng = RandomState(seed)
    yield round_labels(first, n_components, rng)
    yield round_labels(in_units, n_components, rng, light)
    yield from joined_labels(in_units, log_volume, n_components, rng)
    if several_units:
        yield round_labels(in_units, n_components, rng)
        yield round_labels(sample, n_components, rng, light)
    for dense in frames(sample, units, n_components)[1:]:
        yield round_labels(in_units_of(sample, dense), n_components, rng)


def in_units_of(sample: Sample, units: Array) -> Sample:
    """The rows with these units, none of them too far away."""
    return sample._replace(X=np.clip(sample.X / units, -FARTHEST, FARTHEST))


def frames(sample: Sample, units: Array, K: int) -> list[Array]:
    """These units of the columns and, if a column is much denser in its densest part than others are, those of that.

    Where clusters lie apart along a few columns, the median deviations of these are the distances between clusters:
    in such units they are near each other.
    """
    dense = dense_units(sample, units, K)
    return [units, dense] if np.max(units / dense) > SOME_DENSER * np.min(units / dense) else [units]


def dense_units(sample: Sample, units: Array, K: int) -> Array:
    """The median deviations of the columns in a cluster, by the densest part of each; at most these units."""
    n, X = len(sample.X), np.sort(sample.X, axis=0)
    m = max(LEAST_DENSE, math.ceil(DENSE * n / K))
    if n < 2 * m:
        return units
    dense = np.min(X[m:] - X[:-m], axis=0) * ndtri(0.75) / (2 * ndtri(0.5 + m / (2 * n)))
    return np.where(dense > 0, np.clip(dense, units / MOST_DENSE, units), units)  # equal values are no part


def round_labels(sample: Sample, K: int, rng: RandomState, tails: Any = None, breaths: int = QUIET_BREATHS) -> Array:
    """The nearest of the centres that the round search finds; -1 where none is in reach, unless that is everywhere."""
    found = robust_search(sample, K, rng, tails, breaths)
    near = found.nearest < NOISE_REACH * sample.X.shape[1] * found.scale
    return np.where(near | ~np.any(near), found.labels, -1)  # few rows may leave every centre a single one


def joined_labels(sample: Sample, log_volume: float, K: int, rng: RandomState, quick: bool = False) -> Iterator[Array]:
    """Many round pieces, joined until there are as many as components: with noise, and if that matters, without."""
    n, p = sample.X.shape
    many = min(max(PIECES_PER_COMPONENT * K, LEAST_PIECES) * (2 if quick else 3) // 3, n // 3)
    many = min(many, max(K + 1, n // (PIECE_ROWS * (p + 1))))
    if many <= K or p > MANY_FEATURES:
        return
    labels = round_labels(sample, many, rng, None, 0 if quick else QUIET_BREATHS)
    numbers, pieces = summed(sample, labels)
    if len(numbers) <= K:
        return
    for volume in (log_volume, math.inf):
        groups = joined(pieces, K, float(np.sum(sample.weight[labels < 0])), volume)
        lookup = np.full(many + 1, -1)  # the last one for -1
        lookup[numbers] = groups
        yield lookup[labels]
        if np.all(groups >= 0):
            return


def summed(sample: Sample, labels: Array) -> tuple[Array, Pieces]:
    """The labels of the pieces that have rows, and the pieces."""
    numbers = np.unique(labels[labels >= 0])
    own = (np.flatnonzero(labels == number) for number in numbers)
    found = [(np.sum(sample.weight[rows]), *moments(sample.X[rows], sample.weight[rows])) for rows in own]
    return numbers, Pieces(*map(np.array, zip(*found, strict=True)))


def moments(X: Array, weight: Array, aligned: bool = False) -> tuple[Array, Array]:
    """The weighted mean, and the weighted scatter around it, (p, p), or its diagonal."""
    mean = weight @ X / np.sum(weight)
    away = X - mean
    return mean, weight @ away**2 if aligned else (away * weight[:, None]).T @ away


def joined(pieces: Pieces, n_groups: int, strays: float, log_volume: Any) -> Array:
    """The group of each piece, 0 to n_groups - 1, or -1 for noise.

    A group of mass m costs, with a prior worth p + 2 rows at the pooled shape, minus the log-likelihood of its rows
    under the best ellipse and the best weights; noise has the density of `strays` in a volume, that of all or of each
    piece. Always the cheapest step is taken: to join two neighbours or to give a group to the noise.
    """
    mass, mean, scatter = (values.copy() for values in pieces)
    m, p = mean.shape
    prior_rows, strays = p + 2.0, strays + 1.0
    pooled = np.sum(scatter, axis=0) / np.sum(mass)
    pooled = pooled + RIDGE * np.diag(np.maximum(np.diagonal(pooled), 1e-6))  # columns are in their units

    def cost(mass: Array, scatter: Array) -> Array:
        """Of groups as one ellipse each."""
        total = mass + prior_rows
        shapes = (scatter + prior_rows * pooled) / total[:, None, None]
        log_axes = np.sum(np.log(np.diagonal(shapes, axis1=1, axis2=2)), axis=1)
        log_det = np.maximum(p * SHAPES["full"].log_sizes(shapes), log_axes - 35.0 * (p - 1))  # the rest is rounding
        return total / 2 * log_det + mass * (p / 2 * (1 + math.log(2 * math.pi)) - np.log(mass))

    def union(i: Array, j: Array) -> tuple[Array, Array, Array]:
        both, away = mass[i] + mass[j], mean[i] - mean[j]
        between = (mass[i] * mass[j] / both)[:, None, None] * (away[:, :, None] * away[:, None, :])
        center = (mass[i, None] * mean[i] + mass[j, None] * mean[j]) / both[:, None]
        return both, center, scatter[i] + scatter[j] + between

    def set_prices(i: Array, j: Array) -> None:
        pairs, step = np.unique(np.minimum(i, j) * m + np.maximum(i, j)), max(_MATRIX_ENTRIES // p**2, 1)
        i, j = np.divmod(pairs, m)
        for first, second in ((i[start : start + step], j[start : start + step]) for start in range(0, len(i), step)):
            both, _, spread = union(first, second)
            prices[first, second] = cost(both, spread) - own[first] - own[second]

    own, prices, group, alive = cost(mass, scatter), np.full((m, m), np.inf), np.arange(m), np.ones(m, dtype=bool)
    white = mean @ np.linalg.inv(np.linalg.cholesky(pooled)).T
    apart = cdist(white, white)
    np.fill_diagonal(apart, -1.0)  # a piece comes first among its own neighbours, also where another has its mean
    near = np.argsort(apart, axis=1, kind="stable")[:, 1 : NEIGHBOURS + 1]
    set_prices(np.repeat(np.arange(m), near.shape[1]), near.ravel())
    for _ in range(m - n_groups):
        as_noise = mass * log_volume + strays * math.log(strays) - (strays + mass) * np.log(strays + mass) - own
        lost = int(np.argmin(np.where(alive, as_noise, np.inf)))
        if not np.isfinite(np.min(prices)):  # neighbours of none: all pairs that are left
            set_prices(*np.flatnonzero(alive)[np.array(np.triu_indices(int(np.count_nonzero(alive)), 1))])
        i, j = divmod(int(np.argmin(prices)), m)
        if as_noise[lost] < prices[i, j]:
            strays += mass[lost]
            group[group == lost], gone = -1, lost
        else:
            own[i] += own[j] + prices[i, j]
            prices[i, j] = np.inf
            partners = np.flatnonzero(np.isfinite(np.minimum(prices[[i, j]], prices[:, [i, j]].T).min(axis=0)))
            mass[i], mean[i], scatter[i] = (values[0] for values in union(np.array([i]), np.array([j])))
            group[group == j], gone = i, j
            set_prices(np.full(len(partners), i), partners)
        alive[gone] = False
        prices[gone], prices[:, gone] = np.inf, np.inf
    return np.where(group >= 0, np.searchsorted(np.flatnonzero(alive), group), -1)
