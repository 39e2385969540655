"""Reading a CSV file, and `tkmeans fit` on it: CPU time and peak memory beside polars, pandas and pyarrow.

python -m benchmarks.tables [--rows 1000000] [--repeats 5] [--output docs/benchmarks/tables.md]

Every reading has a process of its own, whose peak memory the system reports (Linux); readers take turns, and
the least of each counts. Libraries are imported before the clock starts. Fails if ours takes more than twice the
CPU time or the memory of polars in the same run, or if `tkmeans fit FILE -k 8` takes more CPU time than three
times polars' reading and the fit itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import hold_to_the_bar, markdown, publish

N_COLUMNS, N_CLUSTERS = 10, 8
BAR = 2.0  # times polars, in CPU time and in memory
COMMAND_BAR = 3.0  # times polars' CPU time, beside the fit itself

READERS = {
    "tkmeans": "import pyarrow.csv; from tkmeans.tables import read_table; read = lambda p: read_table(p).load()",
    "polars.read_csv": "import polars; read = polars.read_csv",
    "pandas.read_csv": "import pandas; read = pandas.read_csv",
    "pyarrow.csv.read_csv": "import pyarrow.csv; read = pyarrow.csv.read_csv",
}
FIT, COMMAND = "TKMeans(8).fit on the scaled rows", "tkmeans fit FILE -k 8"
WORK = {
    FIT: """
import numpy as np
from sklearn.preprocessing import RobustScaler
from tkmeans import TKMeans
rows = RobustScaler().fit_transform(np.load(sys.argv[1].replace("csv", "npy")))
read = lambda path: TKMeans(8, random_state=0, n_jobs=-1).fit(rows)  # as the command does""",
    COMMAND: """
from tkmeans import cli
read = lambda path: cli.app(["fit", path, "-k", "8"], standalone_mode=False)
with contextlib.redirect_stdout(io.StringIO()):
    read(sys.argv[1].replace("rows", "few"))  # so that all is imported""",
}

_RUN = """
import contextlib, io, json, re, sys, time
import numpy as np
{setup}
start, cpu = time.perf_counter(), time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    held = read(sys.argv[1])
print(json.dumps({{
    "seconds": time.perf_counter() - start,
    "cpu": time.process_time() - cpu,
    "peak": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024,
}}))
"""


def measured(path: Path, repeats: int) -> dict[str, dict[str, float]]:
    """The least wall time, CPU time and peak memory of every reader."""
    least: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, setup in (READERS | WORK).items():
            code = _RUN.format(setup=setup)
            done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            least[name] = {key: min(value, least.get(name, found)[key]) for key, value in found.items()}
    return least


def _beside(theirs: dict[str, float], cpu: float, peak: float) -> list[str]:
    return [f"{cpu / theirs['cpu']:.2f}", f"{peak / theirs['peak']:.2f}"]


def main() -> None:
    """Measure, print, write the page, and fail beyond the bar."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        import polars

        path, rng = Path(folder) / "rows.csv", np.random.default_rng(0)
        centers = rng.normal(scale=6, size=(N_CLUSTERS, N_COLUMNS))
        rows = centers[rng.integers(N_CLUSTERS, size=given.rows)] + rng.normal(size=(given.rows, N_COLUMNS))
        for name, part in (("rows", rows), ("few", rows[:100])):
            polars.DataFrame({f"column{j}": part[:, j] for j in range(N_COLUMNS)}).write_csv(path.with_stem(name))
        np.save(path.with_suffix(".npy"), rows)
        found = measured(path, given.repeats)
        size = path.stat().st_size / 2**20
    theirs = found["polars.read_csv"]
    cells = [
        [name, f"{cpu:.2f} s", f"{wall:.2f} s", f"{peak:.0f} MB", *_beside(theirs, cpu, peak)]
        for name, (wall, cpu, peak) in ((name, each.values()) for name, each in found.items())
    ]
    header = ["reader", "CPU", "wall", "peak resident memory", "CPU, of polars'", "memory, of polars'"]
    beyond = found[COMMAND]["cpu"] - found[FIT]["cpu"]
    words = (
        f"{given.rows:,} rows of {N_COLUMNS} floats in {N_CLUSTERS} clusters, {size:.0f} MB of CSV; the least of "
        f"{given.repeats} processes each, in turn, with the libraries imported before. The peak of memory includes "
        "Python and its libraries. *tkmeans* guesses the layout, checks the encoding of every byte and holds all "
        "columns as arrays. The command reads, chooses and scales columns, fits, describes the clusters and prints; "
        f"beside the fit itself it takes {beyond / theirs['cpu']:.2f} times the CPU time of polars' reading."
    )
    publish("Reading tables", f"{markdown(header, cells)}\n{words}\n", given.output)
    ours = found["tkmeans"]
    ratios = {key: ours[key] / theirs[key] for key in ("cpu", "peak")}
    failed = [f"{key}: {ratio:.2f} times polars" for key, ratio in ratios.items() if ratio > BAR]
    if beyond > COMMAND_BAR * theirs["cpu"]:
        failed.append(f"{COMMAND}: {beyond / theirs['cpu']:.2f} times polars beside the fit")
    hold_to_the_bar(failed)


if __name__ == "__main__":
    main()
