"""The same right answer from every seed: ARI on the original rows, clean and contaminated.

python -m benchmarks.stability [--seeds 20] [--others 5] [--only A1,S1] [--repeats 10] [docs/benchmarks/stability.md]

Every seed draws fresh contamination and a fresh random_state. The bar that TKMeans must
reach (mean at least, standard deviation at most) is in BAR; the command fails below it.
A second part, benchmarks/agreement.py, repeats fits of foreign sets and real tables; --repeats 0 leaves it out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks import agreement
from benchmarks.common import CLUSTERS, hold_to_the_bar, load, markdown, publish
from tkmeans import TKMeans

CONTAMINATIONS: dict[str, tuple[float, Callable]] = {
    "clean": (0.0, lambda rng, n, p: rng.uniform(-1, 1, (n, p))),
    "+ 20 % uniform": (0.2, lambda rng, n, p: rng.uniform(-1, 1, (n, p))),
    "+ 5 % far": (0.05, lambda rng, n, p: rng.uniform(-10, 10, (n, p))),
    "+ 10 % Cauchy": (0.1, lambda rng, n, p: rng.standard_cauchy((n, p))),
    "+ 30 % far": (0.3, lambda rng, n, p: rng.uniform(-10, 10, (n, p))),
}

_BAR = """
clean          .946/.001 .977/.001 .996/.001 .985/.001 .936/.001 .728/.001 .632/.001 1/0 1/0 .999/.001
+ 20 % uniform .949/.003 .975/.002 .994/.002 .985/.001 .936/.001 .727/.002 .629/.004 1/0 1/0 .999/.001
+ 5 % far      .948/.001 .977/.001 .996/.001 .985/.001 .937/.001 .729/.001 .633/.001 1/0 1/0 .999/.001
+ 10 % Cauchy  .948/.002 .976/.001 .996/.001 .985/.001 .937/.001 .729/.001 .632/.001 1/0 1/0 .999/.001
+ 30 % far     0/1 0/1 0/1 .984/.002 .936/.002 .726/.003 .628/.004 1/0 1/0 .99/.01
"""
SETS = ("A1", "A2", "A3", "S1", "S2", "S3", "S4", "dim032", "dim064", "unbalance")
BAR = {
    (name, line[:14].strip()): tuple(float(part) for part in cell.split("/"))
    for line in _BAR.strip().splitlines()
    for name, cell in zip(SETS, line[14:].split(), strict=True)
}


class Result(NamedTuple):
    """What one method reached on one data set."""

    ari: np.ndarray
    seconds: float  # CPU, of the median fit

    def __str__(self) -> str:
        return f"{self.ari.mean():.3f} ± {self.ari.std():.3f} ({self.ari.min():.3f})"


def trimmed_kmeans(X: np.ndarray, n_clusters: int, fraction: float, seed: int) -> np.ndarray:
    """Labels of k-means that leaves out the given fraction of the farthest rows, best of ten starts."""
    rng = np.random.RandomState(seed)
    keep = round(len(X) / (1 + fraction))
    best, labels = np.inf, None
    for _ in range(10):
        centers = X[rng.choice(len(X), n_clusters, replace=False)]
        for _ in range(100):
            d2 = ((X[:, None] - centers) ** 2).sum(-1)
            nearest, away = d2.argmin(1), d2.min(1)
            kept = np.argpartition(away, keep - 1)[:keep]
            counts = np.bincount(nearest[kept], minlength=n_clusters)
            sums = np.zeros_like(centers)
            np.add.at(sums, nearest[kept], X[kept])
            moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
            if np.allclose(moved, centers, atol=1e-6):
                break
            centers = moved
        if away[kept].sum() < best:
            best, labels = away[kept].sum(), nearest
    return labels


def methods(n_clusters: int, fraction: float) -> dict[str, Callable[[np.ndarray, int], np.ndarray]]:
    """Every method as a function of rows and seed that returns labels."""
    table = {
        "TKMeans": lambda X, s: TKMeans(n_clusters, random_state=s).fit_predict(X),
        "KMeans, n_init=10": lambda X, s: KMeans(n_clusters, n_init=10, random_state=s).fit_predict(X),
        "KMeans, n_init=1": lambda X, s: KMeans(n_clusters, n_init=1, random_state=s).fit_predict(X),
        "GaussianMixture": lambda X, s: GaussianMixture(n_clusters, random_state=s).fit_predict(X),
        "HDBSCAN": lambda X, _: HDBSCAN(min_cluster_size=25, copy=True).fit_predict(X),
        "trimmed k-means": lambda X, s: trimmed_kmeans(X, n_clusters, fraction, s),
    }
    if importlib.util.find_spec("bkmeans"):
        from bkmeans import BKMeans

        table["breathing k-means"] = lambda X, s: BKMeans(n_clusters=n_clusters, random_state=s).fit(X).labels_
    return table


def measure(name: str, contamination: str, method: str, n_seeds: int) -> Result:
    """ARI of one method over fresh contamination and seeds."""
    genuine, y = load(name)
    fraction, draw = CONTAMINATIONS[contamination]
    fit = methods(CLUSTERS[name], fraction)[method]
    scores, seconds = [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X = np.vstack([genuine, draw(rng, round(fraction * len(genuine)), genuine.shape[1])])
        start = time.process_time()
        labels = fit(X, seed)
        seconds.append(time.process_time() - start)
        scores.append(adjusted_rand_score(y, labels[: len(genuine)]))
    return Result(np.array(scores), float(np.median(seconds)))


def main() -> None:
    """Print the tables, and fail where TKMeans is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of TKMeans")
    parser.add_argument("--others", type=int, default=5, help="seeds of the other methods; 0 leaves them out")
    parser.add_argument("--only", type=lambda text: text.split(","), default=SETS, help="data sets, by commas")
    parser.add_argument("--repeats", type=int, default=10, help="of every foreign set; 0 leaves them out")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the foreign sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # other methods do not converge, and say so
    text, below = "", []
    with threadpool_limits(1):
        for contamination, (fraction, _) in CONTAMINATIONS.items():
            rows = []
            for method in methods(2, fraction):
                n_seeds = options.seeds if method == "TKMeans" else options.others
                if n_seeds == 0:
                    continue
                results = {name: measure(name, contamination, method, n_seeds) for name in options.only}
                rows.append([method, *(str(result) for result in results.values())])
                rows[-1].append(f"{sum(result.seconds for result in results.values()):.2f}")
                print(contamination, *rows[-1], flush=True)
                if method == "TKMeans":
                    below += [
                        f"{name} {contamination}: {result} is below {BAR[name, contamination]}"
                        for name, result in results.items()
                        if round(result.ari.mean(), 3) < BAR[name, contamination][0]
                        or round(result.ari.std(), 3) > BAR[name, contamination][1]
                    ]
            text += f"\n## {contamination}\n\n" + markdown(["", *options.only, "seconds in all"], rows)
    intro = (
        f"ARI on the original rows: mean ± standard deviation (worst seed), {options.seeds} seeds for TKMeans and "
        f"{options.others}\nfor the others; the last column is CPU seconds for one fit of every set. Trimmed k-means "
        "is given the true fraction.\nHDBSCAN chooses the number of clusters itself and leaves rows unlabelled.\n"
    )
    if options.repeats:
        foreign, missed = agreement.section(options.repeats, options.jobs)
        text, below = text + foreign, below + missed
    publish("Stability", intro + text, options.path)
    hold_to_the_bar(below)


if __name__ == "__main__":
    main()
