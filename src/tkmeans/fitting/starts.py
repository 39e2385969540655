"""Starting parameters of each EM run, from `init` and `n_init`: by searches, a seeding or the user.

A search ends in the best state of its own criterion, which has fixed tails: heavy ones, which far rows do not disturb,
or light ones, which see wide clusters and clusters that touch. Where the first two, one of each kind, end in the same
clusters, these are taken; where not, more searches follow, EM runs on the sample from each, and the integrated
classification likelihood decides: its tails are fitted.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.fit_warnings import TINY_CLUSTER, warn_user
from tkmeans.fitting import relations
from tkmeans.fitting.incomplete_rows import FEW, complete, nearest_center, without_bad_cells
from tkmeans.fitting.observers import TimeLimit
from tkmeans.models import Student
from tkmeans.models.dof import first_dof, least_dof
from tkmeans.search import Found, fitted_tails, is_better, robust_search, same_clusters, seeding
from tkmeans.search.center_search import DOF_STARTS, LEFT_OUT
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.sources.base import NARROW, canonical, limits, out_of_bounds, quantile, thinned, usual
from tkmeans.sources.number_checks import checked_centers
from tkmeans.stats import Array, Block, Frame, Params

DRAWS: dict[str, seeding.Seeding] = {"k-means++": seeding.kmeans_plusplus, "random": seeding.random_rows}
DRAWS["uniform"] = seeding.uniform
SEEDINGS = ("robust", *DRAWS)  # what `init` may be called

# Rows that a start is chosen on: enough to see every cluster that is not tiny. With very many clusters, fewer of each.
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER = 3000, 150
MANY_ROWS, LEAST_ROWS_PER_CLUSTER = 30_000, 50
WORTH_A_SAMPLE = 1.5  # times as many rows: of fewer, a sample would save little, and chance decide what it misses
MANY_TIMES = 10  # more rows than in the sample: EM there saves steps of EM on all rows
SEARCH_TIME = 0.5  # the share of `max_time` that searches may take
GIVEN_DOF = 5.0  # tails to begin with from centres that were not searched for

# The scale never falls below this fraction of the data's squared spread, where squared distances have no digits left.
SCALE_FLOOR = {"float64": 1e-20, "float32": 1e-10}
REPEATED = 0.9  # of the rows are distinct, at most, where the steps of measurement are looked for

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


class Start(NamedTuple):
    """Where one run of EM begins."""

    centers: Array  # (K, p) in the frame
    scale: float
    dof: float
    weights_differ: bool | None = None  # None if that is not known yet


# A state of random numbers for each thread, to be seeded before each use: a new one takes a tenth of a millisecond.
_own_numbers = cache(lambda _: np.random.RandomState(0))


def starts(settings: Any, source: Source, dof: float | None, rng: np.random.RandomState) -> Iterator[Start]:
    """As many starts as an estimator's `init` and `n_init` ask for, one at a time; `dof` is None if it is estimated."""
    K, init = int(settings.n_clusters), settings.init  # a narrow integer of NumPy has no room for what is made of it
    robust = isinstance(init, str) and init == "robust"
    size = max(SAMPLE_ROWS, min(SAMPLE_ROWS_PER_CLUSTER * K, MANY_ROWS + LEAST_ROWS_PER_CLUSTER * K))
    size = size if source.n_rows > WORTH_A_SAMPLE * size else max(size, source.n_rows)
    searching = _own_numbers(get_ident()) if robust else rng  # a search leaves nothing to chance
    max_time = getattr(settings, "max_time", None)
    limit = source.search_limit = None if max_time is None or source.resumed else TimeLimit(SEARCH_TIME * max_time)
    source.n_clusters = K
    if robust:
        searching.seed(0)
    X, weight = source.sample(size, searching if source.n_rows > size else rng)
    # A row stands for others, but it is one: alone it is no cluster. And weights that sum to 1 do not make rows few.
    weight = weight * (min(max(np.sum(weight), len(weight)), size) / np.sum(weight))
    rows = Sample(X, weight)
    spread = usual(thinned(rows)) if robust and source.lift is None else None
    forgiving = spread and source.array_library != "scipy.sparse" and getattr(settings, "bad_cells", False)
    if forgiving := forgiving and np.any(np.isfinite(bounds := limits(rows, None, spread))):
        rows = without_bad_cells(rows, K, bounds=bounds)
    holed = bool(np.any(np.isnan(rows.X)))
    sample, known = canonical(complete(rows, K, X) if holed else rows), None if holed else spread
    if len(sample.X) < K:
        few = f"Number of distinct clusters ({len(sample.X)}) found smaller than n_clusters ({K})."
        warn_user(f"{few} Possibly due to duplicate points in X; some clusters will be empty.")
    floor = SCALE_FLOOR[source.dtype.name]
    one, narrow = float(np.min(rows.weight, where=rows.weight > 0, initial=1.0)), floor
    if robust and source.lift is None and len(sample.X) < REPEATED * np.sum(sample.weight) / one:
        # Rows are measured in steps, perhaps: no column tells more than its steps.
        middle, slack = quantile(sample.X, sample.weight), relations.rounding(source)
        units, grain = relations.column_units(sample.X - middle, sample.weight, slack, one)
        grain = np.minimum(grain, units**2 / 12)  # longer ones are no steps of measurement
        source.least_scale = floor = max(floor, float(np.min(grain)))
        # No density may put more than one row into a cell of these steps, or centres are drawn to frequent rows.
        nu, p = first_dof(sample.X.shape[1]), sample.X.shape[1]
        narrow = 12 * floor * np.exp(2 / p * (gammaln((nu + p) / 2) - gammaln(nu / 2))) / (nu * np.pi)
    for number in range(n_starts(init, settings.n_init)):
        if robust:
            searching.seed(number)
        if robust and source.lift is not None:
            found = robust_search(sample, K, searching, first_dof(sample.X.shape[1]), 1)
            source.agreement = Agreement(1, 1, np.inf)
            start = Start(found.centers, 1.0, 1.0, found.weights_differ)
        elif robust:
            with suppress(TimeoutError):
                climb = max(source.total, source.n_counted) > MANY_TIMES * np.sum(sample.weight)
                asked: Any = {"K": K, "dof": dof, "rng": searching, "limit": limit, "climb": climb, "least": narrow}
                search: Any = partial(chosen_start, **asked, spread=known)
                if least := int(getattr(settings, "min_cluster_size", 0) or 0):
                    search = partial(without_heaps, partial(search, spread=None), nearest, K, least / source.total)
                found, agreement = search(sample)
                if forgiving and number == 0:
                    low, high = limits(Sample(X, weight), found.centers, spread)
                    if np.any(np.isfinite((low, high))) and np.any(out_of_bounds(X, low, high)):
                        source.bounds = source.frame.leave(low), source.frame.leave(high)
                source.agreement = source.agreement or agreement
                yield Start(found.centers, max(found.scale, floor), found.dof, found.weights_differ)
                continue
            centers = sample.X[np.linspace(0, len(sample.X) - 1, K).astype(np.int64)]  # there was no time
        elif isinstance(init, str):
            centers = DRAWS[init](sample, K, rng)
        else:
            given = init(source.example(sample), settings.n_clusters, random_state=rng) if callable(init) else init
            centers = source.frame.enter(checked_centers(given, "init", (K, source.n_features)))
        if not robust or source.lift is None:
            scale = 1.0 if source.lift is not None else seeding.starting_scale(sample, centers)
            start = Start(centers, max(scale, floor), max(GIVEN_DOF, first_dof(sample.X.shape[1])))
        if source.lift is not None:
            centers, width = source.lift(start.centers)
            scale = width if robust else min(seeding.FIRST_WIDTH * width, 1.0)
            start = start._replace(centers=centers, scale=max(scale, floor), dof=first_dof(source.n_features))
        yield start


def without_heaps(search: Any, labels_of: Any, n_clusters: int, least: float, sample: Sample) -> Any:
    """What a search finds without clusters below this share, left out again and again; `labels_of` has -1 for noise."""
    if least * n_clusters > 1:
        much = f"min_cluster_size is {f'{least:.0%}' if least <= 1 else 'more than all'} of the rows"
        raise ValueError(f"{much}, too much for each of {n_clusters} clusters; choose a smaller one, or fewer clusters")
    least *= np.sum(sample.weight)
    while True:
        found = search(sample)
        labels = labels_of(sample, found)
        small = np.bincount(labels + 1, sample.weight, n_clusters + 1) < least
        small[0] = False  # noise
        left = ~small[labels + 1]
        if np.all(left) or np.count_nonzero(left) <= n_clusters:
            return found
        sample = Sample(sample.X[left], sample.weight[left])


def nearest(sample: Sample, found: tuple[Found, Any]) -> Array:
    """The nearest centre of each row, -1 for rows that belong to none."""
    labels, d2 = nearest_center(sample.X, found[0].centers)
    return np.where(d2 > LEFT_OUT * quantile(d2, sample.weight), -1, labels)


def n_starts(init: Any, n_init: Any) -> int:
    """What `n_init` means for this `init`."""
    if not isinstance(init, str) and not callable(init):
        return 1
    auto = 10 if callable(init) or init in ("random", "uniform") else 1
    return auto if n_init == "auto" else int(n_init)


# ---- the best of several searches ------------------------------------------------------------


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


def chosen_start(
    sample: Sample, K: int, dof: Any, rng: Any, limit: Any = None, *, climb: Any = 0, spread: Any = None, least: Any = 0
) -> tuple[Found, Agreement]:
    """The best start for a canonical sample.

    If it is to `climb`, EM on the sample leads from there. `spread` is the sample's, if it is known; no scale is below
    `least`. When the time is up, it is the first one found; TimeoutError if there is none.
    """
    candidates, n_searches, core_weight, quick = list[Candidate](), 0, sample.weight, None
    plan: list[tuple[float, Any]] = [(TAILS[0], EVERY)]
    step = round(len(sample.X) / max(FEW_ROWS, FEW_ROWS_PER_CLUSTER * K)) if sample.X.size * K > LARGE else 1
    step = step if step > 2 else 1  # half of the rows take as long
    few, tol = slice(None, None, max(step, 1)), CLIMB_TOL if climb else PILOT_TOL
    ends, whole = dict[int, Candidate](), sample

    def pilot(each: Candidate) -> Candidate:
        end = ends.get(id(each.found)) or _pilot(whole, core_weight, each, dof, tol, least)
        ends[id(each.found)] = end
        counted: Any = {"n_searches": each.n_searches, "of_core": each.of_core, "in_core": each.in_core}
        return end._replace(**counted, merit=end.merit - each.handicap)

    while plan:
        if len(candidates) == 1 and (n_searches == 2 * ENOUGH or (n_searches == ENOUGH and not candidates[0].n_far)):
            break
        tails, rows = plan.pop(0)
        part = sample if rows is EVERY else Sample(sample.X[rows], sample.weight[rows])
        nu, start, some = max(tails, first_dof(sample.X.shape[1])), None, Sample(part.X[few], part.weight[few])
        try:
            if step > 1:  # a few of the rows lead to where all begin
                draw = np.random.RandomState(n_searches)
                start = robust_search(some, K, draw, nu, 1, getattr(limit, "left", np.inf), None, least)
                sizes = np.bincount(start.labels, some.weight, K)
                clear = sample.X.size * K > VERY_LARGE and not candidates
                if np.min(sizes) < SMALL_CLUSTER * np.mean(sizes):
                    start = None  # they were too few
                elif clear and _is_clear(some, start, spread, limit):  # all rows add nothing
                    candidates, sample, n_searches = [Candidate(start, start.labels, start.labels >= 0)], some, ENOUGH
                    break
                elif candidates and same_clusters(candidates[0].labels[rows][few], start.labels, some.weight):
                    _count(candidates, candidates[0]._replace(n_searches=1, in_core=rows is not EVERY), sample.weight)
                    n_searches += 1
                    continue
            found = robust_search(part, K, rng, nu, 1, getattr(limit, "left", np.inf), start, least)
        except TimeoutError:
            if limit:
                limit.has_cut = True
            if not candidates and start is None:
                raise
            known = (candidates[0].found, sample) if candidates or start is None else (start, some)
            return fitted_tails(*known, dof), Agreement(max(n_searches, 1), 1, np.inf)
        if not candidates:
            inner = np.flatnonzero(within_reach(sample, spread, found))
            plan = [(tails, EVERY) for tails in TAILS[1:]]
            if len(inner) < len(sample.X):  # heavy tails suit all rows and light ones the core: these come first
                core_weight = np.bincount(inner, sample.weight[inner], len(sample.X))
                others = [] if np.all(within_reach(sample, spread)) else [(TAILS[0], inner)]
                plan = [(TAILS[1], inner), *others, *plan, *((TAILS[2], rows) for _, rows in others)]
            if step <= 1 < (times := len(inner) // max(QUICK_ROWS, QUICK_ROWS_PER_CLUSTER * K)):
                quick = inner[::times]
                plan.insert(0, (TAILS[1], quick))
        labels, reached, handicap = np.full(len(sample.X), -1), np.zeros(len(sample.X), bool), 0.0
        labels[rows], reached[rows] = found.labels, found.nearest <= LEFT_OUT * found.width * part.X.shape[1]
        of_all, of_core = (np.bincount(labels[reached], mass[reached], K) for mass in (sample.weight, core_weight))
        n_far = int(np.count_nonzero(of_core < 0.5 * of_all))
        if tails > TAILS[0] and not 0 < n_far <= candidates[0].n_far:
            smallest = np.min(np.bincount(found.labels, part.weight, K)) / np.sum(part.weight)
            handicap = HANDICAP if smallest * K >= SMALL_CLUSTER else np.inf
            if candidates[0].found.left_out - found.left_out > EXPLAINED and smallest >= EXPLAINED / 2:
                handicap = 0.0
        new = Candidate(found, labels, reached, n_far, handicap, rows is not EVERY, in_core=rows is not EVERY)
        _count(candidates, new, sample.weight)
        if rows is quick and len(candidates) == 1:
            del plan[0]  # the same on more rows
        elif rows is quick:
            del candidates[1]
        n_searches = sum(each.n_searches for each in candidates)
        if n_searches == len(candidates) == ENOUGH and not candidates[0].n_far and new.handicap < np.inf:
            pilots = list(map(pilot, candidates))
            settled = same_clusters(pilots[0].labels, pilots[1].labels, sample.weight)
            if settled and not pilots[0].n_tiny + pilots[1].n_tiny:
                return _best(pilots, sample.weight, n_searches)
    if len(candidates) == 1:
        only = candidates[0]
        found = fitted_tails(only.found, sample, dof, DOF_STARTS if step <= 1 else CLEAR_DOF_STARTS)
        found = pilot(only).found if climb else found
        return found, Agreement(n_searches, n_searches, np.inf)
    for i, each in enumerate(candidates):
        if each.handicap and not each.of_core and is_better(each.found, candidates[0].found, sample, least):
            candidates[i] = each._replace(handicap=0.0)  # heavy tails would have taken it, had they found it
    accepted = [each for each in candidates if each.handicap < np.inf]  # heavy tails always are
    widest = WIDEST * max(least, min(each.found.width for each in accepted if not each.of_core))
    pilots = [pilot(each) for each in accepted if each.found.width <= widest]
    return _best(pilots, sample.weight, n_searches)


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
