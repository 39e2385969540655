"""The variants of each method, and their runs: in parallel, with the results line by line in a resumable CSV file."""

import codecs
import csv
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from tkmeans import FastTKMeans, StudentTMixture, TKMeans, engines
from tkmeans.atomic import replacing
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.datasets import REAL, SYNTHETIC, fetch_benchmark, scaled
from tkmeans.em import SmallGain, SmallMove, StoppingRule, em
from tkmeans.metrics import adjusted_rand_score, centroid_index, clustering_mse, within_between_ratio
from tkmeans.models import Fast, Student
from tkmeans.paper.authors.methods import METHODS, Run
from tkmeans.paper.authors.soft_models import FIRST_DOF, FIRST_SCALE
from tkmeans.plots.projections import centers_of
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Frame, Outcome, Params

MEASURES = ("ARI", "CI", "on a row", "MSE", "W/B", "iterations", "seconds")
TABLES = {"table1": SYNTHETIC, "table2": REAL, "table3": ("iris",)}
_GAUSSIAN = 1e8  # degrees of freedom

# Rows, the released start and a seed to the outcome; each method takes what it needs of these.
Fitting = Callable[[Array, Array, int], Run]


def _by(estimator: Callable[[Array, int], Any], X: Array, start: Array, seed: int) -> Run:
    """What an estimator made for a start and a seed finds."""
    made = estimator(start, seed)
    return Run(np.asarray(made.fit_predict(X)), centers_of(made), int(made.n_iter_))


def _mixture(X: Array, centers: Array, seed: int, *, start: str = "as released", **given: Any) -> Run:
    """Plain EM of a mixture of free ellipses: a TMM, or with a huge dof a GMM."""
    K, p = centers.shape
    # Where the paper's begins (uniform centres, unit covariances, equal weights), or from the centres of k-means.
    first: dict[str, Any] = {"weights_init": np.full(K, 1 / K), "precisions_init": np.tile(np.eye(p), (K, 1, 1))}
    if start == "k-means":
        first, centers = {}, KMeans(K, n_init=1, random_state=seed).fit(X).cluster_centers_
    first |= {"noise": False, "shrinkage": 0, "size_ratio": np.inf, "shared_dof": False, "accelerate": False}
    first |= {"reg_covar": 1e-6, "tol": 1e-6, "max_iter": 500} | given
    return _by(lambda *_: StudentTMixture(K, means_init=centers, **first), X, centers, seed)


def t_k_means(X: Array, centers: Array, scale: float) -> Outcome[Any, Any]:
    """The paper's equations with the exact nu, from these centres, alpha_0 and the released nu_0."""
    params = Params(centers, scale, FIRST_DOF, np.full(len(centers), -np.log(len(centers))))
    # A floor, because centres that no row is near may leave the others fewer rows than features.
    model = Student(engine=engines.select("auto"), scale_floor=1e-12)
    return em(ArraySource(X, None, Frame(np.zeros(X.shape[1]), 1.0)), model, params, stop=SmallGain(1e-6), max_iter=500)


def _nearest(X: Array, fit: Outcome[Any, Any]) -> Run:
    """All clusters have one scale and one weight, so a row belongs to the nearest centre."""
    centers = fit.params.centers
    return Run(cdist(X, centers, "sqeuclidean").argmin(axis=1), centers, len(fit.history) - 1)


def limit(X: Array, start: Array, power: int, stop: StoppingRule, max_iter: int) -> Outcome[Any, Any]:
    """alpha -> 0 with centres weighted by tau/D^power; 1 is the limit taken literally, 0 as it was released."""
    params = Params(start, 1e-20, 1.0, np.full(len(start), -np.log(len(start))))
    source = ArraySource(X, None, Frame(np.zeros(X.shape[1]), 1.0))
    model = Fast(power=power, engine=engines.select("auto"))
    return em(source, model, params, stop=stop, max_iter=max_iter, accelerate=False)


def _literal_limit(X: Array, start: Array, _: int) -> Run:
    """Centres collapse onto rows."""
    return _nearest(X, limit(X, start, 1, SmallMove(1e-6), 200))


_kmeans = partial(_by, lambda start, seed: KMeans(len(start), init=start, n_init=1, random_state=seed))
_default_tkmeans = partial(_by, lambda start, seed: TKMeans(len(start), random_state=seed))
_default_fast = partial(_by, lambda start, seed: FastTKMeans(len(start), random_state=seed))

# On rows in their own units: the published fast t-k-means++ row was made that way (deviations.md).
UNSCALED: dict[str, dict[str, Fitting]] = {"released unscaled": {"fast t-k-means++": METHODS["fast t-k-means++"].run}}
UNSCALED["defaults unscaled"] = {"t-k-means": _default_tkmeans}
COLUMNS: dict[str, dict[str, Fitting]] = {
    "released": {method: released.run for method, released in METHODS.items()},
    "correct": {
        "k-means": _kmeans,
        "k-means++": _kmeans,
        "k-medoids": partial(_by, lambda at, seed: KMedoids(len(at), method="alternate", init=at, random_state=seed)),
        "k-medians": partial(_by, lambda start, seed: KMedians(len(start), init=start, random_state=seed)),
        "GMM": partial(_mixture, dof=_GAUSSIAN),
        "TMM": partial(_mixture, dof="estimate"),
        "t-k-means": lambda X, start, _: _nearest(X, t_k_means(X, start, FIRST_SCALE)),
        "fast t-k-means": _literal_limit,
        "fast t-k-means++": _literal_limit,
    },
    # The same equations from a start that does not decide against them.
    "better start": {
        "GMM": partial(_mixture, dof=_GAUSSIAN, start="k-means"),
        "TMM": partial(_mixture, dof="estimate", start="k-means"),
        "t-k-means": lambda X, start, _: _nearest(X, t_k_means(X, start, float(X.var(axis=0).mean()))),
    },
    "capped": {"TMM": partial(_mixture, dof="estimate", start="k-means", max_iter=30, tol=1e-3)},
    # Our estimators with nothing set but the number of clusters.
    "defaults": {"t-k-means": _default_tkmeans, "fast t-k-means++": _default_fast},
    **UNSCALED,
}


def fitted(column: str, method: str, X: Array, start: Array, seed: int) -> Run:
    """One run of one method in one of the columns."""
    with warnings.catch_warnings(action="ignore"):  # that a run was short or a cluster empty is part of the result
        return COLUMNS[column][method](X, start, seed)


class Key(NamedTuple):
    """Which run: one repetition of one method on one data set in one column of the tables."""

    dataset: str
    method: str
    column: str
    rep: int


Results = dict[Key, dict[str, float]]


@cache
def prepared(name: str, scale: bool = True) -> tuple[Array, Array | None, int]:
    """Rows scaled as the authors did (or not), their labels if the paper used them, and K."""
    bunch = fetch_benchmark(name)
    rows = scaled(bunch.data) if scale else bunch.data.astype(float)
    return np.ascontiguousarray(rows), bunch.target if name in SYNTHETIC else None, bunch.n_clusters


def run(key: Key) -> dict[str, float]:
    """One run, measured."""
    X, y, n_clusters = prepared(key.dataset, key.column not in UNSCALED)
    # Methods that start alike start at the same points, in every column: they differ in what follows.
    kind = METHODS[key.method].start.__name__.removeprefix("shifted_")
    rng = np.random.RandomState(zlib.crc32(f"{key.dataset}/{kind}/{key.rep}".encode()))
    start = METHODS[key.method].start(X, n_clusters, rng)
    before = time.process_time()  # a run has one thread; what else the machine does is not its cost
    labels, centers, n_iter = fitted(key.column, key.method, X, start, key.rep)
    row = dict.fromkeys(MEASURES, float("nan")) | {"iterations": n_iter, "seconds": time.process_time() - before}
    # What no table shows is not measured: thousands of runs are over in a few milliseconds.
    if y is None:
        return row | {"MSE": clustering_mse(X, labels), "W/B": within_between_ratio(X, labels, centers)}
    if COLUMNS[key.column][key.method] is _literal_limit:
        row["on a row"] = np.mean(cdist(centers, X).min(axis=1) < 1e-6)
    means = [X[y == k].mean(axis=0) for k in range(n_clusters)]
    return row | {"ARI": adjusted_rand_score(y, labels), "CI": centroid_index(means, centers)}


def wanted(tables: Iterable[str], reps: int) -> list[Key]:
    """The runs that these tables are made of, column by column, the long ones first."""
    keys = [
        Key(name, method, column, rep)
        for name in dict.fromkeys(name for table in tables for name in TABLES[table])
        for column, methods in COLUMNS.items()
        if name in SYNTHETIC or column not in UNSCALED  # of the measures only ARI has no unit
        for method in methods  # the slow ones less often in columns that are not compared with published figures
        for rep in range(-(-reps // 4) if method in ("GMM", "TMM") and column != "released" else reps)
    ]
    order, slow = list(COLUMNS), {"TMM": 0, "GMM": 1, "t-k-means": 2}
    large = {"A3": 0, "dim064": 1, "dim032": 2, "A2": 3}
    return sorted(keys, key=lambda k: (order.index(k.column), slow.get(k.method, 3), large.get(k.dataset, 4)))


def perform(keys: list[Key], path: Path, *, n_jobs: int | None = None, tick: Callable[[int], object] = int) -> Results:
    """All these runs: those in the file are read from it, the others are done and added to it."""
    done = read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as whole:  # without what was cut off, or written by another version
        writer = csv.writer(codecs.getwriter("utf-8")(whole))
        writer.writerow([*Key._fields, *MEASURES])
        writer.writerows([*key, *(row[measure] for measure in MEASURES)] for key, row in done.items())
    open_keys = [key for key in keys if key not in done]
    tick(len(keys) - len(open_keys))
    if open_keys:
        alone = {"n_jobs": n_jobs or os.cpu_count() or 1, "inner_max_num_threads": 1}  # the cores are busy with others
        with path.open("a", newline="") as file, threadpool_limits(1), parallel_config("loky", **alone):
            runs = Parallel(return_as="generator_unordered", batch_size=5)
            for key, row in runs(delayed(_do)(key) for key in open_keys):
                csv.writer(file).writerow([*key, *(row[measure] for measure in MEASURES)])
                file.flush()
                done[key] = row
                tick(1)
    return {key: done[key] for key in keys}


def read(path: Path) -> Results:
    """The runs that a file holds; a line that was cut off counts as not done, even if what is left looks whole."""
    results: Results = {}
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for line in csv.DictReader(text.rpartition("\n")[0].splitlines()):
        with suppress(KeyError, TypeError, ValueError):
            key = Key(line["dataset"], line["method"], line["column"], int(line["rep"]))
            results[key] = {measure: float(line[measure]) for measure in MEASURES}
    return results


def _do(key: Key) -> tuple[Key, dict[str, float]]:
    # glibc keeps freed memory at hand up to twice the largest block that was freed so far, 32 MiB at most. Without
    # such a block every iteration of a large run gets its arrays from the system anew, up to a third of its time.
    np.empty(31 << 20, np.uint8)
    return key, run(key)
