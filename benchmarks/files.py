"""Fits of files that need not fit into memory, beside the same fit of an array.

python -m benchmarks.files [--rows 20000000] [--folder DIR] [--repeats 7] [--output docs/benchmarks/files.md]

Memory is that of whole fits, each in a process of its own, whose peak the system tells (Linux). Speed is that
of single passes over the rows, which take turns in one process: a fit of an array also computes p-values, which
a fit of a file leaves out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import hold_to_the_bar, markdown, publish
from tkmeans import engines
from tkmeans.models import Student
from tkmeans.sources import ArraySource
from tkmeans.sources.files import DataFile, FileSource
from tkmeans.stats import Params

N_FEATURES, N_CLUSTERS, ITERATIONS = 8, 20, 10
MEMORY, SPEED = 300, 0.6  # at most so many megabytes, at least this share of the array's rows per second

ROWS_IN = ("array", ".npy file", "Parquet file")

_FIT = """
import json, re, sys, time, warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tkmeans import TKMeans

path, kind, n_clusters, max_iter = *sys.argv[1:3], *map(int, sys.argv[3:])
data = np.load(path) if kind == "array" else path
warnings.simplefilter("ignore", ConvergenceWarning)
start, cpu = time.perf_counter(), time.process_time()
model = TKMeans(n_clusters, max_iter=max_iter, tol=0, random_state=0).fit(data)
print(json.dumps({
    "seconds": time.perf_counter() - start,
    "cpu": time.process_time() - cpu,
    "peak": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024,
    "rows": len(model.labels_),
    "bound": model.lower_bound_.hex(),
}))
"""


def write_rows(folder: Path, n_rows: int) -> tuple[Path, Path]:
    """The same rows as .npy and as Parquet, made a piece at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    npy, parquet = folder / "rows.npy", folder / "rows.parquet"
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=3.0, size=(N_CLUSTERS, N_FEATURES)).astype("f4")
    names = [f"x{j}" for j in range(N_FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, N_FEATURES)}
    with open(npy, "wb") as file, pq.ParquetWriter(parquet, schema) as writer:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n_rows, 1_000_000):
            n = min(1_000_000, n_rows - start)
            X = rng.standard_normal((n, N_FEATURES), dtype="f4") + centers[rng.integers(N_CLUSTERS, size=n)]
            file.write(X.tobytes())
            writer.write_table(pa.table(dict(zip(names, X.T, strict=True)), schema=schema))
    return npy, parquet


def fit(path: Path, kind: str) -> dict[str, float]:
    """Seconds and megabytes of a fit in a fresh process."""
    command = [sys.executable, "-c", _FIT, str(path), kind, str(N_CLUSTERS), str(ITERATIONS)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def seconds_of_passes(npy: Path, parquet: Path, repeats: int) -> dict[str, float]:
    """Least wall time of a pass of EM over the rows."""
    X = np.load(npy)
    frame = ArraySource(X, None).measure()
    centers = frame.enter(X[:: len(X) // N_CLUSTERS][:N_CLUSTERS].astype(float))
    e_step = Student(engine=engines.select("auto")).e_step(
        Params(centers, 0.1, 3.0, np.full(N_CLUSTERS, -np.log(N_CLUSTERS)))
    )
    least = dict.fromkeys(ROWS_IN, np.inf)
    files = (FileSource(DataFile(path), None, n_threads=1) for path in (npy, parquet))
    with ArraySource(X, None) as array, next(files) as file, next(files) as columns:
        sources = dict(zip(ROWS_IN, (array, file, columns), strict=True))
        for _ in range(repeats):
            for name, source in sources.items():
                source.frame = frame
                start = time.perf_counter()
                source.reduce(e_step)
                least[name] = min(least[name], time.perf_counter() - start)
    return least


def main() -> None:
    """Print the table, and fail below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        npy, parquet = write_rows(Path(folder), options.rows)
        places = dict(zip(ROWS_IN, (npy, npy, parquet), strict=True))
        fits = {name: fit(path, "array" if name == "array" else "file") for name, path in places.items()}
        passes = seconds_of_passes(npy, parquet, options.repeats)
        sizes = {name: path.stat().st_size / 2**20 for name, path in places.items()}
    rows, missed = [], []
    for name, run in fits.items():
        speed, peak = passes["array"] / passes[name], run["peak"]
        rate = options.rows / passes[name] / 1e6
        rows.append([name, f"{sizes[name]:.0f} MB", f"{peak:.0f} MB", f"{run['seconds']:.1f} s", f"{run['cpu']:.1f} s",
                     f"{passes[name]:.2f} s", f"{rate:.1f}", f"{speed:.0%}"])  # fmt: skip
        if name != "array" and peak >= MEMORY:
            missed.append(f"{name}: {peak:.0f} MB of resident memory, at most {MEMORY}")
        if speed < SPEED:
            missed.append(f"{name}: {speed:.0%} of the array's rows per second, at least {SPEED:.0%}")
    if len({run["bound"] for run in fits.values()}) > 1:
        missed.append("the fits differ")
    header = [
        "rows in",
        "size",
        "peak resident memory",
        "fit, wall",
        "fit, CPU",
        "a pass, wall",
        "million rows/s",
        "of the array's",
    ]
    text = markdown(header, rows) + (
        f"\n{options.rows / 1e6:g}e6 x {N_FEATURES} float32, {N_CLUSTERS} clusters, `TKMeans(n_jobs=1)`. *fit*: "
        f"{ITERATIONS} iterations with survey, start and labels, in its own process, whose peak of memory includes "
        "Python and its libraries; all fits are equal to the last bit. *a pass*: one visit of EM to all rows, least "
        f"wall time of {options.repeats} turns; a second thread reads while the first one computes. "
        f"Measured {time.strftime('%Y-%m-%d')}.\n"
    )
    publish("Files larger than memory", text, options.output)
    hold_to_the_bar(missed)


if __name__ == "__main__":
    main()
