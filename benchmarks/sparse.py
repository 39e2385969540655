"""Sparse rows: scikit-learn's text-clustering example with one name changed, and passes over larger matrices.

python -m benchmarks.sparse [docs/benchmarks/sparse.md]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, v_measure_score
from threadpoolctl import threadpool_limits

from benchmarks.common import hold_to_the_bar, least_cpu_seconds, markdown, publish
from tkmeans import TKMeans

SEEDS = range(6)
STARTS = range(5)  # of KMeans, as in the example
TIME, MEMORY = 3.0, 2.0  # of KMeans', the bars
PASSES = {"20 000 x 5000, K = 20": (20_000, 5_000, 60, 20), "100 000 x 1000, K = 10": (100_000, 1_000, 20, 10)}

TEXT = f"""\
scikit-learn's example "Clustering text documents using k-means" with `KMeans` replaced by `TKMeans`, on generated
documents of its size (3387 texts in four groups; no download): words are drawn from one Zipf distribution that is
tilted for each group and again for each of its twelve threads, texts have log-normal lengths, and the share of words
on the topic varies. `TfidfVectorizer(max_df=0.5, min_df=5, stop_words="english")` makes the matrix, the estimator
is `(n_clusters=4, max_iter=100, n_init=1)`. V-measure of `KMeans`: mean, least and largest of {len(STARTS)} random
states; `TKMeans` does not depend on one. CPU seconds of a fit on one thread, and the largest memory of a process that
reads the matrix and fits once.

"""
LARGER = """
Fits of larger matrices, half of whose entries are in columns of the row's cluster: CPU seconds on one thread and ARI of
`KMeans(n_init=1)` and `TKMeans()`. The second is searched among all columns, the first in a subspace
([decision 22](../decisions/0022-sparse-rows.md)).

"""


def documents(seed: int, topical: float, n_documents: int = 3387) -> tuple[list[str], np.ndarray]:
    """Texts of four groups, of whose words about a share `topical` is the group's own, and the group of each."""
    rng = np.random.default_rng(seed)
    common = 1 / (np.arange(30_000) + 2.7) ** 1.05  # Zipf and Mandelbrot

    def tilted(weights: np.ndarray, by: float) -> np.ndarray:
        return weights * np.exp(by * rng.standard_normal(len(weights)))

    topics = [tilted(common, 1.3) for _ in range(4)]
    threads = [[np.cumsum(tilted(topic, 1.5)) for _ in range(12)] for topic in topics]
    topics, common = [np.cumsum(topic) for topic in topics], np.cumsum(common)
    labels = rng.choice(4, n_documents, p=[0.24, 0.29, 0.29, 0.18])
    texts = []
    for label in labels:
        length = int(np.clip(np.exp(rng.normal(4.4, 1.0)), 3, 3000))
        own = rng.binomial(length, rng.beta(1.2, 1.2 / topical - 1.2))
        parts = [(topics[label], own - own // 2), (threads[label][rng.integers(12)], own // 2), (common, length - own)]
        words = [np.searchsorted(weights, rng.random(size) * weights[-1]) for weights, size in parts]
        texts.append(" ".join(f"w{word}x" for word in np.concatenate(words)))
    return texts, labels


def tfidf(seed: int) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """The matrix that the example makes of documents, and their groups."""
    texts, labels = documents(seed, topical=(0.45, 0.5, 0.55)[seed % 3])
    return TfidfVectorizer(max_df=0.5, min_df=5, stop_words="english").fit_transform(texts), labels


def main() -> None:
    """Print the tables, and fail below the bars."""
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--fit"]:
        fit_once(*sys.argv[2:])
        return
    with threadpool_limits(1):
        text, missed = text_table()
        page = TEXT + text + LARGER + larger_table()
    publish("Sparse rows", page, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    hold_to_the_bar(missed)


def text_table() -> tuple[str, list[str]]:
    """V-measure, time and memory on generated texts, and the bars that were missed."""
    rows, figures = [], []
    for seed in SEEDS:
        X, y = tfidf(seed)
        theirs = [KMeans(4, max_iter=100, n_init=1, random_state=start) for start in STARTS]
        scores = [v_measure_score(y, model.fit(X).labels_) for model in theirs]
        ours = TKMeans(4, max_iter=100, n_init=1)
        score = v_measure_score(y, ours.fit(X).labels_)
        fits = {model: partial(model.fit, X) for model in (*theirs, ours)}
        *each, own = least_cpu_seconds(fits, repeats=3).values()
        seconds = [np.mean(each), own]
        megabytes = [peak_megabytes(name, X) for name in ("KMeans", "TKMeans")]
        figures.append([np.mean(scores), score, *seconds, *megabytes])
        spread = f"{np.mean(scores):.3f} ({min(scores):.3f} – {max(scores):.3f})"
        times = [f"{value:.3f}" for value in seconds] + [f"{value:.0f}" for value in megabytes]
        rows.append([f"{X.shape[0]} x {X.shape[1]}", spread, f"{score:.3f}", *times])
        print(*rows[-1], file=sys.stderr)
    mean = np.mean(figures, axis=0)
    rows.append(["mean", *(f"{value:.3f}" for value in mean[:2]), *(f"{value:.3f}" for value in mean[2:4])])
    rows[-1] += [f"{value:.0f}" for value in mean[4:]]
    header = ["matrix", "V, KMeans", "V, TKMeans", "s, KMeans", "s, TKMeans", "MB, KMeans", "MB, TKMeans"]
    missed = [] if mean[1] >= mean[0] else [f"V-measure {mean[1]:.3f} against {mean[0]:.3f}"]
    missed += [] if mean[3] <= TIME * mean[2] else [f"{mean[3]:.2f} s against {mean[2]:.2f} s"]
    missed += [] if mean[5] <= MEMORY * mean[4] else [f"{mean[5]:.0f} MB against {mean[4]:.0f} MB"]
    return markdown(header, rows), missed


def larger_table() -> str:
    """CPU seconds of fits to larger matrices."""
    rows = []
    for name, (n, p, entries, K) in PASSES.items():
        X, y = blocks(n, p, entries, K)
        fits = {model: partial(model.fit, X) for model in (KMeans(K, n_init=1, random_state=0), TKMeans(K))}
        seconds = [f"{value:.1f}" for value in least_cpu_seconds(fits, repeats=2).values()]
        rows.append([name, *seconds, *(f"{adjusted_rand_score(y, model.labels_):.3f}" for model in fits)])
        print(*rows[-1], file=sys.stderr)
    return markdown(["rows x columns", "s, KMeans", "s, TKMeans", "ARI, KMeans", "ARI, TKMeans"], rows)


def blocks(n: int, p: int, entries: int, K: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Rows of so many entries, half of them in the columns of the row's cluster, and that."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=n)
    own = (labels * (p // K))[:, None] + rng.integers(p // K, size=(n, entries // 2))
    columns = np.hstack([own, rng.integers(p, size=(n, entries - entries // 2))]).ravel().astype(np.int32)
    X = scipy.sparse.csr_array(
        (rng.random(columns.size), columns, (entries * np.arange(n + 1)).astype(np.int32)), shape=(n, p)
    )
    X.sum_duplicates()
    return X, labels


def peak_megabytes(name: str, X: scipy.sparse.csr_matrix) -> float:
    """The most memory of a process that reads the matrix and fits it once."""
    with tempfile.TemporaryDirectory() as folder:
        scipy.sparse.save_npz(Path(folder) / "X.npz", X)
        command = [sys.executable, "-m", "benchmarks.sparse", "--fit", name, f"{folder}/X.npz"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def fit_once(name: str, file: str) -> None:
    """Fit a matrix, and print the most memory this process has held."""
    X = scipy.sparse.load_npz(file)
    {"KMeans": KMeans, "TKMeans": TKMeans}[name](4, max_iter=100, n_init=1, random_state=0).fit(X)
    (peak,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(int(peak) / 1024)  # not ru_maxrss, which is that of the parent where it is larger


if __name__ == "__main__":
    main()
