"""Rows with missing values and with bad cells, as they are for the choice of a start (docs/decisions/0023).

A bad cell is taken for a missing value, so that its row is not lost. EM then takes every row as it is.
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import entr

from tkmeans.search import robust_search
from tkmeans.sources.base import BAD, Sample, canonical, limits, out_of_bounds, quantile
from tkmeans.stats import Array

# Fewer complete rows than this show the clusters less well than all rows with their holes filled.
COMPLETE_ROWS_PER_CLUSTER = 20
DONORS, MANY_LIKE, FILLINGS = 1000, 10, 2  # rows that holes are filled from; those most like one; how often
DIFFERENT, MIXED = 0.9, (-0.366, 1.366)  # of the values; shares t with a mean of t (1 - t) of 0
# A row is strange if the ball around it without a neighbour has this many times the volume that most rows have.
STRANGE, NEIGHBOURS = 30.0, 0.9
FEW = 3  # rows are no cluster
CHANCE_ROWS, DRAWS, ALIKE = 30, 500, 0.1  # fewer are compared with sets drawn at random; errors, in all columns
REST_TAILS, ORDINARY = 10.0, 4.0  # the nu of the search for clusters of the other rows; times their squared distance


@np.errstate(over="ignore", invalid="ignore")  # of gigantic values, which are no cluster
def without_bad_cells(
    sample: Sample, n_clusters: int, spread: Any = None, bounds: Any = None, at_most: bool = False
) -> Sample:
    """The rows without cells that are bad whatever the clusters are: those found in rows of all clusters.

    Rows with far values on one side of a column may also be a cluster, which then leaves one less to the others: of
    `n_clusters`, or of the number up to that (`at_most`) that suits the others best.
    """
    (X, weight), (low, high) = sample, bounds or limits(sample, None, spread)
    bad = out_of_bounds(X, low, high)
    core = np.flatnonzero(np.all((low <= X) & (high >= X), axis=1))  # not those with missing values
    if not np.any(bad) or 2 * np.sum(weight[core]) < np.sum(weight) or len(core) <= n_clusters:
        return sample
    groups = []
    for side, beyond in ((low, bad & (low > X)), (high, bad & (high < X))):
        found = ((j, side[j], np.flatnonzero(beyond[:, j])) for j in np.flatnonzero(np.any(beyond, axis=0)).tolist())
        groups += [each for each in found if np.sum(weight[each[2]]) >= FEW]
    if groups:
        inner = canonical(Sample(X[core], weight[core]))
        numbers = [n_clusters >> i for i in range(n_clusters.bit_length())] if at_most else [n_clusters, n_clusters - 1]
        searched = cache(partial(Pieces.of, inner))
        best = int(np.argmax([searched(number).log_likelihood for number in numbers])) if at_most else 0
        pieces, fewer = searched(numbers[best]), [*numbers, 0][best + 1]
    for j, bound, rows in groups:
        near = np.min(np.abs(X[rows, j] - pieces.centers[:, j, None]), axis=0) <= BAD * pieces.within[j] ** 0.5
        bad[rows[near], j] = False  # the value of a cluster
        rows = rows[~near]
        if np.sum(weight[rows]) < FEW:
            continue
        rest, beyond = Sample(np.where(bad[rows], np.nan, X[rows]), weight[rows]), X[rows, j] - bound
        kept, many = pieces.unlike(rest, j, ALIKE / len(groups)), 1
        while not kept and many * FEW <= np.sum(rest.weight) and many < max(n_clusters, 2):
            gain = pieces.gain_of_clusters(rest, j, beyond, bound, many)
            left = fewer if at_most else n_clusters - many
            if gain > 0 and (left or not at_most):  # less what the others lose by fewer clusters
                gain -= pieces.log_likelihood - searched(left).log_likelihood if left else math.inf
            kept, many = gain > 0, 2 * many
        bad[rows, j] = not kept
    return Sample(np.where(bad, np.nan, X), weight)


class Pieces(NamedTuple):
    """Clusters of rows, with one variance of each column within them."""

    rows: Sample
    centers: Array  # (K, p)
    within: Array  # (p,)
    log_shares: Array  # (K,)
    log_likelihood: float  # of the rows and their clusters, Gaussian, but for a constant

    @staticmethod
    def of(rows: Sample, n_clusters: int) -> "Pieces":
        """By a search."""
        X, weight = rows
        centers = robust_search(rows, n_clusters, np.random.RandomState(0), REST_TAILS, 1).centers
        labels, _ = nearest_center(X, centers)
        within = np.average((X - centers[labels]) ** 2, axis=0, weights=weight)
        within = np.maximum(within, 1e-6 * _scatter(rows)[1] / np.sum(weight) + 1e-200)
        log_shares = np.log(np.maximum(np.bincount(labels, weight, n_clusters) / np.sum(weight), 1e-12))
        log_likelihood = weight @ log_shares[labels] - np.sum(weight) / 2 * np.sum(np.log(within))
        return Pieces(rows, centers, within, log_shares, float(log_likelihood))

    def gain_of_clusters(self, rest: Sample, j: int, beyond: Array, bound: float, many: int) -> float:
        """How much likelier other rows are as so many clusters of their own than as rows of these, in nats.

        If they are rows of these clusters, their values in column j, so far `beyond` a bound, may be anywhere up to the
        farthest, or as far again as the bound. A few rows at the variances within these clusters hold those of others.
        """
        labels, gain = np.zeros(len(beyond), int), 0.0
        reach = max(np.max(np.abs(beyond)), abs(bound - quantile(self.rows.X[:, j], self.rows.weight)))
        if many > 1:
            X = np.nan_to_num(np.column_stack([rest.X, beyond])) / np.append(self.within, self.within[j]) ** 0.5
            found = robust_search(canonical(Sample(X, rest.weight)), many, np.random.RandomState(0))
            labels, _ = nearest_center(X, found.centers)
        for own in (labels == k for k in np.unique(labels)):
            (X, weight), values = Sample(rest.X[own], rest.weight[own]), beyond[own]
            n, (mass, scatter) = np.sum(weight), _scatter(Sample(X, weight))
            variance = (scatter + FEW * self.within) / (mass + FEW)
            gain -= (mass @ np.log(variance / self.within) + np.sum(scatter / variance)) / 2
            width = (n * np.cov(values, aweights=weight, ddof=0) + FEW * self.within[j]) / (n + FEW)
            gain += n * (math.log(reach) - math.log(2 * math.pi * math.e * width) / 2)
            gain += n * math.log(n / np.sum(rest.weight))
        squares = np.nansum((rest.X[:, None] - self.centers) ** 2 / self.within, axis=2)  # (n, K)
        return float(gain - rest.weight @ np.max(self.log_shares - squares / 2, axis=1))

    def unlike(self, rest: Sample, j: int, by_chance: float) -> bool:
        """Whether other rows are unlike these without column j: far from the clusters, of one, or of half as many.

        Few rows are of one if hardly any that are drawn from these are as near to each other, a share `by_chance`.
        """
        (X, weight), columns, (mass, scatter) = self.rows, np.arange(len(self.within)) != j, _scatter(rest)
        total = np.maximum(_scatter(self.rows)[1] / np.sum(weight), 1e-200)
        clustered = np.maximum(1 - self.within / total, 0) * (mass > 0)
        excess = clustered @ (scatter / np.maximum(mass * total, 1e-200) - 1 + clustered / 2)
        own, away = nearest_center(rest.X, self.centers)
        known, usual = nearest_center(X[:, columns], self.centers[:, columns])
        sizes = np.bincount(own, rest.weight), np.bincount(known, weight)
        n_own, n_usual = (np.exp(np.sum(entr(each / np.sum(each)))) for each in sizes)
        far = quantile(away, rest.weight) > ORDINARY * quantile(usual, weight)
        if (n := len(rest.X)) < CHANCE_ROWS:
            drawn = X[np.random.RandomState(0).randint(len(X), size=(DRAWS, n))]  # (DRAWS, n, p)
            spread = np.var(drawn, axis=1) @ (clustered / total)
            return bool(far or np.mean(spread <= clustered @ (scatter / np.maximum(mass * total, 1e-200))) < by_chance)
        return bool(far or excess < 0 or n_own - 1 < (n_usual - 1) / 2)


def nearest_center(X: Array, centers: Array) -> tuple[Array, Array]:
    """The number of the nearest centre, and its squared distance for each feature that was observed."""
    holed = np.any(np.isnan(X))  # squares are (K, n)
    squares = [np.nansum((X - each) ** 2, axis=1) for each in centers] if holed else cdist(centers, X, "sqeuclidean")
    return np.argmin(squares, axis=0), np.min(squares, axis=0) / np.maximum(np.sum(~np.isnan(X), axis=1), 1)


def _scatter(rows: Sample) -> tuple[Array, Array]:
    """Of each column the mass of what was observed, and its sum of squares around the mean, (p,) each."""
    (X, weight), known = rows, ~np.isnan(rows.X)
    mass = weight @ known
    middle = np.nansum(X * weight[:, None], axis=0) / np.maximum(mass, 1e-200)
    return mass, weight @ np.where(known, X - middle, 0.0) ** 2


def complete(sample: Sample, n_clusters: float, given: Array, one: float = 1.0) -> Sample:
    """A sample without missing values: its complete rows if they are enough, else all with their holes filled.

    Only the start is chosen on it; EM then takes every row as it is. A cluster in which some feature was never observed
    has no complete rows: rows that are unlike all of these are filled, too. Bad cells, which were no holes in what was
    `given`, are found in rows of all clusters. A row of the sample weighs `one`, or less if weights are small.
    """
    missing = np.isnan(sample.X)
    used = ~np.any(missing, axis=1)
    if round(sample.weight @ used / min(one, np.mean(sample.weight))) < COMPLETE_ROWS_PER_CLUSTER * n_clusters:
        used = ~np.all(missing, axis=1)
    elif np.any(np.isnan(given)):
        used |= _unlike(sample, used)
    if not np.any(missing[used]):
        return Sample(sample.X[used], sample.weight[used])
    ordered = canonical(Sample(np.where(missing, np.inf, sample.X)[used], sample.weight[used]))
    return Sample(_filled(np.where(np.isinf(ordered.X), np.nan, ordered.X)), ordered.weight)


def _unlike(sample: Sample, whole: Array) -> Array:
    """Rows farther from the complete ones than these are from each other, over the features they have, (n,)."""
    from sklearn.metrics.pairwise import nan_euclidean_distances  # 5 MB that complete rows can do without

    known = canonical(Sample(sample.X[whole], sample.weight[whole])).X
    known = known[:: -(-len(known) // DONORS)]
    apart = nan_euclidean_distances(known, squared=True)
    np.fill_diagonal(apart, np.inf)
    near = np.quantile(np.min(apart, axis=1), NEIGHBOURS) if len(known) > 1 else np.inf
    most = STRANGE ** (2 / known.shape[1]) * near
    found = np.zeros(len(whole), bool)  # rows without any value too
    found[~whole] = np.min(nan_euclidean_distances(sample.X[~whole], known, squared=True), axis=1) > most
    return found


def _filled(X: Array) -> Array:
    """Every hole filled from a row like the one most like it, in the features that both have, if it has the feature.

    Medians would gather rows of all clusters in the middle, where a search finds one cluster more, and values of the
    row most like it gather rows around donors. So two rows like that one are mixed, with shares that keep the variance,
    unless values are of few kinds. The second time rows are compared as they were filled.
    """
    from sklearn.metrics.pairwise import nan_euclidean_distances  # 5 MB that complete rows can do without

    filled, rng, donors = X, np.random.RandomState(0), X[:: -(-len(X) // DONORS)]
    holed, able = np.flatnonzero(np.any(np.isnan(X), axis=1)), [np.flatnonzero(~np.isnan(x)) for x in donors.T]
    for _ in range(FILLINGS):
        before, filled, seen = filled, X.copy(), filled[:: -(-len(X) // DONORS)]
        apart, most = np.nan_to_num(nan_euclidean_distances(seen, squared=True), nan=np.inf), MANY_LIKE
        ranks = (np.argpartition(apart[np.ix_(x, x)], min(most, len(x)) - 1) if len(x) else None for x in able)
        like = [None if order is None else order[:, :most] for order in ranks]
        for part in np.split(holed, range(DONORS, len(holed), DONORS)):
            unlike = np.nan_to_num(nan_euclidean_distances(before[part], seen, squared=True), nan=np.inf)
            for feature in range(X.shape[1]):
                holes, those = np.flatnonzero(np.isnan(X[part, feature])), like[feature]
                if len(holes) and those is not None:
                    choice, values = unlike[np.ix_(holes, able[feature])], donors[able[feature], feature]
                    found, nearest = np.isfinite(choice.min(axis=1)), choice.argmin(axis=1)
                    drawn = rng.randint(those.shape[1], size=(2, len(holes)))
                    one, other = (values[those[nearest, each]] for each in drawn)
                    if len(np.unique(values)) > DIFFERENT * len(values):
                        one = one + rng.uniform(*MIXED, len(one)) * (other - one)
                    filled[part[holes[found]], feature] = one[found]
    return np.nan_to_num(filled)  # 0 is the median, in the frame, where no donor has anything in common
