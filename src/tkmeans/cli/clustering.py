"""The fit itself, what it says of each row, and the files that come of it."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from tkmeans.atomic import replacing
from tkmeans.cli import screen
from tkmeans.cli.columns import RESULTS
from tkmeans.cli.data import Data
from tkmeans.cli.options import ModelOptions, OutputOptions
from tkmeans.stats import Array
from tkmeans.tables import Added, Table, TableError, check_format, write_table

_BLOCK = 50_000  # rows whose probabilities for all clusters are in memory at one time
_SPEECH = {
    "n_clusters": "-k",
    "random_state": "--seed",
    "max_iter": "--max-iter",
}  # the library's words, as the command says them


class Answer(NamedTuple):
    """What an estimator says of each row."""

    label: Array  # (n,)
    probability: Array  # (n,) of that cluster; or None, as for all that follow, from models that do not say
    pvalue: Array  # (n,)
    outlier: Array  # (n,) bool
    known: Array  # (n,) bool: False for rows without a single value


def fitted(data: Data, n_clusters: int, settings: ModelOptions) -> Any:
    """TKMeans on the scaled rows."""
    from tkmeans import TKMeans

    what = f"clustering {screen.count(data.table.n_rows, 'row')}"
    with screen.working(what), as_messages(data.table.source):
        model = TKMeans(n_clusters, max_iter=settings.max_iter, random_state=settings.seed, n_jobs=settings.jobs)
        return model.fit(data.Z, sample_weight=data.weights)


def answer(model: Any, Z: Array, table: Table, *, rule: str = "strays", level: float | None = None) -> Answer:
    """What the model says of the rows."""
    with screen.working("looking at the rows"), as_messages(table.source):
        label = np.asarray(model.predict(Z))
        probability = pvalue = outlier = None
        if hasattr(model, "predict_proba"):
            blocks = (model.predict_proba(Z[i : i + _BLOCK]).max(axis=1) for i in range(0, len(Z), _BLOCK))
            probability = np.concatenate([*blocks]).astype(np.float64)
        if hasattr(model, "outlier_pvalues"):
            pvalue, outlier = model.outlier_pvalues(Z), model.outliers(Z, rule=rule, level=level)
    return Answer(label, probability, pvalue, outlier, ~np.isnan(Z).all(axis=1))


@contextmanager
def as_messages(source: str) -> Iterator[None]:
    """What the library warns of is said; what it refuses is the fault of the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as fault:
            raise TableError(f"{source}: {_in_our_words(str(fault))}") from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        screen.warn(_in_our_words(text))


def _in_our_words(text: str) -> str:
    for theirs, ours in _SPEECH.items():
        text = text.replace(theirs, ours)
    return text


# ---- files -----------------------------------------------------------------------


def new_columns(found: Answer, prefix: str, *, mark_outliers: bool = False) -> dict[str, Added]:
    """The columns to append to the table."""
    label = np.where(found.known, found.label, -1).astype(np.int64)
    if mark_outliers and found.outlier is not None:
        label[found.outlier] = -1
    columns = dict(zip(RESULTS, (label, found.probability, found.pvalue), strict=True))
    return {
        prefix + name: Added(values if name == "cluster" else np.where(found.known, values, np.nan), found.known)
        for name, values in columns.items()
        if values is not None
    }


def check_output(path: Path | None, source: str = "") -> None:
    """Complain before the work, not after it, about a file that cannot be written."""
    if path is None or str(path) == "-":
        return
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise TableError(f"there is no folder {folder} to write {path.name} to")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise TableError(f"{path} cannot be written: no permission")
    if source and path.exists() and Path(source).exists() and path.samefile(source):
        raise TableError(f"{path} is the input, which is not overwritten; choose another name")


def check_new_columns(table: Table, output: OutputOptions) -> None:
    """Complain about names that the table already has."""
    clash = [output.prefix + name for name in RESULTS if output.prefix + name in table.names]
    if output.out is not None and clash:
        raise TableError(
            f"{table.source} already has a column {clash[0]!r}; add --prefix tk_ to call the new ones "
            + ", ".join(f"tk_{name}" for name in RESULTS)
        )


def check_table_output(out: Path | None, source: str, json: bool) -> None:
    """Complain before the work about a table that could not be written."""
    if json and str(out) == "-":
        raise typer.BadParameter("--json and --out - cannot both have standard output", param_hint="--out")
    check_output(out, source)
    if out is not None:
        check_format(out)


def write_output(table: Table, out: Path, added: dict[str, Added], rows: Array | None = None) -> None:
    """Write the table with its new columns, as a whole or not at all."""
    with screen.working(f"writing {out}"):
        if str(out) == "-":
            write_table(table, sys.stdout.buffer, added, rows=rows)
            sys.stdout.buffer.flush()
            return
        with replacing(out) as file:
            write_table(table, file, added, rows=rows, like=out)


def save_model(estimator: Any, data: Data, path: Path) -> None:
    """Keep scaler and estimator with the names of the columns; the table has what is known of its rows."""
    from sklearn.pipeline import Pipeline

    from tkmeans import save

    first = copy(estimator if data.scaler is None else data.scaler)
    first.feature_names_in_ = np.array(data.columns, dtype=object)
    whole = first if data.scaler is None else Pipeline([("scale", first), ("cluster", estimator)])
    save(whole, path, training_rows=False)


def save_report(estimator: Any, data: Data, path: Path, selection: Any = None) -> None:
    """Write the report, with the command that made it."""
    from tkmeans.report import write_report

    with screen.working(f"writing {path}"):
        write_report(
            path,
            estimator,
            data.X,
            feature_names=data.columns,
            row_names=data.row_names,
            scaler=data.scaler,
            selection=selection,
            title=Path(data.table.source).name,
            call=shlex.join(["tkmeans", *sys.argv[1:]]),
        )
