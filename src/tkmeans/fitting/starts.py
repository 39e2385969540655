"""Starting parameters of each EM run, from `init` and `n_init`: by searches, a seeding or the user."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tkmeans.fit_warnings import warn_user
from tkmeans.fitting import relations
from tkmeans.fitting.incomplete_rows import complete, nearest_center, without_bad_cells
from tkmeans.fitting.observers import TimeLimit
from tkmeans.fitting.start_choice import Agreement, StartChoice
from tkmeans.models.dof import first_dof
from tkmeans.search import Found, robust_search, seeding
from tkmeans.search.center_search import LEFT_OUT
from tkmeans.sources import Sample, Source
from tkmeans.sources.base import canonical, limits, out_of_bounds, quantile, thinned, usual
from tkmeans.sources.number_checks import checked_centers
from tkmeans.stats import Array

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
    narrow = floor = SCALE_FLOOR[source.dtype.name]
    one = float(np.min(rows.weight, where=rows.weight > 0, initial=1.0))
    if robust and source.lift is None and len(sample.X) < REPEATED * np.sum(sample.weight) / one:
        floor, narrow = _scales_of_steps(sample, source, one)
        source.least_scale = floor
    climb = max(source.total, source.n_counted) > MANY_TIMES * np.sum(sample.weight)

    def search(rows: Sample, spread: Any = None) -> tuple[Found, Agreement]:
        return StartChoice(rows, K, dof, searching, limit, climb, spread, narrow).result()

    for number in range(n_starts(init, settings.n_init)):
        found = None
        if robust:
            searching.seed(number)
        if robust and source.lift is not None:
            found = robust_search(sample, K, searching, first_dof(sample.X.shape[1]), 1)
            source.agreement = Agreement(1, 1, np.inf)
        elif robust:
            with suppress(TimeoutError):
                if least := int(getattr(settings, "min_cluster_size", 0) or 0):
                    found, agreement = without_heaps(search, nearest, K, least / source.total, sample)
                else:
                    found, agreement = search(sample, known)
                source.agreement = source.agreement or agreement
        if found and forgiving and number == 0:
            low, high = limits(Sample(X, weight), found.centers, spread)
            if np.any(np.isfinite((low, high))) and np.any(out_of_bounds(X, low, high)):
                source.bounds = source.frame.leave(low), source.frame.leave(high)
        if found:
            centers = found.centers
        elif robust:  # there was no time
            centers = sample.X[np.linspace(0, len(sample.X) - 1, K).astype(np.int64)]
        elif isinstance(init, str):
            centers = DRAWS[init](sample, K, rng)
        else:
            given = init(source.example(sample), settings.n_clusters, random_state=rng) if callable(init) else init
            centers = source.frame.enter(checked_centers(given, "init", (K, source.n_features)))
        weights_differ = found.weights_differ if found else None
        if source.lift is not None:
            centers, width = source.lift(centers)
            scale = width if found else min(seeding.FIRST_WIDTH * width, 1.0)
            yield Start(centers, max(scale, floor), first_dof(source.n_features), weights_differ)
        elif found:
            yield Start(centers, max(found.scale, floor), found.dof, weights_differ)
        else:
            scale, tails = seeding.starting_scale(sample, centers), max(GIVEN_DOF, first_dof(sample.X.shape[1]))
            yield Start(centers, max(scale, floor), tails)


def _scales_of_steps(sample: Sample, source: Source, one: float) -> tuple[float, float]:
    """The least scales of EM and of a search where rows are in steps, perhaps: no column tells more than its steps."""
    p, middle = sample.X.shape[1], quantile(sample.X, sample.weight)
    units, grain = relations.column_units(sample.X - middle, sample.weight, relations.rounding(source), one)
    grain = np.minimum(grain, units**2 / 12)  # longer ones are no steps of measurement
    floor, nu = max(SCALE_FLOOR[source.dtype.name], float(np.min(grain))), first_dof(p)
    # No density may put more than one row into a cell of these steps, or centres are drawn to frequent rows.
    return floor, 12 * floor * np.exp(2 / p * (gammaln((nu + p) / 2) - gammaln(nu / 2))) / (nu * np.pi)


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
