"""Where runs of EM begin: centres from a sample of the rows, with a scale and a dof to go with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from tkmeans import engines
from tkmeans.messages import warn_user
from tkmeans.models.dof import first_dof
from tkmeans.search import robust_search, seeding
from tkmeans.sources import Sample, Source
from tkmeans.stats import Array

SEEDINGS: dict[str, seeding.Seeding] = {
    "robust": seeding.kmeans_plusplus,  # where the native engine, which has the search, is missing
    "k-means++": seeding.kmeans_plusplus,
    "random": seeding.random_rows,
    "uniform": seeding.uniform,
}

# Rows that a start is chosen on: enough to see every cluster that is not tiny.
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER = 3000, 150

# The scale never falls below this fraction of the data's squared spread, where squared
# distances have no digits left.
SCALE_FLOOR = {"float64": 1e-20, "float32": 1e-10}


class Start(NamedTuple):
    """Where one run of EM begins."""

    centers: Array  # (K, p) in the frame
    scale: float
    dof: float
    weights_differ: bool | None = None  # None if that is not known yet


Init = str | Callable[[Sample, np.random.RandomState], Array]  # a name, or centres in the frame by some other way


def starts(
    source: Source, n_clusters: int, init: Init, n_starts: int, dof: float | None, rng: np.random.RandomState
) -> Iterator[Start]:
    """As many starts as are wanted, one at a time; `dof` is None if it is estimated."""
    size = sample_rows(n_clusters)
    sample = seeding.canonical(seeding.complete(source.sample(size, rng), n_clusters))
    if len(sample.X) < n_clusters:
        warn_user(f"X has only {len(sample.X)} distinct rows for n_clusters={n_clusters}: some will be empty.")
    floor = SCALE_FLOOR[source.dtype.name]
    searched = init == "robust" and engines.select("auto").NAME == "native"
    for _ in range(n_starts):
        if searched:
            found = robust_search(sample, n_clusters, rng, dof)
            yield Start(found.centers, max(found.scale, floor), found.dof, found.weights_differ)
        else:
            centers = SEEDINGS[init](sample, n_clusters, rng) if isinstance(init, str) else init(sample, rng)
            scale = max(seeding.starting_scale(sample, centers), floor)
            yield Start(centers, scale, first_dof(sample.X.shape[1]))


def sample_rows(n_clusters: int) -> int:
    """How many rows a start is chosen on."""
    return max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * n_clusters)


def random_numbers(init: Any, random_state: Any) -> np.random.RandomState:
    """Where chance comes from; an array leaves nothing to it."""
    return check_random_state(random_state if isinstance(init, str) or callable(init) else 0)


def n_starts(init: Any, n_init: Any) -> int:
    """What `n_init` means for this `init`."""
    if not isinstance(init, str) and not callable(init):
        return 1
    if n_init == "auto":
        return 10 if callable(init) or init in ("random", "uniform") else 1
    return int(n_init)
