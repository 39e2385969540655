"""The commands `tkmeans select-k`, how many clusters there are, and `tkmeans report`, a page to look at."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tkmeans.cli import estimator_calls, output_files, screen
from tkmeans.cli.options import ColumnOptions, File, Jobs, Json, ModelOptions, ReadingOptions, Seed, typed_again
from tkmeans.cli.prepared_data import prepare
from tkmeans.cli.printed_summary import print_next, print_written, typed

Criterion = StrEnum("Criterion", ["icl", "bic", "stability"])  # what the number of clusters is chosen by


def select_k(
    file: File,
    choice: ColumnOptions,
    reading: ReadingOptions,
    largest: Annotated[int, typer.Option("--max", min=1, help="The largest number of clusters to try.")] = 20,
    smallest: Annotated[int, typer.Option("--min", min=1, help="The smallest number of clusters to try.")] = 1,
    criterion: Annotated[Criterion, typer.Option(help="The criterion to choose by.")] = Criterion.icl,
    seed: Seed = 0,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Suggest a number of clusters."""
    if smallest > largest:
        raise typer.BadParameter(f"{smallest} is larger than --max {largest}", param_hint="--min")
    data = prepare(file, reading, choice)
    selection = estimator_calls.selected(data, range(smallest, largest + 1), criterion.value, seed, jobs)
    if json:
        fields = ("criterion", "best", "runner_up", "n_clusters", "icl", "bic", "stability", "outlier_fraction")
        document = {field: getattr(selection, field) for field in fields}
        screen.print_json({"file": data.table.source, "columns": data.columns} | document)
        return
    best, next_best = selection.best, selection.runner_up
    marks = {best: "best", next_best: "next"}
    formats = {"n_clusters": "", "icl": ".1f", "bic": ".1f", "outlier_fraction": ".1%", "stability": ".2f"}
    values = {name: getattr(selection, name) for name in formats if getattr(selection, name) is not None}
    cells = {name: [format(value, formats[name]) for value in column] for name, column in values.items()}
    cells[""] = [marks.get(int(k), "") for k in selection.n_clusters]
    rows = [*zip(*cells.values(), strict=True)]
    screen.print_table([name.replace("_", " ") for name in cells], rows, text=[len(values)])
    stable = " Stability is 1 if resampled rows give the same clusters." if "stability" in values else ""
    screen.tell(f"Smaller values of icl and bic are better.{stable}")
    second = "" if next_best is None else f"; {next_best} comes next"
    screen.tell(f"\n[bold]{screen.count(best, 'cluster')}[/bold] by {selection.criterion}{second}.")
    options = typed_again(choice, reading)
    deeds = {"fit": "finds these clusters", "report": "writes a report on them"}
    print_next(file, *((typed(deed, file, "-k", best, *options), why) for deed, why in deeds.items()))


def report(
    file: File,
    settings: ModelOptions,
    choice: ColumnOptions,
    reading: ReadingOptions,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    largest: Annotated[int | None, typer.Option("--max", min=1, help="Compare 1 to so many; 20 without -k.")] = None,
) -> None:
    """Write a report on the clusters: one HTML file that needs no network.

    Without -k the number of clusters is chosen, and the report shows how.
    """
    output_files.check_files(None, out, source=file)
    data = prepare(file, reading, choice)
    n_clusters, selection = estimator_calls.number_of_clusters(data, settings, largest)
    estimator = estimator_calls.fitted(data, n_clusters, settings)
    output_files.save_report(estimator, data, out, selection)
    print_written({out: "open it in a browser"})
