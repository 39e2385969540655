"""How much two threads help: the wall-clock time of passes on one thread against two.

python -m benchmarks.threads [docs/benchmarks/threads.md]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.common import generated, hold_to_the_bar, markdown, publish
from tkmeans import engines
from tkmeans.models import Student
from tkmeans.sources import ArraySource
from tkmeans.stats import Params

LEAST = 1.6  # speed-up; needs two cores that nobody else uses
SHAPES = {"2e5 x 64, K = 100": (200_000, 64, 100), "1e6 x 16, K = 32": (1_000_000, 16, 32)}


def main(repeats: int = 9) -> None:
    """Print the table."""
    rows = []
    for title, (n, n_features, n_clusters) in SHAPES.items():
        X = generated(n, n_features, n_clusters)
        frame = ArraySource(X, None).measure()
        centers = frame.enter(X[:: n // n_clusters][:n_clusters])
        params = Params(centers, 1.0 / frame.unit**2, 3.0, np.full(n_clusters, -np.log(n_clusters)))
        e_step = Student(engine=engines.select("native")).e_step(params)
        least = {1: np.inf, 2: np.inf}
        for _ in range(repeats):
            for n_threads in least:
                with ArraySource(X, None, frame, n_threads=n_threads) as source:
                    start = time.perf_counter()
                    source.reduce(e_step)
                    least[n_threads] = min(least[n_threads], time.perf_counter() - start)
        rows.append([title, f"{least[1]:.3f}", f"{least[2]:.3f}", f"{least[1] / least[2]:.2f}"])
    text = "Wall-clock seconds of one pass, the least of interleaved repeats.\n\n"
    text += markdown(["data", "one thread, s", "two threads, s", "speed-up"], rows)
    publish("Threads", text, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    hold_to_the_bar([f"{row[0]}: {row[-1]} is below {LEAST}" for row in rows if float(row[-1]) < LEAST])


if __name__ == "__main__":
    main()
