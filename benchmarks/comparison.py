"""Clusterers on ten small data sets, as a picture and a table: five without outliers, and the same with 10 % of them.

python -m benchmarks.comparison [--output docs/benchmarks/comparison.md] [--picture docs/images/comparison.png]

As scikit-learn's comparison of clusterers: every method knows the number of clusters, except HDBSCAN, which finds it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.common import markdown, publish
from tkmeans import StudentTMixture, TKMeans

N_ROWS, FRACTION, RANGE, SEED = 600, 0.1, 6.0, 7

METHODS: dict[str, Callable[[int], Any]] = {
    "KMeans": lambda k: KMeans(k, n_init=10, random_state=SEED),
    "GaussianMixture": lambda k: GaussianMixture(k, n_init=10, random_state=SEED),
    "HDBSCAN": lambda _: HDBSCAN(min_cluster_size=15, copy=True),
    "TKMeans": lambda k: TKMeans(k, random_state=SEED),
    "StudentTMixture": lambda k: StudentTMixture(k, random_state=SEED),
}


def data_sets() -> dict[str, tuple[Any, Any]]:
    """Rows and their true clusters, -1 for outliers."""
    sizes = [400, 60, 60, 60]
    clean = {
        "touching": make_blobs(N_ROWS, centers=4, cluster_std=1.7, random_state=SEED),
        "unequal widths": make_blobs(N_ROWS, centers=3, cluster_std=[1.0, 2.5, 0.5], random_state=170),
        "long": make_blobs(N_ROWS, centers=3, random_state=170),
        "unequal sizes": make_blobs(sizes, centers=[[0, 0], [6, 0], [0, 6], [6, 6]], random_state=SEED),
        "moons": make_moons(N_ROWS, noise=0.06, random_state=SEED),
    }
    X, y = clean["long"]
    clean["long"] = X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y
    found, rng = {}, np.random.default_rng(SEED)
    for name, (X, y) in clean.items():
        found[name] = StandardScaler().fit_transform(X), y
    for name, (X, y) in [*found.items()]:
        far = rng.uniform(-RANGE, RANGE, (round(FRACTION * len(X)), 2))
        found[f"{name}, outliers"] = np.vstack([X, far]), np.append(y, np.full(len(far), -1))
    return found


def main() -> None:
    """Fit, draw, print and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    sets, rows, answers = data_sets(), [], {}
    for name, (X, y) in sets.items():
        scores = []
        for method, make in METHODS.items():
            start = time.process_time()
            model = make(len(set(y.tolist()) - {-1}))
            labels = model.fit_predict(X)
            seconds = time.process_time() - start
            score = adjusted_rand_score(y[y >= 0], labels[y >= 0])
            flagged = model.outliers(X) if hasattr(model, "outliers") else labels < 0
            answers[name, method] = np.where(flagged, -1, labels), score, seconds
            scores.append(score)
        rows.append([name, *(f"**{s:.2f}**" if s > max(scores) - 0.005 else f"{s:.2f}" for s in scores)])
    means = [[np.mean([answers[n, m][1] for n in names]) for m in METHODS] for names in ([*sets][:5], [*sets][5:])]
    for title, half in zip(("mean, clean", "mean, with outliers"), means, strict=True):
        rows.append([title, *(f"{mean:.2f}" for mean in half)])
    words = (
        f"ARI on the rows that are no outliers; the best in bold. {N_ROWS} rows each (unequal sizes: 580), scaled to\n"
        f"unit variance; outliers are {FRACTION:.0%} more rows, uniform in ±{RANGE:g}. Methods have their default\n"
        "settings, except n_init=10 for KMeans and GaussianMixture and min_cluster_size=15 for HDBSCAN. All of\n"
        "them are given the number of clusters, except HDBSCAN; its noise counts as one more cluster. Crosses are\n"
        "noise or rows that `outliers` flags; most outliers lie outside of the panels. Times are CPU seconds of one\n"
        "fit on one thread. Made by `python -m benchmarks.comparison`.\n"
    )
    image = "![Ten data sets clustered by five methods](../images/comparison.png)\n\n"
    publish("Clusterers on ten data sets", f"{image}{markdown(['', *METHODS], rows)}\n{words}", given.output)
    if given.picture is not None:
        draw(sets, answers, given.picture)


def draw(sets: dict[str, Any], answers: dict[Any, Any], path: Path) -> None:
    """A row of panels for each data set, a column for each method; grey crosses are noise or flagged outliers."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from tkmeans.plots import style

    figure, axes = plt.subplots(len(sets), len(METHODS), figsize=(10, 19), layout="constrained")
    for (name, (X, y)), line in zip(sets.items(), axes, strict=True):
        low, high = X[y >= 0].min(axis=0) - 0.6, X[y >= 0].max(axis=0) + 0.6
        for method, ax in zip(METHODS, line, strict=True):
            labels, score, seconds = answers[name, method]
            for k in range(labels.max() + 1):
                ax.scatter(*X[labels == k].T, s=5, color=style.color(k), linewidth=0)
            ax.scatter(*X[labels < 0].T, s=12, marker="x", color="0.35", linewidth=0.7)
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
            ax.text(0.03, 0.03, f"{score:.2f}", transform=ax.transAxes, weight="bold", va="bottom")
            ax.text(0.97, 0.03, f"{seconds:.2f} s", transform=ax.transAxes, ha="right", va="bottom", size=8)
        line[0].set_ylabel(name, size=10)
    for method, ax in zip(METHODS, axes[0], strict=True):
        ax.set_title(method, size=12)
    figure.savefig(path, dpi=75)


if __name__ == "__main__":
    main()
