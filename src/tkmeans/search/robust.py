"""The robust search for a start: seed too many centres, drop the ones that are missed least, breathe.

On a bounded sample of the rows it minimises one number, the ICL of a spherical t
mixture with heavy tails, estimated cluster weights and a noise component; `search.hpp` writes
it out and holds the inner loops. Here is the order of events. The outcome is a
function of the canonical sample and the random state.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tkmeans.models.dof import BOUNDS, first_dof
from tkmeans.sources import Sample
from tkmeans.stats import Array

OVERSHOOT = 2.0  # first seeds per cluster
TRIALS = 3  # rows tried for each first seed
NOISE_REACH = 600.0  # noise begins at d2 = 600 p alpha: where a row stops pulling at centres
BREATH = 0.25  # centres added at a breath, as a share of the clusters
QUIET_BREATHS = 3  # breaths in a row without a real gain before the search stops
STARVING_BREATHS = 12  # as long as a centre has hardly any rows: it is better used elsewhere
TINY_CLUSTER = 0.02  # of an equal share of the rows: hardly any
REAL_GAIN = 0.003  # nats per row; less is polish, which EM does better
DOF_STARTS = (1.0, 1.4, 2.0, 3.0, 5.0)  # no higher: EM climbs to a large nu in a few steps, but creeps down from one
UNEQUAL = 0.02  # nats per row that estimated weights must gain


class Found(NamedTuple):
    """Where the search ended."""

    centers: Array  # (K, p)
    scale: float  # alpha of the t distribution with the dof below
    dof: float
    weights_differ: bool  # whether cluster weights are worth estimating
    weights: Array  # (K,) shares of the rows that are not noise
    path: dict[int, float]  # ICL by number of centres, from the overshoot down to 1; empty unless asked for


def robust_search(
    sample: Sample, n_clusters: int, rng: np.random.RandomState, dof: float | None = None, *, path: bool = False
) -> Found:
    """Centres that EM can start from with confidence.

    `sample` is canonical; `dof` is None if it is estimated. With `path`, the number of
    clusters can be chosen too: the criterion is followed on the way down.
    """
    sample = _with_weights_as_counts(sample)
    if len(sample.X) <= n_clusters:
        return _every_row_a_center(sample, n_clusters)
    state = _State(sample, n_clusters)
    many = min(math.ceil(OVERSHOOT * n_clusters), len(sample.X))
    state.seed(many, rng)
    state.refine(1)
    overshoot = state.snapshot()
    _exhale(state, n_clusters, rng)
    state.restore(_breathe(state, n_clusters, rng))
    state.refine(3)
    masses, nearest = state.masses_and_distances()
    centers, scale = state.snapshot()
    return Found(
        centers,
        *_scale_and_dof(nearest, sample.weight, sample.X.shape[1], scale, dof),
        _weights_differ(masses, float(np.sum(sample.weight))),
        _shares(masses),
        _icl_path(state, overshoot, float(np.sum(sample.weight))) if path else {},
    )


class Snapshot(NamedTuple):
    """A state to come back to."""

    centers: Array
    scale: float


class _State:
    """The native search, which draws no random numbers of its own."""

    def __init__(self, sample: Sample, n_clusters: int) -> None:
        from tkmeans.engines import native

        self.rows, self.dof = sample.X, first_dof(sample.X.shape[1])
        self._search = native.new_search(sample.X, sample.weight, n_clusters, self.dof, NOISE_REACH)

    @property
    def n_centers(self) -> int:
        return self._search.clusters

    @property
    def cost(self) -> float:
        return self._search.cost

    def seed(self, target: int, rng: np.random.RandomState) -> None:
        self._search.seed(target, rng.random_sample(1 + TRIALS * target), TRIALS)

    def refine(self, steps: int) -> None:
        self._search.refine(steps)

    def descend(self, target: int, floor: int, costs: Array | None = None) -> None:
        self._search.descend(target, floor, costs)

    def inhale(self, needed: int, extra: int, n_clusters: int, rng: np.random.RandomState) -> int:
        draws = max(16, n_clusters // 2)
        return self._search.inhale(needed, needed + extra, rng.random_sample(2 * self.n_centers + draws), draws)

    def fix_noise(self) -> None:
        self._search.fix_noise()

    def snapshot(self) -> Snapshot:
        centers = np.empty((self.n_centers, self.rows.shape[1]))
        self._search.read_centers(centers)
        return Snapshot(centers, self._search.scale)

    def restore(self, snapshot: Snapshot) -> None:
        self._search.restore(np.ascontiguousarray(snapshot.centers), snapshot.scale)

    def masses_and_distances(self) -> tuple[Array, Array]:
        masses, nearest = np.empty(self.n_centers), np.empty(len(self.rows))
        self._search.read_rows(masses, nearest)
        return masses, nearest


def _exhale(state: _State, n_clusters: int, rng: np.random.RandomState) -> None:
    """Down to n_clusters; below, and up again, if some centres are of no use where they are."""
    state.descend(n_clusters, floor=(n_clusters + 1) // 2)
    state.refine(1)
    if state.n_centers < n_clusters:
        state.inhale(n_clusters - state.n_centers, 0, n_clusters, rng)
        state.refine(1)


def _breathe(state: _State, n_clusters: int, rng: np.random.RandomState) -> Snapshot:
    """Add centres where they promise most, drop the cheapest again, keep the result if it costs less."""
    room = min(max(2, math.ceil(BREATH * n_clusters)), len(state.rows) - n_clusters)
    state.refine(1)
    state.fix_noise()  # states are compared against the noise level of the best one so far
    best, cost, complete = state.snapshot(), state.cost, state.n_centers == n_clusters
    quiet = 0
    while quiet < QUIET_BREATHS or (quiet < STARVING_BREATHS and _starves(state)):
        quiet += 1
        if not state.inhale(n_clusters - state.n_centers, room, n_clusters, rng):
            continue  # nothing promised enough; the next draw may
        state.refine(1)
        _exhale(state, n_clusters, rng)
        gain = cost - state.cost
        if state.n_centers == n_clusters and (gain > 0 or not complete):
            if gain > REAL_GAIN * len(state.rows) or not complete:
                quiet = 0
            state.fix_noise()
            best, cost, complete = state.snapshot(), state.cost, True
        else:
            state.restore(best)
    return best if complete else _filled_up(best, state.rows, n_clusters)


def _starves(state: _State) -> bool:
    """Whether some centre has hardly any rows."""
    masses, _ = state.masses_and_distances()
    return bool(np.min(masses) < TINY_CLUSTER * np.mean(masses))


def _filled_up(best: Snapshot, rows: Array, n_clusters: int) -> Snapshot:
    """Too few rows to choose from: the farthest ones become the missing centres."""
    centers = best.centers
    while len(centers) < n_clusters:
        nearest = np.min(np.sum((rows[:, None] - centers) ** 2, axis=2), axis=1)
        centers = np.vstack([centers, rows[np.argmax(nearest)]])
    return Snapshot(centers[:n_clusters], best.scale)


def _icl_path(state: _State, overshoot: Snapshot, total: float) -> dict[int, float]:
    """ICL at every number of centres: from the overshoot down to K + 1, and from the best K down to 1.

    Tiny components in many dimensions earn nothing, because the search measures a row's
    distance to the mean of the *other* rows of its cluster.
    """
    n_clusters, p, nu = state.n_centers, state.rows.shape[1], state.dof
    density = float(gammaln((nu + p) / 2) - gammaln(nu / 2)) - p / 2 * math.log(math.pi)
    best = state.snapshot()
    state.fix_noise()  # all numbers of centres are judged against the noise of the best
    costs = np.full(max(len(overshoot.centers), n_clusters), np.nan)
    state.restore(overshoot)
    state.descend(n_clusters, floor=n_clusters, costs=costs)
    state.restore(best)
    state.descend(1, floor=1, costs=costs)
    state.restore(best)
    n_parameters = (p + 1) * np.arange(1, len(costs) + 1) + 1
    icl = 2 * (costs - total * density) + n_parameters * math.log(total)
    return {k: float(value) for k, value in enumerate(icl, start=1) if np.isfinite(value)}


def _shares(masses: Array) -> Array:
    """Of the rows that are not noise; equal if all are."""
    total = np.sum(masses)
    return masses / total if total > 0 else np.full(len(masses), 1 / len(masses))


def _weights_differ(masses: Array, total: float) -> bool:
    """Whether cluster weights gain more log-likelihood than they cost, and than strays can fake.

    The cost is the BIC's. Contamination and overlap gave up to .013 nats per row where
    sizes are equal; true differences of 20 times gave .18 and more.
    """
    share = masses[masses > 0] / np.sum(masses)
    gain = float(np.sum(share * np.log(share * len(masses))))
    return gain > max(UNEQUAL, (len(masses) - 1) * math.log(max(total, 2)) / (2 * total))


def _scale_and_dof(d2: Array, weight: Array, p: int, scale: float, dof: float | None) -> tuple[float, float]:
    """The t distribution of the distances to the nearest centre: its scale, and its dof from a short list.

    It saves EM the slow walk of nu. Overlap shortens distances, so it is a start, not an
    estimate. Every scale is sought from the one that was found without the noise: with many
    strays there is a second, far too wide one.
    """
    known = np.isfinite(d2)  # a row that is a cluster of its own has no others to measure from
    d2, weight = d2[known], weight[known]
    if not np.any(d2 > 0):
        return scale, dof or BOUNDS[0]
    thin = slice(None, None, max(1, len(d2) // 3000))
    d2, weight = d2[thin], weight[thin] / np.sum(weight[thin])
    options = DOF_STARTS if dof is None else [dof]
    with np.errstate(over="ignore"):  # rows at the horizon over a scale of next to nothing: infinitely far
        starts = [(_scale_for(nu, d2, weight, p, scale), nu) for nu in options]
        return min(starts, key=lambda start: _loss(start[0], start[1], d2, weight, p))


def _scale_for(dof: float, d2: Array, weight: Array, p: int, scale: float) -> float:
    """A few steps of eqn:alpha, parameter-expanded, with the centres held."""
    for _ in range(8):
        u = weight / (dof + d2 / scale)
        scale = max(float(np.sum(u * d2) / (p * np.sum(u))), 1e-3 * scale)
    return scale


def _loss(scale: float, dof: float, d2: Array, weight: Array, p: int) -> float:
    """Minus the mean log-density, up to a constant."""
    log_norm = float(gammaln((dof + p) / 2) - gammaln(dof / 2)) - p / 2 * math.log(dof * scale)
    return (dof + p) / 2 * float(np.sum(weight * np.log1p(d2 / (dof * scale)))) - log_norm


def _with_weights_as_counts(sample: Sample) -> Sample:
    """Weights that sum to at least the number of rows: fractions of a row would look like noise."""
    return sample._replace(weight=sample.weight * max(1.0, len(sample.X) / np.sum(sample.weight)))


def _every_row_a_center(sample: Sample, n_clusters: int) -> Found:
    centers = sample.X[np.arange(n_clusters) % len(sample.X)]
    return Found(centers, 1e-6, BOUNDS[0], False, np.full(n_clusters, 1 / n_clusters), {})
