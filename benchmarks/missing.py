"""Missing values: ARI of TKMeans, which fills nothing in, beside pipelines that impute first.

python -m benchmarks.missing [--seeds 10] [docs/benchmarks/missing.md]

Entries are missing completely at random, anew for every seed. The command fails where TKMeans
misses its bar: with 20 % missing an ARI of 1.000 on dim032, and on S1 more than SimpleImputer
with KMeans and with GaussianMixture.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.common import hold_to_the_bar, markdown, publish
from tkmeans import TKMeans
from tkmeans.datasets import fetch_benchmark, scaled

SETS = ("S1", "dim032", "wine")
FRACTIONS = (0.0, 0.05, 0.2, 0.4)
OURS, KMEANS, GAUSSIAN = "TKMeans", "SimpleImputer + KMeans", "SimpleImputer + GaussianMixture"
INTRO = """\
ARI on all rows, mean ± standard deviation over {seeds} seeds, with entries missing completely at random; the last
column is CPU seconds of one fit with 20 % missing. KMeans has n_init=10. In two dimensions (S1)
20 % missing entries leave 4 % of the rows with nothing and 32 % with one coordinate, in which most clusters overlap: no
method can know where these belong. wine is standardised by columns, without its 14th, which repeats the 13th and would
give away its missing values; its labels are scikit-learn's. Its features go together within the clusters, which an
imputer that looks at neighbours can use and round clusters cannot: there KNNImputer may be the better one.
"""


def load(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, labels and the number of clusters."""
    data = fetch_benchmark(name)
    if name == "wine":  # the file has no labels; its rows are in scikit-learn's order
        return StandardScaler().fit_transform(data.data[:, :13]), load_wine().target, data.n_clusters
    return scaled(data.data), data.target, data.n_clusters


def methods(n_clusters: int, seed: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Every method as a function from rows with holes to labels."""
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed)
    estimators = {
        OURS: TKMeans(n_clusters, random_state=seed),
        KMEANS: make_pipeline(SimpleImputer(), kmeans),
        GAUSSIAN: make_pipeline(SimpleImputer(), GaussianMixture(n_clusters, random_state=seed)),
        "KNNImputer + KMeans": make_pipeline(KNNImputer(), kmeans),
        "IterativeImputer + KMeans": make_pipeline(IterativeImputer(random_state=seed), kmeans),
        "KNNImputer + TKMeans": make_pipeline(KNNImputer(), TKMeans(n_clusters, random_state=seed)),
    }
    return {name: estimator.fit_predict for name, estimator in estimators.items()}


def measure(name: str, fraction: float, method: str, n_seeds: int) -> tuple[np.ndarray, float]:
    """ARI by seed, and the CPU seconds of the median fit."""
    X, y, n_clusters = load(name)
    scores, seconds = [], []
    for seed in range(n_seeds):
        holes = np.where(np.random.default_rng(seed).random(X.shape) < fraction, np.nan, X)
        start = time.process_time()
        labels = methods(n_clusters, seed)[method](holes)
        seconds.append(time.process_time() - start)
        scores.append(adjusted_rand_score(y, labels))
    return np.array(scores), float(np.median(seconds))


def missed(mean: dict[tuple[str, float, str], float]) -> list[str]:
    """What is below the bar, by the mean ARI of (set, fraction, method)."""
    out = []
    if round(mean["dim032", 0.2, OURS], 3) < 1:
        out.append(f"dim032 with 20 % missing: {mean['dim032', 0.2, OURS]:.4f} is below 1.000")
    for other in (KMEANS, GAUSSIAN):
        if mean["S1", 0.2, OURS] <= mean["S1", 0.2, other]:
            out.append(f"S1 with 20 % missing: {mean['S1', 0.2, OURS]:.3f} is not above {other}")
    return out


def main() -> None:
    """Print the table, and fail where TKMeans is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # empty rows are expected, and imputers do not converge
    text, mean = INTRO.format(seeds=options.seeds), {}
    with threadpool_limits(1):
        for name in SETS:
            rows = []
            for method in methods(2, 0):
                results = [measure(name, fraction, method, options.seeds) for fraction in FRACTIONS]
                mean |= {(name, f, method): ari.mean() for f, (ari, _) in zip(FRACTIONS, results, strict=True)}
                cells = (f"{ari.mean():.3f} ± {ari.std():.3f}" for ari, _ in results)
                rows.append([method, *cells, f"{results[FRACTIONS.index(0.2)][1]:.2f}"])
                print(name, *rows[-1], flush=True)
            header = ["", *(f"{fraction:.0%} missing" for fraction in FRACTIONS), "seconds"]
            text += f"\n## {name}\n\n" + markdown(header, rows)
    publish("Missing values", text, options.path)
    hold_to_the_bar(missed(mean))


if __name__ == "__main__":
    main()
