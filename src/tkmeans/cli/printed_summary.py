"""The summary of a fit, as it is printed: words, a table, or JSON."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from tkmeans.cli import screen
from tkmeans.cli.prepared_data import Data
from tkmeans.row_answers import RowAnswers
from tkmeans.stats import Array
from tkmeans.tables.table import Table, one_line

TABLE = "the table with the cluster of each row"  # is what a file holds
_MOST_CLUSTERS, _MOST_COLUMNS = 30, 60  # that are printed


def print_plan(data: Data, *, json: bool) -> None:
    """What every column is taken for, and what is done with it."""
    kinds = data.table.kinds | {role.name: role.holds for role in data.roles}
    roles = dict.fromkeys(data.table.names, "not used")
    roles |= {role.name: f"not used: {role.reason}" for role in data.roles if role.reason and role.name in roles}
    roles |= dict.fromkeys(data.columns, "used for clustering")
    plan = [{"column": name, "holds": kinds.get(name, "indicator"), "role": role} for name, role in roles.items()]
    if json:
        screen.print_json({"file": data.table.source, "rows": data.table.n_rows, "columns": plan, "notes": data.notes})
    else:
        screen.print_table({key: [each[key] for each in plan] for key in plan[0]}, text=plan[0])


def print_clusters(data: Data, model: Any, found: RowAnswers, description: Any, centers: Array) -> None:
    """A sentence on each cluster, and its size, outliers and centre: a line each, or if that is too wide, a column."""
    for sentence in description.sentences()[:_MOST_CLUSTERS]:
        screen.tell(escape(sentence))
    shown, facts = range(min(len(centers), _MOST_CLUSTERS)), sizes_of(found, len(centers))
    columns = {name: screen.numbers(centers[:, j].tolist()) for j, name in enumerate(data.columns[:_MOST_COLUMNS])}
    cells = facts | {f"{name} " if name in facts else name: column for name, column in columns.items()}
    width = screen.out.width if screen.out.is_terminal else screen.PLAIN_WIDTH
    if sum(3 + max(len(name), *map(len, column)) for name, column in cells.items()) < width:
        screen.print_table({name: column[: len(shown)] for name, column in cells.items()})
    else:
        wide, room = max(map(len, cells)), 3 + max(9, max(len(cell) for column in cells.values() for cell in column))
        each = max(1, (width - min(wide, 40) - 6) // room)
        names, facts_of = [name.strip() for name in cells][1:], [*zip(*cells.values(), strict=True)]
        for start in range(0, len(shown), each):
            part = {str(k): facts_of[k][1:] for k in shown[start : start + each]}
            screen.print_table({"cluster": names, **part}, text=["cluster"])
    less = f"; {len(centers) - len(shown)} more clusters: --json or --out shows them" * (len(shown) < len(centers))
    hidden = screen.count(len(data.columns) - len(columns), "column")
    less += f"; {hidden} more: --json shows them" * (len(columns) < len(data.columns))
    less += "; dates are days since 1970-01-01" * any(data.table.kinds.get(name) == "date" for name in columns)
    screen.tell(f"Centres are in your units; rows are counted without outliers{less}.")
    if hasattr(model, "agreement_"):
        n_agreeing, others = round(model.agreement_ * model.n_searches_), ""
        if 2 * n_agreeing < model.n_searches_:
            others = " Most searches found other ones, so these are uncertain: compare other numbers with -k."
        screen.tell(f"{n_agreeing} of {model.n_searches_} independent searches found these clusters.{others}")


def labels_of(found: RowAnswers, *, mark_outliers: bool) -> list[int | None]:
    """The cluster of each row; None for those without a value."""
    labels = np.where(found.core, found.label, -1) if mark_outliers else found.label
    return [int(label) if known else None for label, known in zip(labels, found.known, strict=True)]


def print_outliers(found: RowAnswers, table: Table, names: list[str], columns: Any) -> None:
    """A sentence on the outliers; it names the cells that are bad, and where they are."""

    def named(cells: Sequence[tuple[int, int]]) -> Iterator[str]:
        for (i, j), place in zip(cells, table.where([i for i, _ in cells]), strict=True):
            yield f"{one_line(names[j])} = {screen.number(columns[j][i])} ({place})"

    screen.tell(escape(found.sentence(named)))


def places_of(table: Table, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Where rows are, for machines: in a folder also the file and the place there."""
    there = ({"place": words} for words in table.where(rows)) if table.tables else ({} for _ in rows)
    return [{table.row_word: place} | words for place, words in zip(table.places(rows), there, strict=True)]


def outlier_places(found: RowAnswers, table: Table) -> dict[str, Any]:
    """How many outliers there are, and where in the file: in lines of text, else in rows."""
    strays = [] if found.outlier is None else np.flatnonzero(found.outlier).tolist()
    places = {"places": table.where(strays)} if table.tables else {}
    return {"count": len(strays), f"{table.row_word}s": table.places(strays)} | places


def sizes_of(found: RowAnswers, n_clusters: int) -> dict[str, list[str]]:
    """Columns of a table: how many rows and outliers each cluster has."""
    sizes, strays = found.counts(n_clusters)
    share = [f"{size / max(1, np.sum(found.known)):.0%}" for size in sizes]
    counts = {"cluster": range(n_clusters), "rows": sizes, "share": share, "outliers": strays}
    return {name: [*map(str, column)] for name, column in counts.items()}


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


def as_document(data: Data, model: Any, found: RowAnswers, description: Any, centers: Array, labels: Any) -> Any:
    """The result of a fit for machines."""
    records = description.records()
    weights = model.cluster_weights_ if hasattr(model, "cluster_weights_") else model.weights_
    clusters = [
        {"cluster": k, "rows": records[k]["n_rows"], "outliers": records[k]["n_outliers"], "weight": weights[k]}
        | {key: records[k][key] for key in ("sentence", "traits", "categories", "probability")}
        | {"center": dict(zip(data.columns, centers[k], strict=True))}
        for k in range(len(centers))
    ]
    carried = [name for name in data.table.names if name not in data.columns]
    scaling = None if data.scaler is None else type(data.scaler).__name__
    document = {"file": data.table.source, "rows": data.table.n_rows, "columns": data.columns, "carried": carried}
    document |= {"scaling": scaling, "n_clusters": len(centers), "clusters": clusters, "labels": labels}
    bad = np.empty((0, 2), int) if found.bad_cells is None else np.argwhere(found.bad_cells)
    places = zip(places_of(data.table, bad[:, 0].tolist()), bad[:, 1], strict=True)
    document["bad_cells"] = [place | {"column": data.columns[j]} for place, j in places]
    document |= {"outliers": outlier_places(found, data.table), "unsure": found.n_unsure, "dof": model.dof_}
    estimated = {"scale": "scale_", "noise": "noise_weight_", "agreement": "agreement_"}  # None where it is not
    document |= {name: getattr(model, attribute, None) for name, attribute in estimated.items()}
    return document | {"iterations": model.n_iter_, "converged": model.converged_, "notes": data.notes}
