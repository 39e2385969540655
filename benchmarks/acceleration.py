"""Passes over the data with and without acceleration, to the same log-likelihood.

python -m benchmarks.acceleration [docs/benchmarks/acceleration.md]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.common import CLUSTERS, hold_to_the_bar, load, markdown, publish
from tkmeans import engines
from tkmeans.em import em
from tkmeans.models import Student
from tkmeans.search import seeding
from tkmeans.sources import ArraySource
from tkmeans.sources.base import canonical
from tkmeans.stats import Params

MOST = 0.5  # of the plain passes, in the median
CLOSE = 1e-8  # in log-likelihood per row


def passes(name: str, seed: int) -> tuple[int, int]:
    """Passes of plain and of accelerated EM until both are within CLOSE of the better end."""
    X, _ = load(name)
    n_clusters = CLUSTERS[name]
    source = ArraySource(X, None)
    source.frame = source.measure()
    rng = np.random.RandomState(seed)
    sample = canonical(source.sample(len(X), rng))
    centers = seeding.kmeans_plusplus(sample, n_clusters, rng)
    equal = np.full(n_clusters, -np.log(n_clusters))
    start = Params(centers, seeding.starting_scale(sample, centers), 1.0, equal)
    model = Student(engine=engines.select("auto"), scale_floor=1e-20)
    counts, ends = [], []
    for accelerate in (False, True):
        seen: list[tuple[int, float]] = []
        fit = em(_Counted(source, seen), model, start, stop=lambda _: False, max_iter=1500, accelerate=accelerate)
        ends.append(fit.history[-1])
        counts.append(seen)
    if abs(ends[0] - ends[1]) > 10 * CLOSE:
        return 0, 0  # two different optima: nothing to compare
    goal = max(ends) - CLOSE
    plain, quick = (next((i for i, value in seen if value >= goal), len(seen)) for seen in counts)
    return plain, quick


class _Counted:
    """A source that notes the objective of every pass, rejected ones included."""

    def __init__(self, source: ArraySource, seen: list[tuple[int, float]]) -> None:
        self._source, self._seen = source, seen

    def reduce(self, summarize):
        stats = self._source.reduce(summarize)
        self._seen.append((len(self._seen) + 1, stats.objective / len(self._source.X)))
        return stats


def main() -> None:
    """Print the table."""
    rows, ratios = [], []
    for name in ("S1", "S2", "S3", "S4"):
        pairs = [passes(name, seed) for seed in range(20)]
        same = np.array([pair for pair in pairs if pair[0]])
        ratio = same[:, 1] / same[:, 0]
        ratios.extend(ratio)
        cells = (np.median(same[:, 0]), np.median(same[:, 1]), np.median(ratio), ratio.max())
        rows.append(
            [name, f"{cells[0]:.0f}", f"{cells[1]:.0f}", f"{cells[2]:.2f}", f"{cells[3]:.2f}", f"{len(same)} of 20"]
        )
    rows.append(["all", "", "", f"**{np.median(ratios):.2f}**", f"{max(ratios):.2f}", f"{len(ratios)} of 80"])
    header = ["data", "plain passes", "accelerated", "median ratio", "worst ratio", "seeds with the same optimum"]
    text = (
        f"Median passes from a k-means++ start (dof estimated) until the log-likelihood per row is within {CLOSE:g}\n"
        "of its end; rejected extrapolations count.\n\n" + markdown(header, rows)
    )
    publish("Acceleration", text, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    median = float(np.median(ratios))
    hold_to_the_bar([f"median ratio {median:.2f} is above {MOST}"] if median > MOST else [])


if __name__ == "__main__":
    main()
