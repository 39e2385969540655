"""The summary of a fit, as it is printed: words, a table, or JSON."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from tkmeans.cli import screen
from tkmeans.cli.estimator_calls import Answer
from tkmeans.cli.prepared_data import Data
from tkmeans.stats import Array

UNSURE = 0.8  # rows of a lower probability lie between clusters

_OTHER_COLUMNS, _NUMBER = 37, 9  # characters that cluster, rows, share and outliers take, and a number


def centers_in_units(model: Any, scaler: Any) -> Array:
    """The centres in the user's units."""
    centers = model.cluster_centers_
    return centers if scaler is None else scaler.inverse_transform(centers)


def cluster_sizes(found: Answer, n_clusters: int) -> Array:
    """The rows of each cluster."""
    return np.bincount(found.label[found.known], minlength=n_clusters)


def print_clusters(data: Data, model: Any, found: Answer) -> None:
    """A line for every cluster: its size, its centre and its outliers."""
    centers = centers_in_units(model, data.scaler)
    sizes = cluster_sizes(found, len(centers))
    strays = cluster_sizes(found._replace(known=found.known & found.outlier), len(centers))
    shown = _telling_columns(model.cluster_centers_, data.columns)
    header = ["cluster", "rows", "share", *(data.columns[j] for j in shown), "outliers"]
    shown_centers = zip(*(screen.numbers(centers[:, j].tolist()) for j in shown), strict=True)
    rows = [
        [str(k), str(sizes[k]), f"{sizes[k] / max(1, sizes.sum()):.0%}", *center, str(strays[k])]
        for k, center in enumerate(shown_centers)
    ]
    screen.print_table(header, rows)
    hidden = screen.count(len(data.columns) - len(shown), "column")
    less = "" if len(data.columns) == len(shown) else f"; not shown: {hidden} in which the clusters differ less"
    screen.tell(f"Each line shows the centre of a cluster, in your units{less}.")


def _telling_columns(centers: Array, columns: list[str]) -> list[int]:
    """The columns that there is room for: those in which centres differ most, in the table's order."""
    room = screen.width() - _OTHER_COLUMNS
    shown: list[int] = []
    for j in np.argsort(-np.ptp(centers, axis=0), kind="stable").tolist():
        room -= 3 + max(_NUMBER, len(columns[j]))
        if room < 0 and shown:
            break
        shown.append(j)
    return sorted(shown)


def labels_of(found: Answer) -> list[int | None]:
    """The cluster of each row; None for those without a value."""
    return [int(label) if known else None for label, known in zip(found.label, found.known, strict=True)]


def print_sizes(found: Answer, n_clusters: int) -> None:
    """A line for every cluster: how many rows it has."""
    sizes = cluster_sizes(found, n_clusters)
    rows = [[str(k), str(size), f"{size / max(1, sizes.sum()):.0%}"] for k, size in enumerate(sizes)]
    screen.print_table(["cluster", "rows", "share"], rows)


def print_verdict(found: Answer) -> None:
    """How many outliers there are, and how many rows lie between clusters."""
    said = []
    if found.outlier is not None:
        n_strays, n_rows = int(np.sum(found.outlier)), int(np.sum(found.known))
        are = "is an outlier" if n_strays == 1 else "are outliers"
        strays = f"{n_strays} of {n_rows} rows {are}: far from every cluster."
        said.append(strays if n_strays else "No row is an outlier.")
    if n_unsure := unsure(found):
        said.append(f"{n_unsure} {'lies' if n_unsure == 1 else 'lie'} between clusters (probability below {UNSURE}).")
    if said:
        screen.tell(" ".join(said))


def unsure(found: Answer) -> int:
    """How many rows lie between clusters."""
    return 0 if found.probability is None else int(np.sum(found.probability[found.known] < UNSURE))


def print_written(files: Mapping[Path | None, str]) -> None:
    """Which files there are now."""
    for path, what in files.items():
        if path is not None:
            screen.tell(f"Wrote {escape(str(path))}: {what}.")


def print_next(file: str, *suggestions: tuple[str, str]) -> None:
    """What to type next, and why; nothing for standard input, which is gone."""
    if file == "-":
        return
    screen.tell("\nNext:")
    for what, why in suggestions:
        screen.tell(f"  [bold]{escape(what)}[/bold]\n      {escape(why)}")


def typed(*words: object) -> str:
    """A command as one would type it."""
    return " ".join(["tkmeans", *(shlex.quote(str(word)) for word in words)])


def as_document(data: Data, model: Any, found: Answer) -> dict[str, Any]:
    """The result of a fit for machines."""
    centers = centers_in_units(model, data.scaler)
    sizes = cluster_sizes(found, len(centers))
    strays = np.flatnonzero(found.outlier)
    return {
        "file": data.table.source,
        "rows": data.table.n_rows,
        "columns": data.columns,
        "carried": [name for name in data.table.names if name not in data.columns],
        "scaling": None if data.scaler is None else type(data.scaler).__name__,
        "n_clusters": len(centers),
        "clusters": [
            {"cluster": k, "rows": sizes[k], "weight": model.cluster_weights_[k]}
            | {"center": dict(zip(data.columns, centers[k], strict=True))}
            for k in range(len(centers))
        ],
        "labels": labels_of(found),
        "outliers": {"count": len(strays), "rows": strays + 1},
        "unsure": unsure(found),
        "dof": model.dof_,
        "scale": model.scale_,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "notes": data.notes,
    }
