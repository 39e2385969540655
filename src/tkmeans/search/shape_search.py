"""Labels to start a mixture of ellipses from: round clusters in several coordinates, and round pieces merged to ellipses.

A round search (`tkmeans.search.center_search`) depends on the units of the columns, and a mixture of ellipses does not.
So it is made in the user's units and with every column in a unit of its own. Long and bent clusters it cuts in pieces:
hence a third start from above, with many round pieces, of which always those two are joined whose union costs least as
one ellipse instead of two. EM and its likelihood then decide (`tkmeans.fitting.mixture_starts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import os
import numpy as np

from tkmeans.models.dof import first_dof
from tkmeans.search.center_search import robust_search
from tkmeans.search.criterion import NOISE_REACH
from tkmeans.sources import Sample
from tkmeans.stats import Array

LIGHT_TAILS = 10.0
PIECES_PER_COMPONENT, LEAST_PIECES = 3, 24
ROWS_PER_PIECE = 2  # and feature, on average at least: an ellipse of a piece must mean something
NEIGHBOURS = 12  # of a piece, with which it may be joined
_RIDGE = 1e-4  # of the pooled variances, so that pieces on a line have a volume


class Pieces(NamedTuple):
    """Sums over the rows of each piece."""

    mass: Array  # (m,)
    mean: Array  # (m, p)
    scatter: Array  # (m, p, p) around the mean


def start_labels(sample: Sample, units: Array, n_components: int, rng: np.random.RandomState, volume: float) -> Iterator[Array]:
    """Labels of the rows of a canonical sample, (n,), one array for each start; -1 for rows that are far from all.

    `units` are those of the columns, (p,).
    """
    own = sample._replace(X=sample.X / units)
    light = max(LIGHT_TAILS, first_dof(len(units)))
    for tails in (None, light):
        yield round_labels(sample, n_components, rng, tails), True
        if np.max(units) > 1.05 * np.min(units):
            yield round_labels(own, n_components, rng, tails), True
    yield from joined_labels(own, n_components, rng, volume - float(np.sum(np.log(units))))


def round_labels(sample: Sample, n_clusters: int, rng: np.random.RandomState, tails: float | None = None) -> Array:
    """The nearest of the centres that the round search finds."""
    found = robust_search(_sorted(sample), n_clusters, rng, tails=tails)
    return _nearest(sample.X, found.centers, NOISE_REACH * sample.X.shape[1] * found.scale)


def joined_labels(sample: Sample, n_components: int, rng: np.random.RandomState, volume: float) -> Iterator[Array]:
    """Many round pieces, joined until as few as the components are left; None if there are not enough rows for them."""
    n, p = sample.X.shape
    many = max(PIECES_PER_COMPONENT * n_components, LEAST_PIECES)
    many = min(many, max(n_components + 1, n // (ROWS_PER_PIECE * (p + 1))), n // 3)
    if many <= n_components:
        return
    labels = round_labels(sample, many, rng)
    pieces, numbers = summed(sample, labels)
    if len(pieces.mass) <= n_components:
        return
    for noise in (True, False):
        group, dissolved = joined(pieces, n_components, float(p + 2), volume if noise else np.inf, float(sample.weight[labels < 0].sum()))
        yield np.where(labels >= 0, group[np.searchsorted(numbers, np.maximum(labels, numbers[0]))], -1), False
        if not dissolved:
            break


def summed(sample: Sample, labels: Array) -> tuple[Pieces, Array]:
    """The pieces that have rows, and their numbers among the labels."""
    numbers = np.unique(labels[labels >= 0])
    mass, mean, scatter = [], [], []
    for number in numbers:
        own = labels == number
        x, weight = sample.X[own], sample.weight[own]
        mass.append(weight.sum())
        mean.append(weight @ x / mass[-1])
        away = x - mean[-1]
        scatter.append((away * weight[:, None]).T @ away)
    return Pieces(np.array(mass), np.array(mean), np.array(scatter)), numbers


def joined(pieces: Pieces, n_groups: int, prior_rows: float, volume: float, strays: float) -> Array:
    """The group of each piece, 0 to n_groups - 1, after joining pairs; the cheapest pair of neighbours first."""
    mass, mean, scatter = (values.copy() for values in pieces)
    m, p = mean.shape
    pooled = scatter.sum(axis=0) / mass.sum()
    pooled += _RIDGE * np.diag(np.maximum(np.diagonal(pooled), 1e-12 * np.max(np.diagonal(pooled)) + 1e-300))

    def cost(mass: Array, scatter: Array) -> Array:
        """Of pieces as one ellipse each, (...), with a prior worth some rows at the pooled shape."""
        total = mass + prior_rows
        log_det = np.linalg.slogdet((scatter + prior_rows * pooled) / total[..., None, None])[1]
        return total / 2 * log_det + mass * (p / 2 * (1 + np.log(2 * np.pi)) - np.log(mass))

    def union(i: Array, j: Array) -> tuple[Array, Array, Array]:
        both, away = mass[i] + mass[j], mean[i] - mean[j]
        between = (mass[i] * mass[j] / both)[..., None, None] * (away[..., :, None] * away[..., None, :])
        center = (mass[i, None] * mean[i] + mass[j, None] * mean[j]) / both[..., None]
        return both, center, scatter[i] + scatter[j] + between

    def price(i: Array, j: Array) -> Array:
        both, _, spread = union(i, j)
        return cost(both, spread) - own[i] - own[j]

    own = cost(mass, scatter)
    white = mean @ np.linalg.inv(np.linalg.cholesky(pooled)).T
    near = np.argsort(np.sum((white[:, None] - white) ** 2, axis=2), axis=1)[:, 1 : NEIGHBOURS + 1]
    prices = np.full((m, m), np.inf)
    i, j = np.repeat(np.arange(m), near.shape[1]), near.ravel()
    i, j = np.minimum(i, j), np.maximum(i, j)
    for part in np.array_split(np.arange(len(i)), max(1, len(i) * p * p // 2**22)):  # not all matrices at once
        prices[i[part], j[part]] = price(i[part], j[part])
    group, alive = np.arange(m), np.ones(m, dtype=bool)
    strays = strays + 1.0
    for _ in range(m - n_groups):
        i, j = divmod(int(np.argmin(prices)), m)
        dissolving = mass * volume + strays * np.log(strays) - (strays + mass) * np.log(strays + mass) - own
        dissolving[~alive] = np.inf
        k = int(np.argmin(dissolving))
        if dissolving[k] < prices[i, j]:
            strays += mass[k]
            group[group == k] = -1
            alive[k] = False
            prices[k], prices[:, k] = np.inf, np.inf
            continue
        if not np.isfinite(prices[i, j]):  # neighbours of none: all pairs that are left
            left = np.flatnonzero(alive)
            a, b = np.triu_indices(len(left), 1)
            prices[left[a], left[b]] = price(left[a], left[b])
            i, j = divmod(int(np.argmin(prices)), m)
        partners = np.flatnonzero(alive & (np.isfinite(np.minimum(prices[i], prices[:, i])) | np.isfinite(np.minimum(prices[j], prices[:, j]))))
        mass[i], mean[i], scatter[i] = (values[0] for values in union(np.array([i]), np.array([j])))
        own[i] = cost(mass[i : i + 1], scatter[i : i + 1])[0]
        group[group == j] = i
        alive[j] = False
        prices[j], prices[:, j] = np.inf, np.inf
        partners = partners[(partners != i) & (partners != j)]
        if len(partners):
            low, high = np.minimum(partners, i), np.maximum(partners, i)
            prices[low, high] = price(low, high)
    left = np.flatnonzero(alive)
    return np.where(group >= 0, np.searchsorted(left, np.maximum(group, 0)), -1), np.any(group < 0)


def _nearest(X: Array, centers: Array, reach: float) -> Array:
    """The nearest centre of each row, or -1 where none is in reach; in blocks."""
    labels = np.empty(len(X), dtype=np.int64)
    for first in range(0, len(X), 1024):
        d2 = np.sum((X[first : first + 1024, None] - centers) ** 2, axis=2)
        nearest = np.argmin(d2, axis=1)
        labels[first : first + 1024] = np.where(np.min(d2, axis=1) < reach, nearest, -1)
    return labels


def _sorted(sample: Sample) -> Sample:
    return sample
