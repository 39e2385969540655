"""`tkmeans fit`: clusters of the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tkmeans.cli import screen
from tkmeans.cli.options import (
    ColumnOptions,
    File,
    Json,
    ModelOptions,
    OutputOptions,
    ReadingOptions,
    number_of_clusters,
    typed_again,
)


def fit(
    file: File,
    settings: ModelOptions,
    output: OutputOptions,
    choice: ColumnOptions,
    reading: ReadingOptions,
    model: Annotated[Path | None, typer.Option(help="Keep the model there, for 'tkmeans predict'.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report there, one HTML file.")] = None,
    mark_outliers: Annotated[bool, typer.Option("--mark-outliers", help="Outliers get the cluster -1.")] = False,
    json: Json = False,
) -> None:
    """Find the clusters of the rows of a table.

    Columns of numbers are found and scaled by median and interquartile range (--scale for another
    way); the others are carried along. --out writes the table with three more columns: cluster,
    probability (of that cluster) and outlier_pvalue (small for rows that are far from every cluster).
    """
    from tkmeans.cli import clustering, outputs, summary
    from tkmeans.cli.data import prepare

    n_clusters = number_of_clusters(settings, file)
    outputs.check_files(output.out, model, report, source=file, json=json)
    data = prepare(file, reading, choice)
    outputs.check_new_columns(data.table, output)
    estimator = clustering.fitted(data, n_clusters, settings)
    found = clustering.answer(estimator, data.Z, data.table)
    if output.out is not None:
        added = outputs.new_columns(found, output.prefix, mark_outliers=mark_outliers)
        outputs.write_output(data.table, output.out, added)
    if model is not None:
        outputs.save_model(estimator, data, model)
    if report is not None:
        outputs.save_report(estimator, data, report)
    if json:
        screen.print_json(summary.as_document(data, estimator, found))
    elif str(output.out) != "-":
        summary.print_clusters(data, estimator, found)
        summary.print_verdict(found)
        summary.print_written(
            {output.out: "the table with the cluster of each row", model: "the model", report: "the report"}
        )
        options = typed_again(choice, reading)
        summary.print_next(file, *_next(file, n_clusters, options, output.out, model, report))


def _next(
    file: str, k: int, options: list[str], out: Path | None, model: Path | None, report: Path | None
) -> Iterator[tuple[str, str]]:
    from tkmeans.cli.summary import beside, typed

    if out is None:
        to = beside(file, "-clustered")
        yield typed("fit", file, "-k", k, *options, "--out", to), "writes your table with the cluster of each row"
    if report is None:
        yield typed("report", file, "-k", k, *options), "shows the clusters in a page to look at and to send on"
    if model is not None:
        yield typed("predict", model, "NEW.csv"), "finds the clusters of other rows"
    yield typed("outliers", file, "-k", k, *options), "lists the rows that belong to no cluster"
    yield typed("select-k", file, *options), f"tells whether {k} is a good number of clusters"
