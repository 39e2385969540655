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

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.models import Student
from tkmeans.models.dof import first_dof, least_dof
from tkmeans.search import Found, fitted_tails, robust_search
from tkmeans.sources import ArraySource, Sample
from tkmeans.stats import Array, Block, Frame, Params

TAILS = (1.0, 10.0, 100.0)  # the nu of the searches, from heavy tails to those of k-means
ENOUGH = 2  # searches, if they agree
SAME = 0.9  # of the rows of each cluster in one cluster of the other, both ways: two searches agree
# Far rows look like wide clusters to light tails. Nothing is believed that puts most rows three times as far from
# their centres, and what is believed must be better by so many nats per row.
WIDEST, HANDICAP = 10.0, 0.1
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
    handicap: float
    n_searches: int = 1
    merit: float = 0.0  # minus the ICL per row, halved, less the handicap


def chosen_start(sample: Sample, n_clusters: int, dof: float | None, seed: int = 0) -> tuple[Found, Agreement]:
    """The best start for a canonical sample; the random numbers of the searches follow from `seed` alone."""
    rng, candidates, n_searches = np.random.RandomState(seed), list[Candidate](), 0
    for tails in TAILS:
        if n_searches == ENOUGH and len(candidates) == 1:
            break
        found = robust_search(sample, n_clusters, rng, max(tails, first_dof(sample.X.shape[1])))
        _count(candidates, Candidate(found, found.labels, HANDICAP * (n_searches > 0)), sample.weight)
        n_searches += 1
    if len(candidates) == 1:
        return fitted_tails(candidates[0].found, sample, dof), Agreement(n_searches, n_searches, np.inf)
    least, ended = min(each.found.width for each in candidates), list[Candidate]()
    pilots = [_pilot(sample, each, dof) for each in candidates if each.found.width <= WIDEST * least]
    for candidate in sorted(pilots, key=lambda each: -each.merit):
        _count(ended, candidate, sample.weight)
    margin = ended[0].merit - ended[1].merit if len(ended) > 1 else np.inf
    return ended[0].found, Agreement(n_searches, ended[0].n_searches, float(margin))


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


def _pilot(sample: Sample, candidate: Candidate, dof: float | None) -> Candidate:
    """Where EM leads on the sample, and what that is worth."""
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
    params, stats = fit.params, fit.stats
    labels = np.asarray(model.engine.rows(block, params, model.kernel(params)).label)
    merit = (stats.objective - stats.entropy) / stats.total - candidate.handicap
    found = found._replace(centers=params.centers, scale=params.scale, dof=params.dof)
    return candidate._replace(found=found, labels=labels, merit=float(merit))
