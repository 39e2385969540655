"""A fit on a dask cluster of one and of two single-threaded processes, beside dask-ml's KMeans.

python -m benchmarks.cluster [--rows 5000000] [--repeats 2] [--output docs/benchmarks/cluster.md]

The rows are in the memory of the workers before the clock starts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask_ml.cluster import KMeans
from distributed import Client, LocalCluster, wait
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common import hold_to_the_bar, markdown, publish
from tkmeans import TKMeans

N_FEATURES, N_CLUSTERS, ITERATIONS, N_PARTS = 16, 32, 10, 20
SPEEDUP = 1.6


def rows_on_the_cluster(n_rows: int) -> da.Array:
    """The same rows on any cluster, made by its workers and kept there."""
    centers = np.random.default_rng(0).normal(scale=3.0, size=(N_CLUSTERS, N_FEATURES))
    n = n_rows // N_PARTS

    def part(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return rng.standard_normal((n, N_FEATURES)) + centers[rng.integers(N_CLUSTERS, size=n)]

    parts = [da.from_delayed(dask.delayed(part)(seed), (n, N_FEATURES), float) for seed in range(N_PARTS)]
    X = da.concatenate(parts).persist()
    wait(X)
    return X


def seconds(task: Callable[[], object]) -> float:
    """Wall time."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def measure(n_workers: int, n_rows: int) -> dict[str, float]:
    """Seconds of each fit on a fresh cluster."""
    options = {"max_iter": ITERATIONS, "random_state": 0}
    ours = TKMeans(N_CLUSTERS, tol=0, **options)
    theirs = KMeans(N_CLUSTERS, tol=0, init="k-means||", **options)
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        X = rows_on_the_cluster(n_rows)
        TKMeans(2, random_state=0).fit(X[: n_rows // N_PARTS])  # what is loaded once does not count
        return {"TKMeans": seconds(lambda: ours.fit(X)), "dask_ml KMeans": seconds(lambda: theirs.fit(X))}


def main() -> None:
    """Print the table, and fail below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--output", type=Path, default=None)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    best: dict[tuple[str, int], float] = {}
    for _ in range(args.repeats):
        for n_workers in (1, 2):
            for name, found in measure(n_workers, args.rows).items():
                best[name, n_workers] = min(found, best.get((name, n_workers), np.inf))
    table, missed = [], []
    for name in ("TKMeans", "dask_ml KMeans"):
        one, two = best[name, 1], best[name, 2]
        table.append([name, f"{one:.1f} s", f"{two:.1f} s", f"{one / two:.2f}"])
        if name == "TKMeans" and one / two < SPEEDUP:
            missed.append(f"two processes are {one / two:.2f} times as fast as one, at least {SPEEDUP}")
    text = markdown(["", "1 process", "2 processes", "speed-up"], table) + (
        f"\n{args.rows / 1e6:g}e6 x {N_FEATURES} float64 in {N_PARTS} partitions, {N_CLUSTERS} clusters, {ITERATIONS} "
        f"iterations, start included (dask-ml's k-means||), single-threaded worker processes of one machine; least "
        f"wall time of {args.repeats} turns. Measured {time.strftime('%Y-%m-%d')}.\n"
    )
    publish("A fit on a dask cluster", text, args.output)
    hold_to_the_bar(missed)


if __name__ == "__main__":
    main()
