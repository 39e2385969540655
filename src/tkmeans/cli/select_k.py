"""`tkmeans select-k`: how many clusters there are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from tkmeans.cli import screen
from tkmeans.cli.options import ColumnOptions, File, Json, ReadingOptions, typed_again


class Criterion(StrEnum):
    """What the number of clusters is chosen by."""

    icl = "icl"
    bic = "bic"
    stability = "stability"


def select_k(
    file: File,
    choice: ColumnOptions,
    reading: ReadingOptions,
    largest: Annotated[int, typer.Option("--max", min=1, help="The largest number of clusters to try.")] = 20,
    smallest: Annotated[int, typer.Option("--min", min=1, help="The smallest.")] = 1,
    criterion: Annotated[Criterion, typer.Option(help="What to choose by.")] = Criterion.icl,
    seed: Annotated[int, typer.Option(min=0, help="Makes the answer reproducible.")] = 0,
    json: Json = False,
) -> None:
    """Suggest a number of clusters."""
    from tkmeans.cli import summary
    from tkmeans.cli.data import prepare

    if smallest > largest:
        raise typer.BadParameter(f"{smallest} is larger than --max {largest}", param_hint="--min")
    data = prepare(file, reading, choice)
    selection = selected(data, range(smallest, largest + 1), criterion.value, seed)
    if json:
        fields = ("criterion", "best", "runner_up", "n_clusters", "icl", "bic", "outlier_fraction")
        document = {field: getattr(selection, field) for field in fields}
        screen.print_json({"file": data.table.source, "columns": data.columns} | document)
        return
    _print(selection)
    best, next_best = selection.best, selection.runner_up
    screen.tell(f"\n[bold]{best}[/bold] clusters by {selection.criterion}; next comes {next_best}.")
    options = typed_again(choice, reading)
    summary.print_next(
        file,
        (summary.typed("fit", file, "-k", best, *options), "finds them"),
        (summary.typed("report", file, "-k", best, *options), "shows them"),
    )


def selected(data: Any, numbers: range, criterion: str, seed: int) -> Any:
    """The choice among these numbers of clusters."""
    from tkmeans.cli.clustering import as_messages
    from tkmeans.selection import select_n_clusters

    numbers = range(numbers.start, min(numbers.stop, data.table.n_rows + 1))
    with screen.working(f"trying {numbers.start} to {numbers.stop - 1} clusters"), as_messages(data.table.source):
        return select_n_clusters(data.Z, numbers, criterion=criterion, random_state=seed)


def _print(selection: Any) -> None:
    marks = {selection.best: "best", selection.runner_up: "next"}
    rows = [
        [str(k), f"{icl:.1f}", f"{bic:.1f}", f"{fraction:.1%}", marks.get(k, "")]
        for k, icl, bic, fraction in zip(
            selection.n_clusters, selection.icl, selection.bic, selection.outlier_fraction, strict=True
        )
    ]
    screen.print_table(["clusters", "ICL", "BIC", "outliers", ""], rows, text=[4])
    screen.tell("ICL and BIC: the smaller, the better.")
