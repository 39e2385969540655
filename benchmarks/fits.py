"""Whole default fits against the k-means that people use today, by CPU time, with the quality beside it.

    python -m benchmarks.fits [--only S1 ...] [--growth] [--tables] [--output docs/benchmarks/fits.md]

One thread, everything in turns and the least of several rounds; fits that take more than two seconds run once. The unit
is scikit-learn's KMeans with one start. faiss, scikit-learn-intelex, fastkmeans and breathing k-means take part where
they are installed. `--growth` adds how the search and the fit grow with rows, clusters and features, `--tables` the
real tables of benchmarks/foreign_sets.py against KMeans with ten starts.

The command ends with an error if a fit takes more of the unit than it should; the page says where.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.common import CLUSTERS, hold_to_the_bar, load, markdown, publish
from benchmarks.foreign_sets import cases
from tkmeans import TKMeans
from tkmeans.fitting.start_choice import StartChoice
from tkmeans.fitting.starts import (
    LEAST_ROWS_PER_CLUSTER,
    MANY_ROWS,
    SAMPLE_ROWS,
    SAMPLE_ROWS_PER_CLUSTER,
)
from tkmeans.sources import ArraySource
from tkmeans.sources.base import canonical

UNIT, OURS = "KMeans()", "TKMeans()"
FAR_ROWS, FAR = 0.02, 10 / 3  # their share, and how far out they are, over the farthest row
LONG = 2.0  # CPU seconds that are too many to spend twice
# The most that a default fit should take of KMeans with one start.
BARS = {"iris": 2.5, "S1": 2.0, "A3": 2.0}
GENERATED = {
    "1e5 x 10, K = 50": (100_000, 10, 50, 0.7),
    "1e6 x 16, K = 32": (1_000_000, 16, 32, 0.10),
    "2e5 x 64, K = 100": (200_000, 64, 100, 0.12),
    "1e5 x 128, K = 256": (100_000, 128, 256, 0.4),
    "1e5 x 32, K = 1000": (100_000, 32, 1000, 0.15),
    "5e4 x 784, K = 10": (50_000, 784, 10, 0.35),
    "2e4 x 768, K = 50": (20_000, 768, 50, 1.0),
}
BARS |= {name: bar for name, (*_, bar) in GENERATED.items()}

Fit = Callable[[], np.ndarray]  # labels


def clusters(n: int, n_features: int, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Round clusters of unit spread that overlap a little, with their labels."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=3.0, size=(n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n)
    return centers[labels] + rng.standard_normal((n, n_features)), labels


def data(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, labels and the number of clusters."""
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return X, y, 3
    if name in CLUSTERS:
        return *load(name), CLUSTERS[name]
    n, n_features, n_clusters, _ = GENERATED[name]
    return *clusters(n, n_features, n_clusters), n_clusters


def with_far_rows(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with some rows scattered far around, whose label is -1."""
    rng = np.random.default_rng(1)
    X, y = X.copy(), y.copy()
    far = rng.choice(len(X), max(1, round(FAR_ROWS * len(X))), replace=False)
    middle = np.median(X, axis=0)
    reach = FAR * np.abs(X - middle).max()
    X[far], y[far] = middle + rng.uniform(-reach, reach, (len(far), X.shape[1])), -1
    return X, y


def contenders(X: np.ndarray, n_clusters: int) -> dict[str, Fit]:
    """Every method as a function that returns labels."""
    methods: dict[str, Fit] = {
        OURS: lambda: TKMeans(n_clusters).fit(X).labels_,
        UNIT: lambda: KMeans(n_clusters, random_state=0).fit(X).labels_,
        "MiniBatchKMeans()": lambda: MiniBatchKMeans(n_clusters, random_state=0).fit(X).labels_,
    }
    if importlib.util.find_spec("faiss"):
        methods["faiss"] = lambda: _faiss(X, n_clusters, 256)
        methods["faiss, all rows"] = lambda: _faiss(X, n_clusters, len(X))
    if importlib.util.find_spec("sklearnex"):
        from sklearnex.cluster import KMeans as IntelKMeans

        methods["intelex"] = lambda: IntelKMeans(n_clusters, random_state=0).fit(X).labels_
    if importlib.util.find_spec("fastkmeans"):
        from fastkmeans import FastKMeans

        single = X.astype(np.float32)
        methods["fastkmeans"] = lambda: FastKMeans(X.shape[1], n_clusters, gpu=False).fit_predict(single)
    return methods


def _faiss(X: np.ndarray, n_clusters: int, rows_per_cluster: int) -> np.ndarray:
    import faiss

    single = np.ascontiguousarray(X, dtype=np.float32)
    model = faiss.Kmeans(
        X.shape[1], n_clusters, seed=1, max_points_per_centroid=rows_per_cluster, min_points_per_centroid=1
    )
    model.train(single)
    return model.index.search(single, 1)[1][:, 0]


def measured(methods: dict[str, Fit], y: np.ndarray, repeats: int) -> dict[str, tuple[float, float]]:
    """CPU seconds and ARI of each method."""
    seconds, quality = dict.fromkeys(methods, np.inf), dict.fromkeys(methods, 0.0)
    for _ in range(repeats):
        for name, fit in methods.items():
            if LONG < seconds[name] < np.inf:
                continue
            begun = time.process_time()
            labels = fit()
            seconds[name] = min(seconds[name], time.process_time() - begun)
            quality[name] = adjusted_rand_score(y[y >= 0], labels[y >= 0])
    return {name: (seconds[name], quality[name]) for name in methods}


def table(names: list[str], *, far: bool) -> tuple[list[list[str]], list[str], list[str]]:
    """Lines, a header, and what is above the bar."""
    lines, header, missed = [], [], []
    for name in names:
        X, y, n_clusters = data(name)
        if far:
            X, y = with_far_rows(X, y)
        found = measured(contenders(X, n_clusters), y, 5 if len(X) < 20_000 else 2)
        unit, ratio = found[UNIT][0], found[OURS][0] / found[UNIT][0]
        header = ["data", "KMeans(), seconds", f"{OURS}, at most", *found]
        cells = [f"{s / unit:.2f} (ARI {ari:.2f})" for s, ari in found.values()]
        lines.append([name, f"{unit:.3f}", f"{BARS[name]:g}", *cells])
        if ratio > BARS[name]:
            missed.append(f"{name}{', far rows' if far else ''}: {ratio:.2f} of {UNIT}, above {BARS[name]:g}")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines, header, missed


GROWTH = {
    "clusters": [(150 * K, 16, K) for K in (100, 300, 1000)],
    "rows": [(n, 16, 32) for n in (10_000, 100_000, 1_000_000)],
    "features": [(20_000, p, 32) for p in (8, 64, 512)],
}
SEARCH_BAR = {1000: 8.0}  # seconds of the search with so many separated clusters in 16 dimensions
SLOPE_BAR = 1.6  # in K


def growth() -> tuple[str, list[str]]:
    """How the search and the fit grow, with the slope of the logarithms from one line to the next."""
    lines, missed = [], []
    for title, shapes in GROWTH.items():
        before = None
        for n, p, K in shapes:
            X, _ = clusters(n, p, K)
            source = ArraySource(X, None)
            source.frame = source.measure()
            size = max(SAMPLE_ROWS, min(SAMPLE_ROWS_PER_CLUSTER * K, MANY_ROWS + LEAST_ROWS_PER_CLUSTER * K))
            sample = canonical(source.sample(size, np.random.RandomState(0)))
            begun = time.process_time()
            StartChoice(sample, K, None, np.random.RandomState(0)).result()
            search = time.process_time() - begun
            TKMeans(K).fit(X)
            fit = time.process_time() - begun - search
            size = {"clusters": K, "rows": n, "features": p}[title]
            slopes = ["", ""]
            if before is not None:
                step = np.log(size / before[0])
                slopes = [
                    f"{np.log(now / then) / step:.2f}" for now, then in zip((search, fit), before[1:], strict=True)
                ]
                if title == "clusters" and float(slopes[0]) > SLOPE_BAR:
                    missed.append(f"the search with {K} clusters grows with K to the {slopes[0]}, above {SLOPE_BAR}")
            if title == "clusters" and search > SEARCH_BAR.get(K, np.inf):
                missed.append(f"the search with {K} clusters takes {search:.1f} s, above {SEARCH_BAR[K]:g}")
            lines.append([title, f"{n} x {p}, K = {K}", f"{search:.2f}", slopes[0], f"{fit:.2f}", slopes[1]])
            print(lines[-1], file=sys.stderr, flush=True)
            before = size, search, fit
    return markdown(["grows", "data", "searches, seconds", "slope", "whole fit, seconds", "slope"], lines), missed


SMALL_BAR = 1.0  # times KMeans(n_init=10): the median over the real tables
ROUNDS = 20


def small_tables() -> tuple[str, list[str]]:
    """Real tables, and some sets of the paper, against KMeans with ten starts."""
    tables = [
        (case.name, np.ascontiguousarray(case.X, dtype=np.float64), case.labellings[0])
        for case in cases(1)
        if case.group == "real tables"
    ]
    sets = [(name, load(name)[0], load(name)[1] + 1) for name in ("S1", "S4", "A1", "A3")]
    lines, ratios = [], {}
    for name, X, y in [*tables, *sets]:
        n_clusters = len(np.unique(y[y > 0]))
        fits = {
            OURS: lambda X=X, K=n_clusters: TKMeans(K).fit(X).labels_,
            "KMeans(n_init=10)": lambda X=X, K=n_clusters: KMeans(K, n_init=10, random_state=0).fit(X).labels_,
        }
        (ours, our_ari), (theirs, their_ari) = measured(fits, np.where(y > 0, y, -1), ROUNDS).values()
        ratios[name] = ours / theirs
        lines.append(
            [name, f"{len(X)} x {X.shape[1]}, K = {n_clusters}", f"{1e3 * theirs:.1f}", f"{ours / theirs:.2f}"]
        )
        lines[-1] += [f"{our_ari:.2f}", f"{their_ari:.2f}"]
        print(lines[-1], file=sys.stderr, flush=True)
    median = float(np.median([ratios[name] for name, *_ in tables]))
    header = ["data", "", "KMeans(n_init=10), ms", f"{OURS}, ratio", "our ARI", "its ARI"]
    text = f"{markdown(header, lines)}\nThe median over the real tables is {median:.2f}; the bar is {SMALL_BAR:g}.\n"
    missed = [f"real tables: {median:.2f} of KMeans(n_init=10), above {SMALL_BAR:g}"] if median > SMALL_BAR else []
    return text, missed


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(BARS), default=list(BARS), metavar="DATA")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--no-sets", action="store_true", help="leave out the first two tables")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    text = (
        "CPU seconds of a whole fit on one thread, as a multiple of scikit-learn's `KMeans()`, which has one start,\n"
        "in the same run; the least of interleaved rounds. In brackets the ARI over the rows that are not far. faiss\n"
        "works in single precision, by default on 256 rows per cluster.\n\n"
    )
    missed = []
    with threadpool_limits(1):
        for title, far in () if options.no_sets else (("Clean data", False), ("With 2 % far rows", True)):
            lines, header, above = table(options.only, far=far)
            text += f"## {title}\n\n{markdown(header, lines)}\n"
            missed += above
        if options.tables:
            small, above = small_tables()
            text += f"## Small tables\n\n{small}\n"
            missed += above
        if options.growth:
            grown, above = growth()
            text += f"## Growth\n\nSeparated clusters, clean; slopes of logarithms.\n\n{grown}\n"
            missed += above
    if missed:
        text += "Above the bar:\n\n" + "\n".join(f"- {line}" for line in missed) + "\n"
    publish("Whole fits", text.rstrip("\n") + "\n", options.output)
    hold_to_the_bar(missed)


if __name__ == "__main__":
    main()
