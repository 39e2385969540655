"""The same fits with every instruction set that this machine has: how far they part.

The engine is compiled for several instruction sets, which add up in another order and may or may not fuse a product
with a sum. Every set of the paper and every real table of benchmarks/foreign_sets.py is fitted in float64 and in
float32 with each; data without clusters come last, and are not judged.

python -m benchmarks.instruction_sets [docs/benchmarks/instruction-sets.md] [--jobs 2]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from joblib import Parallel, delayed, parallel_config

from benchmarks.common import CLUSTERS, generated, hold_to_the_bar, load, markdown, publish
from benchmarks.foreign_sets import real_tables, standardised
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.datasets import fetch_benchmark, scaled
from tkmeans.engines import native
from tkmeans.engines.native import _native

ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "TKMeans": lambda n_clusters: TKMeans(n_clusters, random_state=0),
    "FastTKMeans": lambda n_clusters: FastTKMeans(n_clusters, random_state=0),
    "MiniBatchTKMeans": lambda n_clusters: MiniBatchTKMeans(n_clusters, random_state=0),
    "StudentTMixture": lambda n_clusters: StudentTMixture(n_clusters, random_state=0),
}
MOST_APART = 1e-12  # what centres in float64 may differ by, in standard deviations of the data


class Set(NamedTuple):
    """Rows to cluster."""

    group: str
    name: str
    X: np.ndarray  # (n, p)
    n_clusters: int


class Parting(NamedTuple):
    """How far the fits with two instruction sets, the most different ones, are apart."""

    of: Set
    estimator: str
    dtype: str
    centers: float  # the largest difference, in standard deviations of the data
    n_labels: int  # that differ
    same_length: bool  # whether they took the same number of iterations


def sets() -> Iterator[Set]:
    """The paper's sets, real tables, and rows in which there is nothing to find."""
    for name, n_clusters in CLUSTERS.items():
        yield Set("sets of the paper", name, load(name)[0], n_clusters)
    for name in ("bezdekiris", "iris", "seed", "wine"):
        yield Set("sets of the paper", name, scaled(fetch_benchmark(name).data), 3)
    for name, (X, y) in real_tables().items():
        yield Set("real tables", f"{name}, raw", X, len(np.unique(y)))
        yield Set("real tables", f"{name}, standardised", standardised(X), len(np.unique(y)))
    yield Set("without clusters", "uniform, 2000 x 2", np.random.default_rng(0).uniform(size=(2000, 2)), 8)
    yield Set("without clusters", "normal, 2000 x 16", np.random.default_rng(0).normal(size=(2000, 16)), 8)
    yield Set("without clusters", "normal, 20000 x 16", np.random.default_rng(0).normal(size=(20_000, 16)), 8)
    yield Set("many rows", "overlapping, 50000 x 16", generated(50_000, 16, 10), 10)


def fits(X: np.ndarray, n_clusters: int, estimator: str) -> Iterator[Any]:
    """One fit for each instruction set, the widest last."""
    for name in _native.available_instruction_sets():
        with mock.patch.object(native, "_INSTRUCTION_SET", name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield ESTIMATORS[estimator](n_clusters).fit(X)


def parting(of: Set, estimator: str, dtype: str) -> Parting:
    """Fit, and compare with the fit by the widest instruction set."""
    *others, widest = fits(of.X.astype(dtype), of.n_clusters, estimator)
    centers = max(float(np.abs(_centers(fit) - _centers(widest)).max()) for fit in others) / float(of.X.std())
    n_labels = max(int(np.sum(fit.labels_ != widest.labels_)) for fit in others)
    return Parting(of, estimator, dtype, centers, n_labels, len({fit.n_iter_ for fit in (*others, widest)}) == 1)


def _centers(fit: Any) -> np.ndarray:
    return fit.cluster_centers_ if hasattr(fit, "cluster_centers_") else fit.means_


def missed_bars(found: list[Parting]) -> Iterator[str]:
    """Where labels, or in float64 centres, are too far apart."""
    for each in found:
        of = f"{each.estimator}, {each.dtype}, {each.of.name}"
        if each.of.group in ("sets of the paper", "real tables"):
            if each.n_labels:
                yield f"{of}: {each.n_labels} labels differ"
            if each.dtype == "float64" and each.centers > MOST_APART:
                yield f"{of}: centres differ by {each.centers:.1e}"


def table(found: list[Parting]) -> str:
    """Groups and estimators: the largest difference of centres, and of labels."""
    lines = []
    for group in dict.fromkeys(each.of.group for each in found):
        for estimator in ESTIMATORS:
            line = [group, estimator]
            for dtype in ("float64", "float32"):
                of = [e for e in found if (e.of.group, e.estimator, e.dtype) == (group, estimator, dtype)]
                rows, apart = sum(len(each.of.X) for each in of), max((each.centers for each in of), default=0.0)
                line += [f"{apart:.0e}" if apart else "0", f"{sum(each.n_labels for each in of)} of {rows}"]
            lines += [line] if of else []
    header = ["", "", "centres, float64", "labels, float64", "centres, float32", "labels, float32"]
    return markdown(header, lines)


def main() -> None:
    """Print the page, and fail where fits part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", nargs="?", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    tasks = [
        delayed(parting)(of, estimator, dtype)
        for of in sets()
        for estimator in ESTIMATORS
        for dtype in ("float64", "float32")
        if estimator != "StudentTMixture" or of.group != "many rows"
    ]
    with parallel_config(backend="loky", n_jobs=options.jobs, inner_max_num_threads=1):
        found = list(Parallel()(tasks))
    names = ", ".join(_native.available_instruction_sets())
    text = TEXT.format(names=names, most=MOST_APART) + table(found)
    publish("Instruction sets", text, options.page)
    hold_to_the_bar(list(missed_bars(found)))


TEXT = """\
Every fit with each of {names}, compared with the fit by the last
of them: the largest difference of a coordinate of a centre, in standard deviations of the data, and the number of rows
that have another label. On sets of the paper and real tables all labels must be equal, and centres in float64 within
{most:.0e}. Rows without clusters are not judged.

"""

if __name__ == "__main__":
    main()
