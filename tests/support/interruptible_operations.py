"""Operations that a fault can cut short: fits of every kind, and everything that writes a file.

An operation begins in an empty folder with an estimator that was fitted to other rows before, so that what a
fault leaves behind can be told from what was there and from what should have come.
"""

import copy
import csv
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from support.model_inputs import t_mixture
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans, load, save, write_report
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.paper import experiment_runs

X, _, _ = t_mixture(n=600, n_clusters=3, n_features=2, seed=1)
OTHERS, _, _ = t_mixture(n=250, n_clusters=3, n_features=3, seed=2)
START = X[[1, 5, 9]] * 0.3  # far from any optimum: a few iterations more


class Operation(NamedTuple):
    """Something to do with an estimator in a folder."""

    run: Callable[[Any, Path], Any]
    estimator: Any = None  # None for what has none
    prior_rows: Any = OTHERS  # rows that it was fitted to before; None for a new one
    prepare: Callable[[Path], Any] = lambda folder: None  # lays files out that are read, and stay
    output: str | None = None  # the file that is written
    is_complete: Callable[[Path], bool] = os.path.exists  # whether the new file is


# ---- fits -------------------------------------------------------------------------------------


def _fit(estimator, folder):
    estimator.fit(X)


def _fit_with_weights(estimator, folder):
    estimator.fit(X, sample_weight=np.linspace(0.5, 2, len(X)))


def _learn(estimator, folder):
    estimator.partial_fit(X[:100])


def _fit_file(name):
    return lambda estimator, folder: estimator.fit(folder / name)


def _written(name):
    def write(folder):
        path = folder / name
        if path.suffix == ".npy":
            np.save(path, X)
        elif path.suffix == ".csv":
            np.savetxt(path, X, "%.17g", delimiter=",", header="a,b", comments="")
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), path, row_group_size=128)
        os.utime(path, (0, 0))  # clocks of file systems are coarse

    return write


def _fit_dask(estimator, folder):
    import dask
    import dask.array as da

    with dask.config.set(scheduler="synchronous"):
        estimator.fit(da.from_array(X, chunks=(150, 2)))


def _fit_with_callbacks(estimator, folder):
    estimator.set_callbacks(SilentCallback())
    try:
        estimator.fit(X)
    finally:
        estimator.set_callbacks()


class SilentCallback:
    """A callback that wants to know nothing."""

    max_propagation_depth = None

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **facts):
        pass

    def on_fit_task_end(self, estimator, context, **facts):
        return False


def _with_callbacks():
    try:
        import sklearn.callback  # noqa: F401
    except ImportError:
        return {}
    return {"a fit with callbacks": Operation(_fit_with_callbacks, TKMeans(3, init=START))}


FITS = {
    "t-k-means": Operation(_fit, TKMeans(3, random_state=0)),
    "t-k-means in two threads": Operation(_fit, TKMeans(3, init=START, n_jobs=2)),
    "t-k-means by the reference": Operation(_fit, TKMeans(3, init=START, engine="reference", dof=2.0)),
    "t-k-means from three starts": Operation(_fit_with_weights, TKMeans(3, init="random", n_init=3, random_state=0)),
    "the first fit": Operation(_fit, TKMeans(3, random_state=0), prior_rows=None),
    "fast t-k-means": Operation(_fit, FastTKMeans(3, init=START)),
    "batches": Operation(_fit, MiniBatchTKMeans(3, init_size=200, batch_size=100, max_iter=2, tol=0.1, random_state=0)),
    "a stream": Operation(_learn, MiniBatchTKMeans(3, init_size=200, batch_size=100, random_state=0), OTHERS[:, :2]),
    "a stream's first rows": Operation(_learn, MiniBatchTKMeans(3, init_size=80, random_state=0), prior_rows=None),
    "mixture": Operation(_fit, StudentTMixture(3, random_state=0, max_iter=30, tol=1e-3)),
    "k-medians": Operation(_fit, KMedians(3, random_state=0)),
    "k-medoids": Operation(_fit, KMedoids(3, random_state=0)),
    "a .npy file": Operation(_fit_file("X.npy"), TKMeans(3, init=START), prepare=_written("X.npy")),
    "a CSV file": Operation(_fit_file("X.csv"), TKMeans(3, init=START, n_jobs=2), prepare=_written("X.csv")),
    "a Parquet file": Operation(_fit_file("X.parquet"), TKMeans(3, init=START), prepare=_written("X.parquet")),
    "dask": Operation(_fit_dask, TKMeans(3, init=START)),
    **_with_callbacks(),
}


# ---- files ------------------------------------------------------------------------------------


def _fit_with_checkpoint(estimator, folder):
    estimator.set_params(checkpoint=folder / "fit.npz")
    estimator.fit(X)


def _resumes(path):
    """A whole checkpoint leads to where the fit would have ended."""
    resumed = TKMeans(3, init=START, random_state=0, tol=1e-9).fit(X, resume=path)
    return np.array_equal(resumed.cluster_centers_, _undisturbed().cluster_centers_)


@cache
def _undisturbed():
    return TKMeans(3, init=START, random_state=0, tol=1e-9).fit(X)


def _loads(path):
    return load(path).predict(OTHERS).shape == (len(OTHERS),)


def _has_all_rows(path):
    import pyarrow.parquet as pq

    return pq.read_table(path).num_rows == len(OTHERS)


def _save_labels(estimator, folder):
    estimator.predict(OTHERS, out=folder / "labels.parquet")


def _ends_with(text):
    return lambda path: path.read_bytes().rstrip().endswith(text)


def _command(*words):
    """Type a command, as the shell would; what it complains of is in its exit code."""

    def run(estimator, folder):
        from typer.testing import CliRunner

        from tkmeans.cli import app

        done = CliRunner().invoke(app, [str(folder / word) if "." in word else word for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if done.exit_code:
            raise CommandFailed(done.exit_code, done.output)

    return run


class CommandFailed(Exception):
    """A command that ended with a message."""


def _has_clusters(path):
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return len(rows) == len(X) and all(row["cluster"] for row in rows)


KEYS = [experiment_runs.Key("made up", "k-means", "correct", rep) for rep in range(8)]
RUNS = [dict.fromkeys(experiment_runs.MEASURES, 1 / (3 + rep)) for rep in range(8)]


def _experiment(estimator, folder):
    """Eight runs, of which the first four were made before."""
    made_up = lambda key: (key, RUNS[key.rep])  # noqa: E731
    original, experiment_runs._do = experiment_runs._do, made_up
    try:
        experiment_runs.perform(KEYS, folder / "runs.csv", n_jobs=1)
    finally:
        experiment_runs._do = original


def write_runs(path, runs):
    """A file of these runs, as the experiments leave it."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*experiment_runs.Key._fields, *experiment_runs.MEASURES])
        writer.writerows([*key, *(run[measure] for measure in experiment_runs.MEASURES)] for key, run in runs.items())


def _half_an_experiment(folder):
    write_runs(folder / "runs.csv", dict(zip(KEYS[:4], RUNS[:4], strict=True)))


def _runs_are_right(path):
    """Nothing that was done before is lost, and nothing half-written counts."""
    found = experiment_runs.read(path)
    return all(found[key] == RUNS[key.rep] for key in found) and set(KEYS[:4]) <= set(found)


def _picture(estimator, folder):
    from tkmeans.paper import reproduction

    reproduction.loss(folder / "loss.png")


FITTED = TKMeans(3, random_state=0)
WRITES = {
    "a checkpoint": Operation(
        _fit_with_checkpoint, TKMeans(3, init=START, random_state=0, tol=1e-9), output="fit.npz", is_complete=_resumes
    ),
    "a model file": Operation(lambda e, f: save(e, f / "model.json"), FITTED, output="model.json", is_complete=_loads),
    "labels": Operation(_save_labels, FITTED, output="labels.parquet", is_complete=_has_all_rows),
    "a report": Operation(
        lambda e, f: write_report(f / "page.html", e, OTHERS),
        FITTED, output="page.html", is_complete=_ends_with(b"</html>"),
    ),
    "the command's table": Operation(
        _command("fit", "X.csv", "-k", "3", "--out", "out.csv"),
        prepare=_written("X.csv"), output="out.csv", is_complete=_has_clusters,
    ),
    "the command's model": Operation(
        _command("fit", "X.csv", "-k", "3", "--model", "model.json"),
        prepare=_written("X.csv"), output="model.json", is_complete=lambda path: load(path) is not None,
    ),
    "runs of the reproduction": Operation(
        _experiment, prepare=_half_an_experiment, output="runs.csv", is_complete=_runs_are_right
    ),
    "a picture": Operation(_picture, output="loss.png", is_complete=_ends_with(b"IEND\xaeB`\x82")),
}  # fmt: skip
OPERATIONS = FITS | WRITES


@cache
def prior_estimator(name):
    """The estimator of an operation before it runs, to be copied."""
    operation = OPERATIONS[name]
    if operation.estimator is None or operation.prior_rows is None:
        return operation.estimator
    init = getattr(operation.estimator, "init", None)
    estimator = copy.deepcopy(operation.estimator)  # which several operations may share
    if isinstance(init, np.ndarray):
        estimator = estimator.set_params(init=OTHERS[:3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(operation.prior_rows)
    return estimator.set_params(init=init) if isinstance(init, np.ndarray) else estimator
