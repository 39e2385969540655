"""The choice of a start: searches with heavy and with light tails, compared until they agree.

A search ends in the best state of its own criterion, which has fixed tails: heavy ones, which far rows do not disturb,
or light ones, which see wide clusters and clusters that touch. Where the first two, one of each kind, end in the same
clusters, these are taken; where not, more searches follow, EM runs on the sample from each, and the integrated
classification likelihood decides: its tails are fitted.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.fit_warnings import TINY_CLUSTER
from tkmeans.fitting.incomplete_rows import FEW
from tkmeans.models import Student
from tkmeans.models.dof import first_dof, least_dof
from tkmeans.search import Found, fitted_tails, is_better, robust_search, same_clusters
from tkmeans.search.center_search import DOF_STARTS, LEFT_OUT
from tkmeans.sources import ArraySource, Sample
from tkmeans.sources.base import NARROW, usual
from tkmeans.stats import Array, Block, Frame, Params

TAILS = (1.0, 100.0, 10.0)  # the nu of the searches: heavy tails, those of k-means, and between
ENOUGH = 2  # searches, if they agree
# Of a sample with more cells x clusters than LARGE, the first searches see some of the rows: as many as this.
# Where they agree, clusters are clear, and the distances show how light the tails are.
LARGE, FEW_ROWS, FEW_ROWS_PER_CLUSTER = 3e5, 1000, 25
VERY_LARGE, SOME_CLUSTERS = 2e7, 100  # where they are enough; of very many clusters so many are looked for again
CLEAR_DOF_STARTS = (*DOF_STARTS, 20.0, 200.0)
# Light tails take far rows for wide clusters. Their clusters are rejected if one has less than SMALL_CLUSTER of an
# equal share, and must be better than those of heavy tails by HANDICAP nats per row; neither holds if they explain
# EXPLAINED of the rows more, have no more clusters of far rows, or are better by the criterion of heavy tails, too. Any
# candidate is rejected if the median squared distance from the centres is more than WIDEST times the least.
WIDEST, SMALL_CLUSTER, HANDICAP, EXPLAINED = 10.0, 0.1, 0.15, 0.02
# The core is the rows without a value more than FAR deviations from its column's median. To every search a heap of far
# rows is a cluster, and so is a small true cluster far away. Clusters that were sought on the core are taken if the
# core gains CORE_GAIN nats per row and feature by them, with at least LEAST_FEATURES features counted.
FAR, CORE_GAIN, LEAST_FEATURES = 6.0, 0.06, 4
# Rows that the first search leaves out, up to LONELY of all, do not belong to the core either, unless more than FEW of
# them, or of rows NOT_QUITE as far, are within twice the median distance of each other, as in a small cluster.
LONELY, MOST_LONELY, BESIDE, NOT_QUITE = 0.05, 2000, 4.0, 0.25
# The second search is made on so many rows first. If it ends in the clusters of the first, all rows add nothing.
QUICK_ROWS, QUICK_ROWS_PER_CLUSTER, EVERY = 1000, 50, slice(None)
PILOT_DOF, PILOT_ITER, PILOT_TOL, CLIMB_TOL = 5.0, 30, 1e-4, 1e-6  # the last where EM on many rows follows


class Agreement(NamedTuple):
    """How sure a start is."""

    n_searches: int
    n_agreeing: int  # that ended in the clusters of the best one
    margin: float  # by which it is better than the next best clusters, in nats per row; infinite if there are none


class Candidate(NamedTuple):
    """Clusters that some of the searches ended in."""

    found: Found
    labels: Array  # (n,) -1 for rows that it was not sought on
    reached: Array  # (n,) rows that it was sought on, without those that belong to no centre
    n_far: int = 0  # clusters that lie outside of the core
    handicap: float = 0.0
    of_core: bool = False  # whether it was sought on the core alone
    in_core: bool = False  # whether it was found there, too
    n_searches: int = 1
    n_tiny: int = 0  # clusters that hold hardly any row
    least: float = np.inf  # rows in the smallest cluster
    merit: float = 0.0  # minus the ICL per row, halved, less the handicap
    core_merit: float = 0.0  # minus the ICL per row of the core, halved


class Asked(NamedTuple):
    """A search to make."""

    tails: float
    rows: Any = EVERY  # indices, where they are not all
    quick: bool = False  # whether it counts only if it agrees


@dataclass(eq=False)
class StartChoice:
    """The searches of a canonical sample so far, the clusters in which they ended, and what comes of them.

    If EM is to `climb`, it runs on the sample before it runs on all rows. `spread` is the sample's, if it is known; no
    scale is below `least`. When the time is up, the first clusters are taken; TimeoutError if there are none.
    """

    sample: Sample
    K: int
    dof: float | None  # None if it is estimated
    rng: np.random.RandomState
    limit: Any = None  # of the time
    climb: bool = False
    spread: Any = None
    least: float = 0.0

    def __post_init__(self) -> None:
        self.candidates, self._ends = list[Candidate](), dict[int, Candidate]()
        self.first: Found | None = None  # what is taken when the time is up
        self.seen, self.core_weight = self.sample, self.sample.weight  # rows on which it was found; of rows of the core
        size = self.sample.X.size * self.K
        times = round(len(self.sample.X) / max(FEW_ROWS, FEW_ROWS_PER_CLUSTER * self.K)) if size > LARGE else 1
        self.step = times if times > 2 else 1  # of the rows that a search sees first; half of them take as long as all

    @property
    def n_searches(self) -> int:
        """How many searches count."""
        return sum(each.n_searches for each in self.candidates)

    def result(self) -> tuple[Found, Agreement]:
        """Search until enough searches agree, or until all that may help were made; the best of what they found."""
        plan = [Asked(TAILS[0])]
        try:
            while plan:
                asked = plan.pop(0)
                found = self._search(asked)
                if found is not None:
                    plan = plan if self.candidates else self._planned(found)
                    self._add(asked, found)
                    if asked.quick and len(self.candidates) == 1:
                        del plan[0]  # the same on more rows
                    elif asked.quick:
                        del self.candidates[1]
                    if alike := self._two_that_end_alike():
                        return alike
                if [self.n_searches] == [ENOUGH * (1 + (each.n_far > 0)) for each in self.candidates]:
                    break
        except TimeoutError:
            if self.limit:
                self.limit.has_cut = True
            if self.first is None:
                raise
            return fitted_tails(self.first, self.seen, self.dof), Agreement(max(self.n_searches, 1), 1, np.inf)
        if len(self.candidates) > 1:
            return self._likeliest()
        (only,), tails = self.candidates, DOF_STARTS if self.step <= 1 else CLEAR_DOF_STARTS
        found = self._pilot(only).found if self.climb else fitted_tails(only.found, self.seen, self.dof, tails)
        return found, Agreement(self.n_searches, self.n_searches, np.inf)

    def _search(self, asked: Asked) -> Found | None:
        """What a search finds; None if a few of its rows have shown enough."""
        part, start = Sample(self.sample.X[asked.rows], self.sample.weight[asked.rows]), None
        how = max(asked.tails, first_dof(part.X.shape[1])), 1  # the tails, and quiet breaths
        if self.step > 1:  # a few of the rows lead to where all begin
            few, draw = Sample(part.X[:: self.step], part.weight[:: self.step]), np.random.RandomState(self.n_searches)
            start = robust_search(few, self.K, draw, *how, getattr(self.limit, "left", np.inf), None, self.least)
            sizes = np.bincount(start.labels, few.weight, self.K)
            if np.min(sizes) < SMALL_CLUSTER * np.mean(sizes):
                start = None  # they were too few
            elif not self.candidates:
                self.first, self.seen = start, few
                if self.sample.X.size * self.K > VERY_LARGE and _is_clear(few, start, self.spread, self.limit):
                    self.candidates = [Candidate(start, start.labels, start.labels >= 0, n_searches=ENOUGH)]
                    return None
            elif same_clusters(self.candidates[0].labels[asked.rows][:: self.step], start.labels, few.weight):
                again = self.candidates[0]._replace(n_searches=1, in_core=asked.rows is not EVERY)
                _count(self.candidates, again, self.sample.weight)
                return None
        return robust_search(part, self.K, self.rng, *how, getattr(self.limit, "left", np.inf), start, self.least)

    def _planned(self, first: Found) -> list[Asked]:
        """The searches after the first: heavy tails suit all rows and light ones the core, so these come first."""
        X, weight = self.sample
        inner = np.flatnonzero(within_reach(self.sample, self.spread, first))
        plan = [Asked(tails) for tails in TAILS[1:]]
        if len(inner) < len(X):
            self.core_weight = np.bincount(inner, weight[inner], len(X))
            others = [] if np.all(within_reach(self.sample, self.spread)) else [Asked(TAILS[0], inner)]
            plan = [Asked(TAILS[1], inner), *others, *plan, *(each._replace(tails=TAILS[2]) for each in others)]
        if self.step <= 1 < (times := len(inner) // max(QUICK_ROWS, QUICK_ROWS_PER_CLUSTER * self.K)):
            plan.insert(0, Asked(TAILS[1], inner[::times], quick=True))
        return plan

    def _add(self, asked: Asked, found: Found) -> None:
        """Count what a search of the rows found; with light tails perhaps as worse than it is, or not at all."""
        (X, weight), rows, in_core = self.sample, asked.rows, asked.rows is not EVERY
        labels, reached, handicap = np.full(len(X), -1), np.zeros(len(X), bool), 0.0
        labels[rows], reached[rows] = found.labels, found.nearest <= LEFT_OUT * found.width * X.shape[1]
        of_all, of_core = (np.bincount(labels[reached], mass[reached], self.K) for mass in (weight, self.core_weight))
        n_far = int(np.count_nonzero(of_core < 0.5 * of_all))
        heavy = self.candidates[0] if self.candidates else None
        if heavy and asked.tails > TAILS[0] and not 0 < n_far <= heavy.n_far:
            smallest = np.min(np.bincount(found.labels, weight[rows], self.K)) / np.sum(weight[rows])
            handicap = HANDICAP if smallest * self.K >= SMALL_CLUSTER else np.inf
            if heavy.found.left_out - found.left_out > EXPLAINED and smallest >= EXPLAINED / 2:
                handicap = 0.0
        _count(self.candidates, Candidate(found, labels, reached, n_far, handicap, in_core, in_core), weight)
        self.first, self.seen = self.candidates[0].found, self.sample

    def _pilot(self, each: Candidate) -> Candidate:
        """Where EM leads from a candidate, less its handicap."""
        end = self._ends.get(id(each.found))
        if end is None:
            tol = CLIMB_TOL if self.climb else PILOT_TOL
            end = self._ends[id(each.found)] = _pilot(self.sample, self.core_weight, each, self.dof, tol, self.least)
        counted: Any = {"n_searches": each.n_searches, "of_core": each.of_core, "in_core": each.in_core}
        return end._replace(**counted, merit=end.merit - each.handicap)

    def _two_that_end_alike(self) -> tuple[Found, Agreement] | None:
        """The better of the first two, if EM leads from both to the same clusters and none of these is tiny."""
        two = self.candidates if self.n_searches == len(self.candidates) == ENOUGH else []
        if not two or two[0].n_far or two[1].handicap == np.inf:
            return None
        one, other = pilots = [self._pilot(each) for each in two]
        if one.n_tiny + other.n_tiny or not same_clusters(one.labels, other.labels, self.sample.weight):
            return None
        return _best(pilots, self.sample.weight, self.n_searches)

    def _likeliest(self) -> tuple[Found, Agreement]:
        """The best by where EM leads, of those that are believed and are not much wider than others."""
        first, *others = self.candidates
        accepted = [first]
        for each in others:
            if each.handicap and not each.of_core and is_better(each.found, first.found, self.sample, self.least):
                each = each._replace(handicap=0.0)  # heavy tails would have taken it, had they found it
            accepted += [each] * (each.handicap < np.inf)
        widest = WIDEST * max(self.least, min(each.found.width for each in accepted if not each.of_core))
        pilots = [self._pilot(each) for each in accepted if each.found.width <= widest]
        return _best(pilots, self.sample.weight, self.n_searches)


def _is_clear(sample: Sample, found: Found, spread: Any, limit: Any) -> bool:
    """Whether light tails find the clusters of heavy ones, none of far rows: of very many, those in the middle."""
    (X, weight), (K, p) = sample, found.centers.shape
    inner, reached = within_reach(sample, spread, found), weight * (found.nearest <= LEFT_OUT * found.width * p)
    if np.any(2 * np.bincount(found.labels, inner * reached, K) < np.bincount(found.labels, reached, K)):
        return False
    away = np.sum((found.centers - np.median(found.centers, axis=0)) ** 2, axis=1)
    some = np.argsort(away, kind="stable")[: K if K < 2 * SOME_CLUSTERS else SOME_CLUSTERS]
    rows = inner & np.isin(found.labels, some)
    part, nu = Sample(X[rows], weight[rows]), max(TAILS[1], first_dof(p))
    other = robust_search(part, len(some), np.random.RandomState(1), nu, 1, getattr(limit, "left", np.inf))
    return same_clusters(found.labels[rows], other.labels, part.weight)


def _best(pilots: list[Candidate], weight: Array, n_searches: int) -> tuple[Found, Agreement]:
    """The best for all rows; or one that was sought on the core, if that is much better for the core.

    Tiny clusters most likely hold outliers, but not if they are more than a FEW rows, and both all rows and the core
    are likelier with them.
    """
    ended = list[Candidate]()
    for candidate in sorted(pilots, key=lambda each: (each.n_tiny, -each.merit)):
        _count(ended, candidate, weight)
    of_all, of_core = ended[0].merit, ended[0].core_merit
    likelier = [each for each in ended[1:] if each.least > FEW and each.merit > of_all and each.core_merit > of_core]
    best = max(likelier or ended[:1], key=lambda each: each.merit)
    others = [each for each in ended if each is not best]
    margins = [best.merit - each.merit for each in others if not each.of_core and each.n_tiny == best.n_tiny]
    enough = best.core_merit + CORE_GAIN * max(best.found.centers.shape[1], LEAST_FEATURES)
    cores = [each for each in others if each.in_core and each.core_merit > enough and each.n_tiny <= best.n_tiny]
    if cores:
        best_of_all, best = best, max(cores, key=lambda each: each.core_merit)
        margins = [best.core_merit - best_of_all.core_merit]
    return best.found, Agreement(n_searches, best.n_searches, float(min(margins, default=np.inf)))


def within_reach(sample: Sample, spread: tuple[Array, Array, Array] | None = None, found: Found | None = None) -> Array:
    """Rows without a value that is far from its column's median, (n,): all of them, if they are not most rows.

    Rows that a search has left out are far, too, if they are few and none has others beside it as in a small cluster.
    """
    X, weight = sample
    middle, below, above = (each[:, None] for each in spread or usual(sample))
    away = np.asarray(X.T, order="C" if X.shape[1] < NARROW else "K") - middle  # (p, n)
    away /= np.where(away < 0, -below, above)
    most = (FAR / 2 * (X.shape[1] ** 0.5 + 1)) ** 2
    core = (np.max(away, axis=0) <= FAR) & (np.einsum("ji,ji->i", away, away) <= most)
    core = core if weight @ core >= 0.5 * np.sum(weight) else np.ones(len(X), bool)
    if found is not None and FEW / np.sum(weight) < found.left_out <= LONELY:
        usual_d2 = found.width * X.shape[1]
        left, near = (np.flatnonzero(found.nearest > share * LEFT_OUT * usual_d2) for share in (1.0, NOT_QUITE))
        some, near = (each[:: -(-len(each) // MOST_LONELY)] for each in (left, near))  # they show as much as all
        core[left] &= np.max((cdist(X[some], X[near], "sqeuclidean") < BESIDE * usual_d2) @ weight[near]) > FEW
    return core


def _count(candidates: list[Candidate], new: Candidate, weight: Array) -> None:
    """Count a candidate with the one that has the same clusters of the rows that both have reached, or append it.

    If a cluster that is not tiny holds more of the others, all rows that both have seen are compared.
    """
    for i, known in enumerate(candidates):
        both = known.reached & new.reached
        counted = reached = np.where(both, weight, 0.0)
        if not np.all(both):
            seen = np.where((known.labels >= 0) & (new.labels >= 0), weight, 0.0)
            for each in (known, new):
                sizes, within = (np.bincount(each.labels + 1, mass)[1:] for mass in (seen, reached))
                if np.any((2 * within < sizes) & (sizes >= TINY_CLUSTER * np.mean(sizes))):
                    counted = seen
        if same_clusters(known.labels, new.labels, counted):
            of_core, in_core = known.of_core and new.of_core, known.in_core or new.in_core
            n_searches = known.n_searches + new.n_searches
            candidates[i] = known._replace(n_searches=n_searches, of_core=of_core, in_core=in_core)
            return
    candidates.append(new)


def _pilot(sample: Sample, core_weight: Array, candidate: Candidate, dof: Any, tol: float, least: float) -> Candidate:
    """Where EM leads on the sample, and what that is worth to all rows and to the core."""
    (X, weight), found, (K, p) = sample, candidate.found, candidate.found.centers.shape
    nu, engine, least = least_dof(K, p, float(np.sum(weight))), engines.select("auto"), max(least, 1e-20)
    model = Student(engine=engine, estimate_dof=dof is None, estimate_weights=True, least_dof=nu, scale_floor=least)
    start = Params(found.centers, max(found.width, least), dof or max(PILOT_DOF, nu), np.full(K, -np.log(K)))
    block = Block(X, weight, Frame(np.zeros(p), 1.0))
    fit: Any = em(ArraySource(*block), model, start, stop=SmallGain(tol), max_iter=PILOT_ITER)
    if fit.interrupted:  # of a start nothing is kept
        raise fit.interrupted
    params, kernel = fit.params, model.kernel(fit.params)
    labels, of_core = np.asarray(model.engine.rows(block, params, kernel, brief=params.dof < 1e9).label), fit.stats
    if core_weight is not weight:
        of_core = model.engine.summarize(block._replace(weight=core_weight), params, kernel)
    # Without the digits that are rounding errors, so that of equals the first one is the best everywhere.
    merit, core_merit = (round((each.objective - each.entropy) / each.total, 9) for each in (fit.stats, of_core))
    sizes = np.bincount(labels, weight, K)
    found = found._replace(centers=params.centers, scale=params.scale, dof=params.dof)
    n_tiny = int(np.count_nonzero(sizes < TINY_CLUSTER * np.mean(sizes)))
    merits = {"merit": merit, "core_merit": core_merit, "least": float(np.min(sizes))}
    return candidate._replace(found=found, labels=labels, n_tiny=n_tiny, **merits)
