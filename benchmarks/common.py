"""What the benchmarks share: data, clocks and tables."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tkmeans.datasets import fetch_benchmark, scaled

_NEXT_TO_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"
if _NEXT_TO_THE_REPOSITORY.exists():  # otherwise fetch_benchmark takes them from its cache or their public home
    os.environ.setdefault("TKMEANS_DATA", str(_NEXT_TO_THE_REPOSITORY))

LONG = 20.0  # CPU seconds that are too many to spend twice

CLUSTERS = {"A1": 20, "A2": 35, "A3": 50, "S1": 15, "S2": 15, "S3": 15, "S4": 15}
CLUSTERS |= {"dim032": 16, "dim064": 16, "unbalance": 8}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """One of the paper's data sets, scaled as its authors did, with its labels."""
    data = fetch_benchmark(name)
    return scaled(data.data), data.target


def generated(n: int, n_features: int, n_clusters: int, seed: int = 0) -> np.ndarray:
    """Round clusters of unit spread that overlap a little."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=3.0, size=(n_clusters, n_features))
    X = rng.standard_normal((n, n_features))
    for start in range(0, n, 10_000):  # in place: what is made on the way would count as memory in use
        part = X[start : start + 10_000]
        part += centers[rng.integers(n_clusters, size=len(part))]
    return X


def least_cpu_seconds(tasks: dict[Any, Callable[[], object]], repeats: int) -> dict[Any, float]:
    """CPU seconds of each task, the least of `repeats` rounds in which they take turns; long ones run once."""
    least = dict.fromkeys(tasks, np.inf)
    for _ in range(repeats):
        for name, task in tasks.items():
            if LONG < least[name] < np.inf:
                continue
            start = time.process_time()
            task()
            least[name] = min(least[name], time.process_time() - start)
    return least


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def hold_to_the_bar(missed: Sequence[str]) -> None:
    """End with an error that lists what a measurement should have reached and did not."""
    if missed:
        raise SystemExit("below the bar:\n" + "\n".join(missed))


def publish(title: str, text: str, path: Path | None) -> None:
    """Print a result and, if there is a path, keep it for the documentation."""
    print(text)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {title}\n\n{text}")


def agreeing(rows: Iterable[Any], *, rounding: bool = True) -> int:
    """In how many rows the released code gives the published mean."""
    return sum(row.rating(rounding=rounding) == "agrees" for row in rows)
