"""Reading a CSV file: CPU time and peak memory beside polars, pandas and pyarrow.

python -m benchmarks.tables [--rows 1000000] [--repeats 5] [--output docs/benchmarks/tables.md]

Every reading has a process of its own, whose peak of memory the system tells (Linux); readers take turns, and
the least of each counts. Libraries are imported before the clock starts. Fails if ours takes more than twice the
CPU time or the memory of polars in the same run.
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

N_COLUMNS = 10
BAR = 2.0  # times polars, in CPU time and in memory

READERS = {
    "tkmeans": "import pyarrow.csv; from tkmeans.tables import read_table; read = lambda p: read_table(p).load()",
    "polars.read_csv": "import polars; read = polars.read_csv",
    "pandas.read_csv": "import pandas; read = pandas.read_csv",
    "pyarrow.csv.read_csv": "import pyarrow.csv; read = pyarrow.csv.read_csv",
}

_RUN = """
import json, re, sys, time
{setup}
start, cpu = time.perf_counter(), time.process_time()
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
        for name, setup in READERS.items():
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
        columns = {f"column{j}": rng.normal(size=given.rows) for j in range(N_COLUMNS)}
        polars.DataFrame(columns).write_csv(path)
        found = measured(path, given.repeats)
        size = path.stat().st_size / 2**20
    theirs = found["polars.read_csv"]
    rows = [
        [name, f"{cpu:.2f} s", f"{wall:.2f} s", f"{peak:.0f} MB", *_beside(theirs, cpu, peak)]
        for name, (wall, cpu, peak) in ((name, each.values()) for name, each in found.items())
    ]
    header = ["reader", "CPU", "wall", "peak resident memory", "CPU, of polars'", "memory, of polars'"]
    words = (
        f"{given.rows:,} rows of {N_COLUMNS} random floats, {size:.0f} MB of CSV; the least of {given.repeats} "
        "processes each, in turn, with the library imported before. The peak of memory includes Python and its "
        "libraries. *tkmeans* guesses the layout, checks the encoding of every byte and holds all columns as arrays."
    )
    publish("Reading tables", f"{markdown(header, rows)}\n{words}\n", given.output)
    ours = found["tkmeans"]
    ratios = {key: ours[key] / theirs[key] for key in ("cpu", "peak")}
    hold_to_the_bar([f"{key}: {ratio:.2f} times polars" for key, ratio in ratios.items() if ratio > BAR])


if __name__ == "__main__":
    main()
