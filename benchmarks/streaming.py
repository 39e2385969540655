"""Streams: how much is lost against a fit to all rows, how well drift is followed, and what a batch costs.

python -m benchmarks.streaming [docs/benchmarks/streaming.md]
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.common import CLUSTERS, generated, hold_to_the_bar, least_cpu_seconds, load, markdown, publish
from tkmeans import MiniBatchTKMeans, TKMeans
from tkmeans.datasets import contaminate

SEEDS = range(3)
BATCH = 250
BAR = 0.01  # ARI that a stream may lose
HALF_LIVES = (None, 4000, 1000)
COSTS = {f"{p} features, K = {K}": (p, K) for p in (2, 10, 64) for K in (10, 50)}
COST_BAR = 1.5  # times a batch of MiniBatchKMeans

NOISE = f"""\
ARI on the original rows with 10 % Cauchy noise, mean of {len(SEEDS)} seeds. The stream comes in batches of {BATCH}
rows, each seen once, the first 3000 (or 150 for each cluster) kept for the start; in the fourth column only the
first 1000, which are too few for 35 or 50 clusters. `fit` starts from 1000 rows as well, but searches among all of
them, and goes over batches of {BATCH} until they gain nothing.

"""
DRIFT = """
Four clusters that move, by so many of their widths per 1000 rows, and 10 % Cauchy noise: mean ARI of each batch's
labels before it is learned from, over 100 batches of 500 rows.

"""
COST = """
CPU milliseconds of a `partial_fit` of 1024 rows, which should take at most 1.5 times those of `MiniBatchKMeans`. Ours
also gives drift and the log-likelihood; p-values are computed when they are read.

"""


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        noise, missed = under_noise()
        drift, (cost, dear) = under_drift(), cost_of_a_batch()
    text = NOISE + noise + DRIFT + drift + COST + cost
    publish("Streams", text, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    hold_to_the_bar(missed + dear)


def under_noise() -> tuple[str, list[str]]:
    """The table for streams that do not change, and where they lose too much."""
    rows, missed = [], []
    for name, n_clusters in CLUSTERS.items():
        scores = np.array([_scores(name, n_clusters, seed) for seed in SEEDS]).mean(axis=0)
        rows.append([name, *(f"{score:.3f}" for score in scores)])
        missed += [
            f"{name}: {score:.3f} against {scores[0]:.3f}" for score in scores[[1, 3]] if scores[0] - score > BAR
        ]
        print(*rows[-1], file=sys.stderr)
    header = ["data", "TKMeans, all rows", "stream", "stream, 1000 first rows", "fit", "stream, MiniBatchKMeans"]
    return markdown(header, rows), missed


def _scores(name: str, n_clusters: int, seed: int) -> list[float]:
    X, y = contaminate(*load(name), "cauchy", fraction=0.1, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    models = [
        TKMeans(n_clusters, random_state=seed).fit(X),
        _streamed(MiniBatchTKMeans(n_clusters, random_state=seed), X),
        _streamed(MiniBatchTKMeans(n_clusters, init_size=1000, random_state=seed), X),
        MiniBatchTKMeans(n_clusters, init_size=1000, batch_size=BATCH, random_state=seed).fit(X),
        _streamed(MiniBatchKMeans(n_clusters, n_init=3, random_state=seed), X),
    ]
    return [adjusted_rand_score(y[y >= 0], model.predict(X)[y >= 0]) for model in models]


def _streamed(model, X: np.ndarray, batch: int = BATCH):
    for start in range(0, len(X), batch):
        model.partial_fit(X[start : start + batch])
    return model


def under_drift() -> str:
    """The table for clusters that move."""
    names = [f"half_life={half_life}" for half_life in HALF_LIVES] + ["MiniBatchKMeans"]
    rows = []
    for speed in (0.0, 0.1, 0.5):
        models = [MiniBatchTKMeans(4, half_life=half_life, random_state=0) for half_life in HALF_LIVES]
        scores = [_followed(model, speed) for model in (*models, MiniBatchKMeans(4, n_init=3, random_state=0))]
        rows.append([f"{speed:g}", *(f"{score:.3f}" for score in scores)])
        print(*rows[-1], file=sys.stderr)
    return markdown(["widths per 1000 rows", *names], rows)


def _followed(model, speed: float) -> float:
    rng = np.random.default_rng(0)
    centers = 6.0 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    directions = np.array([[1, 0], [0, -1], [0, 1], [-1, 0]])  # round in a circle, never through each other
    scores = []
    for batch in range(108):
        y = rng.integers(4, size=500)
        X = centers[y] + rng.standard_normal((500, 2))
        stray = rng.random(500) < 0.1
        X[stray] += 10 * rng.standard_cauchy((stray.sum(), 2))
        if batch >= 8:
            scores.append(adjusted_rand_score(y[~stray], model.predict(X)[~stray]))
            centers = centers + 0.5 * speed * directions
        model.partial_fit(X)
    return float(np.mean(scores))


def cost_of_a_batch() -> tuple[str, list[str]]:
    """The table of CPU times, and where a batch costs too much."""
    rows, missed = [], []
    for title, (n_features, n_clusters) in COSTS.items():
        X = generated(20_000, n_features, n_clusters)
        classes = {"ours": MiniBatchTKMeans, "theirs": MiniBatchKMeans}
        models = {name: each(n_clusters, random_state=0).fit(X) for name, each in classes.items()}
        ten_batches = X[:10_240]
        tasks = {name: partial(_streamed, model, ten_batches, 1024) for name, model in models.items()}
        ours, theirs = (100 * seconds for seconds in least_cpu_seconds(tasks, 10).values())  # of ten, in milliseconds
        rows.append([title, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}"])
        if ours > COST_BAR * theirs:
            missed.append(f"{title}: a batch takes {ours / theirs:.2f} of MiniBatchKMeans, above {COST_BAR:g}")
    return markdown(["", "MiniBatchTKMeans", "MiniBatchKMeans", "ratio"], rows), missed


if __name__ == "__main__":
    main()
