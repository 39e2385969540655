"""The robust search for starting centres: seed too many, drop the ones that are missed least, breathe.

On a bounded sample of the rows it minimises one number, the ICL of a spherical t
mixture with heavy tails, estimated cluster weights and a noise component; `criterion.py`
defines it, `search.hpp` holds the inner loops, which draw no random numbers of their own, and `reference_search.py`
the same in Python. Here is the order of events. The outcome is a function of the canonical sample and the random state.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tkmeans import engines
from tkmeans.fit_warnings import TINY_CLUSTER
from tkmeans.models.dof import BOUNDS, first_dof
from tkmeans.search.criterion import NOISE_REACH
from tkmeans.search.reference_search import ReferenceSearch
from tkmeans.sources.base import Sample, quantile
from tkmeans.stats import Array

Search = ReferenceSearch  # or the native one, which has the same methods and may be missing

OVERSHOOT = 2.0  # first seeds per cluster
TRIALS = 3  # rows tried for each first seed
BREATH = 0.25  # centres added at a breath, as a share of the clusters
QUIET_BREATHS = 3  # breaths in a row without a real gain before the search stops
STARVING_BREATHS = 12  # as long as a centre has hardly any rows: it is better used elsewhere
REAL_GAIN = 0.01  # nats per row; less is polish, which EM does better
DOF_STARTS = (1.0, 1.4, 2.0, 3.0, 5.0)  # no higher: EM climbs to a large nu in a few steps, but creeps down from one
SCALE_STEPS, TAIL_ROWS = 5, 500  # of a start's scale and dof, and rows that show them, at least
LEFT_OUT = 100.0  # times the median squared distance: a row that belongs to no centre
SAME = 0.9  # of the rows of each cluster in one cluster of the other, both ways: two searches agree
UNEQUAL = 0.02  # nats per row that estimated weights must gain


class Found(NamedTuple):
    """Where the search ended."""

    centers: Array  # (K, p)
    scale: float  # alpha of the t distribution with the dof below
    dof: float
    weights_differ: bool  # whether cluster weights are worth estimating
    labels: Array  # (n,) the nearest centre of each row
    nearest: Array  # (n,) its squared distance from the mean of the other rows there
    width: float  # the median squared distance, per feature
    left_out: float  # share of the rows that are more than ten times as far


def robust_search(
    sample: Sample,
    n_clusters: int,
    rng: np.random.RandomState,
    tails: float | None = None,
    quiet_breaths: int = QUIET_BREATHS,
    seconds: float = math.inf,
    start: Found | None = None,
    least_scale: float = 0.0,
) -> Found:
    """Centres that EM can start from with confidence, for a canonical sample.

    `tails` is the nu of the criterion, heavy if None. The scale is at least `least_scale`. A search may give up after
    fewer `quiet_breaths`; with none centres may be fewer. It may `start` where another ended. A native one raises
    TimeoutError after so many `seconds`.
    """
    # Weights sum to at least the number of rows: fractions of a row would look like noise.
    sample = sample._replace(weight=sample.weight * max(1.0, len(sample.X) / np.sum(sample.weight)))
    n_rows, p = sample.X.shape
    tails = tails or first_dof(p)
    if n_rows <= n_clusters:  # every row is a centre
        rows = np.arange(n_clusters) % n_rows
        return Found(sample.X[rows], 1e-6, BOUNDS[0], False, rows[:n_rows], np.zeros(n_rows), 0.0, 0.0)
    search = _new_search(sample, n_clusters, tails, seconds, least_scale)
    if start is None:
        many = min(math.ceil(OVERSHOOT * n_clusters), n_rows)
        search.seed(many, rng.random_sample(1 + TRIALS * many), TRIALS)
        search.refine(1)
        _exhale(search, n_clusters, rng)
    else:
        search.restore(start.centers, start.scale)
    if quiet_breaths:
        _breathe(search, sample, n_clusters, quiet_breaths, rng)
    search.refine(3 if start is None else 1)
    centers, scale, masses, nearest, labels = _state(search, sample)
    total, middle = float(np.sum(sample.weight)), float(quantile(nearest, sample.weight))
    left_out = float(np.sum(sample.weight[nearest > LEFT_OUT * middle])) / total
    # Whether cluster weights gain more log-likelihood than they cost (the BIC's price), and than strays can fake:
    # contamination and overlap gave up to .013 nats per row where sizes are equal, differences of 20 times .18 or more.
    share = masses[masses > 0] / np.sum(masses)
    gain = float(np.sum(share * np.log(share * len(masses))))
    differ = gain > max(UNEQUAL, (len(masses) - 1) * math.log(max(total, 2)) / (2 * total))
    return Found(centers, scale, tails, differ, labels, nearest, middle / p, left_out)


def _new_search(sample: Sample, n_clusters: int, tails: float, seconds: float, least: float) -> Search:
    engine, asked = engines.select("auto"), (*sample, n_clusters, tails)
    own = engine.NAME == "native"
    return engine.new_search(*asked, NOISE_REACH, seconds, least) if own else ReferenceSearch(*asked, least)


def _exhale(search: Search, n_clusters: int, rng: np.random.RandomState) -> None:
    """Down to n_clusters; below, and up again, if some centres are of no use where they are."""
    search.descend(n_clusters, (n_clusters + 1) // 2)
    search.refine(1)
    if search.clusters < n_clusters:
        _inhale(search, n_clusters, 0, rng)
        search.refine(1)


def _inhale(search: Search, n_clusters: int, extra: int, rng: np.random.RandomState) -> int:
    """Add the centres that are missing, and up to `extra` more if they promise enough; return how many."""
    needed, draws = n_clusters - search.clusters, max(16, n_clusters // 2)
    return search.inhale(needed, needed + extra, rng.random_sample(2 * search.clusters + draws), draws)


def _breathe(search: Search, sample: Sample, n_clusters: int, quiet_breaths: int, rng: np.random.RandomState) -> None:
    """Add centres where they promise most, drop the cheapest again, keep the result if it costs less."""
    n_rows = len(sample.X)
    room = min(max(2, math.ceil(BREATH * n_clusters)), n_rows - n_clusters)
    search.refine(1)
    search.fix_noise()  # states are compared against the noise level of the best one so far
    best, cost, complete, quiet = _state(search, sample)[:2], search.cost, search.clusters == n_clusters, 0
    while quiet < STARVING_BREATHS:
        if quiet >= quiet_breaths and (masses := _state(search, sample)[2]).min() >= TINY_CLUSTER * masses.mean():
            break  # no centre has hardly any rows
        if quiet_breaths > 1 and search.scale < math.inf:  # a quick one takes prices as the last descent left them
            search.restore(*_state(search, sample)[:2])
        quiet += 1
        if not _inhale(search, n_clusters, room, rng):
            continue  # nothing promised enough; the next draw may
        search.refine(1)
        _exhale(search, n_clusters, rng)
        gain = cost - search.cost
        if search.clusters == n_clusters and (gain > 0 or not complete):
            if gain > REAL_GAIN * n_rows or not complete:
                quiet = 0
            search.fix_noise()
            best, cost, complete = _state(search, sample)[:2], search.cost, True
        else:
            search.restore(*best)
    if not complete:  # too few rows to choose from: the farthest ones become the missing centres
        centers, scale = best
        while len(centers) < n_clusters:
            nearest = np.min(np.sum((sample.X[:, None] - centers) ** 2, axis=2), axis=1)
            centers = np.vstack([centers, sample.X[np.argmax(nearest)]])
        search.restore(centers[:n_clusters], scale)


def _state(search: Search, sample: Sample) -> tuple[Array, float, Array, Array, Array]:
    """Centres, (K, p), scale, cluster weights, (K,), how far each row is, (n,): `criterion.distances`, and labels."""
    (n_rows, p), n_clusters = sample.X.shape, search.clusters
    centers, rows = np.empty((n_clusters, p)), (np.empty(n_clusters), np.empty(n_rows), np.empty(n_rows, np.int64))
    search.read_centers(centers)
    search.read_rows(*rows)
    return centers, search.scale, *rows


def fitted_tails(found: Found, sample: Sample, dof: float | None, starts: tuple[float, ...] = DOF_STARTS) -> Found:
    """The same with the t distribution of the distances to the nearest centre: its scale, its dof from a short list.

    It saves EM the slow walk of nu; `dof` is None if it is estimated. Overlap shortens distances, so it is a start, not
    an estimate. Scales are sought from the one found without the noise: with many strays there is one far too wide.
    """
    known = np.isfinite(found.nearest)  # a row that is a cluster of its own has no others to measure from
    d2, weight, p = found.nearest[known], sample.weight[known], found.centers.shape[1]
    if not np.any(d2 > 0):
        return found._replace(dof=dof or BOUNDS[0])
    thin = slice(None, None, max(1, len(d2) // TAIL_ROWS))
    d2, weight = d2[thin], weight[thin] / np.sum(weight[thin])
    nu = np.array(starts if dof is None else [dof])[:, None]
    scale = np.full(len(nu), found.scale)
    with np.errstate(over="ignore"):  # rows at the horizon over a scale of next to nothing: infinitely far
        for _ in range(SCALE_STEPS):  # eqn:alpha, parameter-expanded, with the centres held
            u = weight / (nu + d2 / scale[:, None])
            scale = np.maximum(u @ d2 / (p * u.sum(axis=1)), 1e-3 * scale)
        spread = nu * scale[:, None]
        log_norm = gammaln((nu + p) / 2) - gammaln(nu / 2) - p / 2 * np.log(spread)
        loss = (nu + p)[:, 0] / 2 * (np.log1p(d2 / spread) @ weight) - log_norm[:, 0]  # minus the mean log-density
    best = int(np.argmin(loss))
    return found._replace(scale=float(scale[best]), dof=float(nu[best, 0]))


def is_better(other: Found, known: Found, sample: Sample, least_scale: float = 0.0) -> bool:
    """Whether what another search found is better by the criterion of the one that found what is known, too."""
    search, costs = _new_search(sample, len(known.centers), known.dof, math.inf, least_scale), list[float]()
    for each in (known, other):
        search.restore(each.centers, each.scale)
        search.refine(3)
        costs.append(search.cost)
        search.fix_noise()  # for the other, at the level of what is known
    return costs[1] < costs[0]


def same_clusters(one: Array, other: Array, weight: Array) -> bool:
    """Whether most rows of each cluster of one labelling are in one of the other, all but tiny ones each in another."""
    n = int(other.max()) + 2  # the first row and the first column are for -1, which is no cluster
    table = np.bincount((one + 1) * n + other + 1, weight, (int(one.max()) + 2) * n).reshape(-1, n)
    for t in (table[1:], table.T[1:]):
        mass, most = t.sum(axis=1), t[:, 1:].max(axis=1)
        place = t[:, 1:].argmax(axis=1)[mass >= TINY_CLUSTER * (mass.sum() / len(mass))].tolist()
        if (most < SAME * mass).any() or len({*place}) < len(place):
            return False
    return True
