"""Starting parameters of each EM run, from `init` and `n_init`: by the search, a seeding or the user."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tkmeans.fit_warnings import warn_user
from tkmeans.fitting.start_choice import chosen_start
from tkmeans.models.dof import first_dof
from tkmeans.search import seeding
from tkmeans.sources import Sample, Source
from tkmeans.sources.number_checks import checked_centers
from tkmeans.stats import Array

DRAWS: dict[str, seeding.Seeding] = {
    "k-means++": seeding.kmeans_plusplus,
    "random": seeding.random_rows,
    "uniform": seeding.uniform,
}
SEEDINGS = ("robust", *DRAWS)  # what `init` may be called

# Rows that a start is chosen on: enough to see every cluster that is not tiny.
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER = 3000, 150

GIVEN_DOF = 5.0  # tails to begin with from centres that were not searched for

# Fewer complete rows than this show the clusters less well than all rows with their holes filled.
COMPLETE_ROWS_PER_CLUSTER = 20
DONORS = 1000  # rows that holes are filled from

# The scale never falls below this fraction of the data's squared spread, where squared distances have no digits left.
SCALE_FLOOR = {"float64": 1e-20, "float32": 1e-10}


class Start(NamedTuple):
    """Where one run of EM begins."""

    centers: Array  # (K, p) in the frame
    scale: float
    dof: float
    weights_differ: bool | None = None  # None if that is not known yet


def starts(settings: Any, source: Source, dof: float | None, rng: np.random.RandomState) -> Iterator[Start]:
    """As many starts as an estimator's `init` and `n_init` ask for, one at a time; `dof` is None if it is estimated."""
    K, init = settings.n_clusters, settings.init
    robust = isinstance(init, str) and init == "robust"
    drawing = np.random.RandomState(0) if robust else rng  # the search leaves nothing to chance
    size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * K)
    X, weight = source.sample(size, drawing)
    weight = weight * min(1.0, size / source.total)  # a row stands for others, but it is one: alone it is no cluster
    sample = canonical(complete(Sample(X, weight), K))
    if len(sample.X) < K:
        warn_user(f"X has only {len(sample.X)} distinct rows for n_clusters={K}: some will be empty.")
    floor = SCALE_FLOOR[source.dtype.name]
    for number in range(n_starts(init, settings.n_init)):
        if robust:
            found, agreement = chosen_start(sample, K, dof, number)
            source.agreement = source.agreement or agreement
            yield Start(found.centers, max(found.scale, floor), found.dof, found.weights_differ)
        else:
            centers = DRAWS[init](sample, K, rng) if isinstance(init, str) else _given(settings, source, sample, rng)
            tails = max(GIVEN_DOF, first_dof(sample.X.shape[1]))
            yield Start(centers, max(seeding.starting_scale(sample, centers), floor), tails)


def _given(settings: Any, source: Source, sample: Sample, rng: np.random.RandomState) -> Array:
    """The centres that `init` is, or that it makes when it is called, in the frame."""
    init, K = settings.init, settings.n_clusters
    centers = init(source.example(sample), K, random_state=rng) if callable(init) else init
    return source.frame.enter(checked_centers(centers, "init", (K, source.n_features)))


def n_starts(init: Any, n_init: Any) -> int:
    """What `n_init` means for this `init`."""
    if not isinstance(init, str) and not callable(init):
        return 1
    if n_init == "auto":
        return 10 if callable(init) or init in ("random", "uniform") else 1
    return int(n_init)


# ---- the sample -------------------------------------------------------------------------------


def complete(sample: Sample, n_clusters: int) -> Sample:
    """A sample without missing values: its complete rows if they are enough, else all with their holes filled.

    Only the start is chosen on it; EM then takes every row as it is.
    """
    missing = np.isnan(sample.X)
    whole = ~np.any(missing, axis=1)
    if np.count_nonzero(whole) >= COMPLETE_ROWS_PER_CLUSTER * n_clusters or np.all(whole):
        return Sample(sample.X[whole], sample.weight[whole])
    some = ~np.all(missing, axis=1)
    ordered = canonical(Sample(np.where(missing, np.inf, sample.X)[some], sample.weight[some]))
    return Sample(_filled(np.where(np.isinf(ordered.X), np.nan, ordered.X)), ordered.weight)


def _filled(X: Array) -> Array:
    """Every hole filled from the row most like it, in the features that both have, of those that have the feature.

    Medians in the holes would gather rows of all clusters in the middle, where a search finds one cluster more.
    """
    from sklearn.metrics.pairwise import nan_euclidean_distances  # 5 MB that complete rows can do without

    donors = X[:: -(-len(X) // DONORS)]
    filled = np.where(np.isnan(X), 0.0, X)  # the median, in the frame, where no donor has anything in common
    for start in range(0, len(X), DONORS):
        part = slice(start, start + DONORS)
        unlike = np.nan_to_num(nan_euclidean_distances(X[part], donors, squared=True), nan=np.inf)
        for feature in range(X.shape[1]):
            holes = np.flatnonzero(np.isnan(X[part, feature]))
            able = np.flatnonzero(~np.isnan(donors[:, feature]))
            if len(holes) and len(able):
                choice = unlike[np.ix_(holes, able)]
                found = np.isfinite(choice.min(axis=1))
                filled[start + holes[found], feature] = donors[able[choice.argmin(axis=1)[found]], feature]
    return filled


def canonical(sample: Sample) -> Sample:
    """Rows in an order of their own, whatever order they came in, equal ones joined and their weights added."""
    X = sample.X + 0.0  # -0.0 and 0.0 are one value
    order = _own_order(X)
    X, weight = X[order], sample.weight[order]
    first = np.ones(len(X), dtype=bool)
    first[1:] = np.any(X[1:] != X[:-1], axis=1)
    return Sample(X[first], np.add.reduceat(weight, np.flatnonzero(first)))


def _own_order(X: Array) -> Array:
    """The rows sorted along a line askew to all columns, then by columns; these sort only rows that are still tied."""
    along = np.zeros(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        for column in range(X.shape[1]):  # number by number: a product of matrices may round by where a row stands
            along += np.cos(column + 1.0) * X[:, column]
    along = np.nan_to_num(along)  # of rows with holes, which are infinite here
    order = np.argsort(along, kind="stable")
    differs = np.append(True, along[order[1:]] != along[order[:-1]])  # from the row above, as far as was compared
    for column in range(X.shape[1]):
        tied = ~(differs & np.append(differs[1:], True))
        if not np.any(tied):
            break
        rows, group = order[tied], np.cumsum(differs)[tied]
        order[tied] = rows[np.lexsort([X[rows, column], group])]
        differs |= np.append(True, X[order[1:], column] != X[order[:-1], column])
    return order
