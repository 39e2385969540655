"""One pass of the native engine, as a multiple of one Lloyd iteration of scikit-learn.

    python -m benchmarks.passes docs/benchmarks/passes.md

One thread, CPU time, everything in turns and the least of several rounds. The data
are mixtures of round clusters and the parameters those of a fit near its end.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from threadpoolctl import threadpool_limits

from benchmarks.common import hold_to_the_bar, least_cpu_seconds, markdown, publish
from tkmeans.engines import native
from tkmeans.models import Student
from tkmeans.stats import Block, Frame, Params

MOST = 1.15  # of the prototype's ratio, in every row
# (rows, p, K): the first prototype's pass in float64 and in float32, as a multiple of Lloyd.
SHAPES = {
    (1_000_000, 2, 15): (2.50, 1.07),
    (1_000_000, 2, 100): (2.73, 1.39),
    (1_000_000, 16, 32): (2.62, 2.03),
    (200_000, 64, 100): (2.31, 1.88),
    (100_000, 256, 64): (1.82, 1.74),
    (100_000, 784, 10): (0.94, 1.08),
}
NOTES = """
Multiples of scikit-learn's Lloyd iteration on the same rows, one thread, CPU time ({instruction_set}).

- *plain*: any dof, with the sums that estimate it and the entropy; every pair in full.
- *whole powers*: dof fixed with dof + p an integer, so no logarithm per pair; every pair in full.
- *as called*: what a fit with dof=1 really runs: as before, and pairs whose membership is below 1e-16 are skipped.
- *prototype*: the plain pass of the first prototype; the target is at most 15 % above it.
- *parts*: the two matrix products at the peak ({peak}), and for each pair the logarithm, inverse
  and exponential as NumPy computes them ({log_exp}). These also look for numbers out of range, so a pass can be
  quicker than its parts.
- *intelex*, *faiss*: a Lloyd iteration of scikit-learn-intelex and of faiss (float32 only).
"""


def mixture(n: int, p: int, K: int, dtype: str) -> tuple[Block, Params]:
    """Clusters of unit spread, and where a fit with dof 1 arrives on them."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=2.0, size=(K, p))
    X = rng.standard_normal((n, p), dtype=dtype)
    for start in range(0, n, 10_000):
        part = X[start : start + 10_000]
        part += centers[rng.integers(K, size=len(part))].astype(dtype)
    origin = X[:10_000].mean(axis=0)
    block = Block(X, None, Frame(origin, 1.0))
    params = Params(centers - origin, 1.0, 1.0, np.full(K, -np.log(K)))
    model, sample = Student(estimate_dof=False), block._replace(X=X[:20_000])
    for _ in range(3):
        params = model.m_step(native.summarize(sample, params, model.kernel(params)), params)
    return block, params


def lloyd(X: np.ndarray, centers: np.ndarray) -> None:
    """One iteration of scikit-learn's KMeans."""
    n, K = len(X), len(centers)
    weight, new = np.ones(n, X.dtype), np.zeros_like(centers)
    lloyd_iter_chunked_dense(
        X, weight, centers, new, np.zeros(K, X.dtype), np.zeros(n, np.int32), np.zeros(K, X.dtype), 1
    )


def per_iteration(fit, many: int = 4, repeats: int = 3) -> float:
    """CPU seconds of one iteration, from fits of one and of several."""
    seconds = least_cpu_seconds({"one": lambda: fit(1), "many": lambda: fit(1 + many)}, repeats)
    return (seconds["many"] - seconds["one"]) / many


def intelex(X: np.ndarray, start: np.ndarray) -> float:
    """CPU seconds of an iteration of scikit-learn-intelex."""
    import daal4py
    from sklearnex.cluster import KMeans

    daal4py.daalinit(nthreads=1)
    options = {"n_clusters": len(start), "init": start, "n_init": 1, "tol": 0.0, "algorithm": "lloyd"}
    return per_iteration(lambda n: KMeans(max_iter=n, **options).fit(X))


def faiss(X: np.ndarray, start: np.ndarray) -> float:
    """CPU seconds of an iteration of faiss."""
    import faiss

    faiss.omp_set_num_threads(1)
    options = {"max_points_per_centroid": len(X), "min_points_per_centroid": 1}
    K, p = start.shape
    return per_iteration(lambda n: faiss.Kmeans(p, K, niter=n, **options).train(X, init_centroids=start))


def peak_flops(dtype: str, size: int = 1200) -> float:
    """What a large matrix product reaches."""
    a = np.ones((size, size), dtype)
    return 2 * size**3 / least_cpu_seconds({"product": lambda: a @ a}, 7)["product"]


def log_exp_rate(dtype: str, n: int = 8192, times: int = 300) -> float:
    """Numbers per second whose logarithm, inverse and exponential NumPy computes in the second-level cache."""
    d2, log_base, inverse = (np.linspace(0, 9, n).astype(dtype) for _ in range(3))

    def run() -> None:
        for _ in range(times):
            np.log1p(d2, out=log_base)
            np.divide(1, 1 + d2, out=inverse)
            np.exp(-1.5 * log_base, out=log_base)

    return n * times / least_cpu_seconds({"log_exp": run}, 15)["log_exp"]


def measure(shape: tuple[int, int, int], dtype: str, repeats: int, compare: bool) -> dict[str, float | str]:
    """All columns of one row of the table, as multiples of Lloyd."""
    n, p, K = shape
    block, params = mixture(n, p, K, dtype)
    kernel = Student().kernel(params)
    fixed = kernel._replace(log_sums=False)
    centers = params.centers.astype(dtype)
    tasks = {
        "lloyd": lambda: lloyd(block.X, centers),
        "plain": lambda: native.summarize(block, params, kernel, skip_far=False),
        "whole powers": lambda: native.summarize(block, params, fixed, skip_far=False),
        "as called": lambda: native.summarize(block, params, fixed),
    }
    seconds = least_cpu_seconds(tasks, repeats)
    found: dict[str, float | str] = {name: value / seconds["lloyd"] for name, value in seconds.items()}
    found["lloyd"] = f"{1e3 * seconds['lloyd']:.1f} ms"
    found["parts"] = (4 * n * p * K / peak_flops(dtype) + n * K / log_exp_rate(dtype)) / seconds["lloyd"]
    start = block.X[np.random.default_rng(1).choice(n, K, replace=False)].copy()
    for name, library, run in [("intelex", "sklearnex", intelex), ("faiss", "faiss", faiss)]:
        if name == "faiss" and dtype != "float32":
            found[name] = "-"
        elif not compare or importlib.util.find_spec(library) is None:
            found[name] = "not installed" if compare else "-"
        else:
            found[name] = run(block.X, start) / seconds["lloyd"]
    return found


def main() -> None:
    """Measure, print, and keep the table if a path is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, help="where to write the table, as Markdown")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--fewer-rows", type=int, default=1, metavar="N", help="divide the numbers of rows by N")
    parser.add_argument("--alone", action="store_true", help="without the other libraries")
    args = parser.parse_args()

    rows = []
    columns = [
        "plain",
        "whole powers",
        "as called",
        "prototype",
        "plain / prototype",
        "parts",
        "plain / parts",
        "intelex",
        "faiss",
    ]
    print(" | ".join(["rows, p, K", "type", "Lloyd", *columns]), flush=True)
    with threadpool_limits(1):
        peak = ", ".join(f"{peak_flops(t) / 1e9:.0f} Gflop/s in {t}" for t in ("float64", "float32"))
        log_exp = ", ".join(f"{1e9 / log_exp_rate(t):.2f} ns in {t}" for t in ("float64", "float32"))
        for dtype in ("float64", "float32"):
            for (n, p, K), prototype in SHAPES.items():
                found = measure((n // args.fewer_rows, p, K), dtype, args.repeats, not args.alone)
                found["prototype"] = prototype[dtype == "float32"]
                found["plain / prototype"] = found["plain"] / found["prototype"]
                found["plain / parts"] = found["plain"] / found["parts"]
                cells = [f"{found[c]:.2f}" if isinstance(found[c], float) else found[c] for c in columns]
                rows.append([f"{n // args.fewer_rows:,}, {p}, {K}", dtype, found["lloyd"], *cells])
                print(" | ".join(rows[-1]), flush=True)
    notes = NOTES.format(instruction_set=native.instruction_set(), peak=peak, log_exp=log_exp)
    at = 3 + columns.index("plain / prototype")
    stamp = time.strftime("%Y-%m-%d")
    text = markdown(["rows, p, K", "type", "Lloyd", *columns], rows) + notes + f"\nMeasured {stamp}.\n"
    publish("One pass of the native engine", text, args.path)
    hold_to_the_bar([f"{row[0]} {row[1]}: {row[at]} of the prototype" for row in rows if float(row[at]) > MOST])


if __name__ == "__main__":
    main()
