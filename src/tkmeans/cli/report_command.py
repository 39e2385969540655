"""The command `tkmeans report`: the clusters as a page to look at."""

from pathlib import Path
from typing import Annotated

import typer

from tkmeans.cli import estimator_calls, output_files, printed_summary, screen
from tkmeans.cli.options import ColumnOptions, File, ModelOptions, ReadingOptions
from tkmeans.cli.prepared_data import prepare
from tkmeans.cli.select_k_command import selected


def report(
    file: File,
    settings: ModelOptions,
    choice: ColumnOptions,
    reading: ReadingOptions,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("report.html"),
    largest: Annotated[
        int | None, typer.Option("--max", min=1, help="Also compare this many numbers of clusters; 20 without -k.")
    ] = None,
) -> None:
    """Write a report on the clusters: one HTML file that needs no network.

    Without -k the number of clusters is chosen, and the report says how.
    """
    output_files.check_files(None, out, source=file)
    data = prepare(file, reading, choice)
    selection, n_clusters = None, settings.k
    if n_clusters is None or largest is not None:
        selection = selected(data, range(1, (largest or 20) + 1), "icl", settings.seed, settings.jobs)
        n_clusters = selection.best if n_clusters is None else n_clusters
        screen.notes([f"{selection.best} clusters are suggested, next comes {selection.runner_up}"])
    estimator = estimator_calls.fitted(data, n_clusters, settings)
    output_files.save_report(estimator, data, out, selection)
    printed_summary.print_written({out: "open it in a browser"})
