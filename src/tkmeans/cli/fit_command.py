"""The command `tkmeans fit`: clusters of the rows of a table."""

from pathlib import Path
from typing import Annotated

import typer

from tkmeans.cli import estimator_calls, options, output_files, printed_summary, screen
from tkmeans.cli.prepared_data import prepare
from tkmeans.cli.printed_summary import typed


def fit(
    file: options.File,
    settings: options.ModelOptions,
    output: options.OutputOptions,
    choice: options.ColumnOptions,
    reading: options.ReadingOptions,
    model: Annotated[Path | None, typer.Option(help="Save the model to this file, for 'tkmeans predict'.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this file, as HTML.")] = None,
    mark_outliers: options.MarkOutliers = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how each column will be used, and exit.")] = False,
    json: options.Json = False,
) -> None:
    """Cluster the rows of a table and describe the clusters.

    The columns of numbers are scaled by median and interquartile range (see --scale); other columns are
    kept and help to describe the clusters. --out writes the table with three more columns: cluster,
    probability (of that cluster) and outlier_pvalue (small for rows that are far from every cluster).
    """
    from tkmeans.cluster_descriptions import described

    if dry_run:
        printed_summary.print_plan(prepare(file, reading, choice), json=json)
        return
    output_files.check_files(output.out, model, report, source=file, json=json)
    data = prepare(file, reading, choice)
    output_files.check_new_columns(data.table, output)
    n_clusters, selection = estimator_calls.number_of_clusters(data, settings)
    estimator = estimator_calls.fitted(data, n_clusters, settings)
    found = estimator_calls.answer(estimator, data.Z, data.table, fitted=True)
    output_files.write_output(data.table, output, found, mark_outliers=mark_outliers)
    if model is not None:
        output_files.save_model(estimator, data, model)
    if report is not None:
        output_files.save_report(estimator, data, report, selection)
    if str(output.out) == "-":
        return
    with screen.counting("describing the clusters"):
        description = described(found, data.values, data.columns, data.categories, n_clusters)
    if json:
        screen.print_json(printed_summary.as_document(data, estimator, found, description))
    else:
        printed_summary.print_clusters(data, estimator, found, description)
        screen.tell(found.sentence)
        table = "the table with the cluster of each row"
        printed_summary.print_written({output.out: table, model: "the model", report: "the report"})
        again, k = options.typed_again(choice, reading), n_clusters
        to = Path(file).with_name(f"{Path(file).stem}-clustered{Path(file).suffix}")
        written = "writes your table with the cluster of each row"
        suggestions = [
            (output.out is None, ("fit", file, "-k", k, *again, "--out", to), written),
            (report is None, ("report", file, "-k", k, *again), "writes a report to look at and to pass on"),
            (model is not None, ("predict", model, "NEW.csv"), "finds the clusters of other rows"),
            (True, ("outliers", file, "-k", k, *again), "lists the rows that belong to no cluster"),
            (True, ("select-k", file, *again), f"checks whether {k} is a good number of clusters"),
        ]
        printed_summary.print_next(file, *((typed(*words), why) for wanted, words, why in suggestions if wanted))
