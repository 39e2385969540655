"""Which start is the best: several independent searches, and a short run of EM from each that differs.

A search ends in the best state of its own criterion, which has fixed tails: heavy ones, which far rows do not disturb,
or light ones, which see wide clusters and clusters that touch. Neither suits all data. So there are searches of
both kinds. Where the first two end in the same clusters, these are taken; where not, more searches follow, EM runs on
the sample from each, and the integrated classification likelihood decides: its tails are fitted, so that it
compares what the searches, with theirs given, cannot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.fit_warnings import TINY_CLUSTER
from tkmeans.models import Student
from tkmeans.models.dof import first_dof, least_dof
from tkmeans.search import Found, fitted_tails, robust_search
from tkmeans.search.seeding import quantile
from tkmeans.sources import ArraySource, Sample
from tkmeans.stats import Array, Block, Frame, Params

TAILS = (1.0, 10.0, 100.0)  # the nu of the searches, from heavy tails to those of k-means
ENOUGH = 2  # searches, if they agree
SAME = 0.9  # of the rows of each cluster in one cluster of the other, both ways: two searches agree
# Far rows look like wide clusters to light tails. Nothing is believed that puts most rows three times as far from
# their centres, or that has clusters of less than a tenth of an equal share; what is believed must be better by so many
# nats per row. None of this if it has clusters for rows that were left out, a share of all, and a centre for many.
WIDEST, SMALL_CLUSTER, HANDICAP = 10.0, 0.1, 0.15
EXPLAINED = 0.02
# Rows without a value so many deviations from its column's median are the core. Heaps of far rows are clusters to every
# search, and a small cluster far away is one too: the core is listened to if it gains so many nats per row
# for each feature, and in few features as many as for some.
FAR, CORE_GAIN, LEAST_FEATURES = 9.0, 0.06, 4
PILOT_DOF, PILOT_ITER, PILOT_TOL = 5.0, 30, 1e-4


class Agreement(NamedTuple):
    """How sure a start is."""

    n_searches: int
    n_agreeing: int  # that ended in the clusters of the best one
    margin: float  # by which it is better than the next best clusters, in nats per row; infinite if there are none


class Candidate(NamedTuple):
    """Clusters that some of the searches ended in."""

    found: Found
    labels: Array  # (n,)
    handicap: float = 0.0
    of_core: bool = False  # whether it was sought on the core alone
    n_searches: int = 1
    n_tiny: int = 0  # clusters that hold hardly any row
    merit: float = 0.0  # minus the ICL per row, halved, less the handicap
    core_merit: float = 0.0  # minus the ICL per row of the core, halved


def chosen_start(sample: Sample, n_clusters: int, dof: float | None, seed: int = 0) -> tuple[Found, Agreement]:
    """The best start for a canonical sample; the random numbers of the searches follow from `seed` alone."""
    rng, candidates, n_searches = np.random.RandomState(seed), list[Candidate](), 0
    core = within_reach(sample)
    core_weight = np.where(core, sample.weight, 0.0)
    parts = [sample] if np.all(core) else [sample, Sample(sample.X[core], sample.weight[core])]
    for tails in TAILS:
        if n_searches == ENOUGH * len(parts) and len(candidates) == 1:
            break
        for part in parts:
            found = robust_search(part, n_clusters, rng, max(tails, first_dof(sample.X.shape[1])), 1)
            labels = found.labels if part is sample else _nearest(sample.X, found.centers)
            handicap = 0.0 if tails == TAILS[0] else _handicap(found, candidates[0].found, part.weight)
            _count(candidates, Candidate(found, labels, handicap, part is not sample), core_weight)
            n_searches += 1
    if len(candidates) == 1:
        return fitted_tails(candidates[0].found, sample, dof), Agreement(n_searches, n_searches, np.inf)
    least = min(each.found.width for each in candidates)
    believed = [each for each in candidates if each.found.width <= WIDEST * least and each.handicap < np.inf]
    pilots = [_pilot(sample, core_weight, each, dof) for each in believed]
    return _best(pilots, core_weight, n_searches)


def _handicap(found: Found, heavy: Found, weight: Array) -> float:
    """What clusters that were found with light tails must be better by than those of heavy ones."""
    smallest = np.min(np.bincount(found.labels, weight, len(found.centers))) / np.sum(weight)
    if heavy.left_out - found.left_out > EXPLAINED and smallest >= EXPLAINED / 2:
        return 0.0
    return HANDICAP if smallest * len(found.centers) >= SMALL_CLUSTER else np.inf


def _best(pilots: list[Candidate], core_weight: Array, n_searches: int) -> tuple[Found, Agreement]:
    """The best for all rows; or one that was sought on the core, if that is much better for the core."""
    ended = list[Candidate]()
    for candidate in sorted(pilots, key=lambda each: (each.n_tiny, each.of_core, -each.merit)):
        _count(ended, candidate, core_weight)
    best, *others = ended
    margins = [best.merit - each.merit for each in others if not each.of_core and each.n_tiny == best.n_tiny]
    enough = best.core_merit + CORE_GAIN * max(best.found.centers.shape[1], LEAST_FEATURES)
    cores = [each for each in others if each.of_core and each.core_merit > enough and each.n_tiny <= best.n_tiny]
    if cores:
        best_of_all, best = best, max(cores, key=lambda each: each.core_merit)
        margins = [best.core_merit - best_of_all.core_merit]
    return best.found, Agreement(n_searches, best.n_searches, float(min(margins, default=np.inf)))


def within_reach(sample: Sample) -> Array:
    """Rows without a value that is far from its column's median, (n,): all of them, if they are not most rows."""
    X, weight = sample
    low, middle, high = (quantile(X, weight, share) for share in (0.25, 0.5, 0.75))
    away = np.abs(X - middle)
    width = np.maximum(quantile(away, weight) * 1.4826, (high - low) / 1.349)
    core = np.all(away <= np.where(width > 0, FAR * width, np.inf), axis=1)
    return core if weight @ core >= 0.5 * np.sum(weight) else np.ones(len(X), bool)


def _nearest(X: Array, centers: Array) -> Array:
    """The nearest centre of each row."""
    parts = np.array_split(X, 1 + len(X) * len(centers) // 2**20)
    return np.concatenate([np.argmin(cdist(rows, centers, "sqeuclidean"), axis=1) for rows in parts])


def _count(candidates: list[Candidate], new: Candidate, weight: Array) -> None:
    """Count a candidate with the one that has the same clusters, or append it."""
    for i, known in enumerate(candidates):
        if same_clusters(known.labels, new.labels, weight):
            candidates[i] = known._replace(n_searches=known.n_searches + new.n_searches)
            return
    candidates.append(new)


def same_clusters(one: Array, other: Array, weight: Array) -> bool:
    """Whether most rows of each cluster of one labelling are in one cluster of the other, and the other way."""
    table = np.zeros((np.max(one) + 1, np.max(other) + 1))
    np.add.at(table, (one, other), weight)
    return all(np.all(np.max(table, axis=axis) >= SAME * np.sum(table, axis=axis)) for axis in (0, 1))


def _pilot(sample: Sample, core_weight: Array, candidate: Candidate, dof: float | None) -> Candidate:
    """Where EM leads on the sample, and what that is worth to all rows and to the core."""
    (X, weight), found, (K, p) = sample, candidate.found, candidate.found.centers.shape
    least = least_dof(K, p, float(np.sum(weight)))
    model = Student(
        engine=engines.select("auto"),
        estimate_dof=dof is None,
        estimate_weights=True,
        least_dof=least,
        scale_floor=1e-20,
    )
    start = Params(found.centers, max(found.width, 1e-20), dof or max(PILOT_DOF, least), np.full(K, -np.log(K)))
    block = Block(X, weight, Frame(np.zeros(p), 1.0))
    fit: Any = em(ArraySource(*block), model, start, stop=SmallGain(PILOT_TOL), max_iter=PILOT_ITER)
    if fit.interrupted:  # of a start nothing is kept
        raise fit.interrupted
    params, kernel = fit.params, model.kernel(fit.params)
    labels = np.asarray(model.engine.rows(block, params, kernel).label)
    of_core = model.engine.summarize(block._replace(weight=core_weight), params, kernel)
    merit, core_merit = (float((stats.objective - stats.entropy) / stats.total) for stats in (fit.stats, of_core))
    sizes = np.bincount(labels, weight, K)
    return candidate._replace(
        found=found._replace(centers=params.centers, scale=params.scale, dof=params.dof),
        labels=labels,
        n_tiny=int(np.count_nonzero(sizes < TINY_CLUSTER * np.mean(sizes))),
        merit=merit - candidate.handicap,
        core_merit=core_merit,
    )
