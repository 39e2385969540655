"""The command `tkmeans outliers`: the rows that belong to no cluster."""

from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from tkmeans.cli import estimator_calls, options, output_files, printed_summary, screen
from tkmeans.cli.estimator_calls import Answer
from tkmeans.cli.prepared_data import Data, prepare
from tkmeans.stats import Array

Rule = StrEnum("Rule", ["strays", "tail"])  # what makes an outlier


def outliers(
    file: options.File,
    settings: options.ModelOptions,
    output: options.OutputOptions,
    choice: options.ColumnOptions,
    reading: options.ReadingOptions,
    rule: Annotated[
        Rule, typer.Option(help="strays: far from all clusters, if any are; tail: p-values below the level.")
    ] = Rule.strays,
    level: Annotated[float | None, typer.Option(help="Of the rule; 0.5 for strays and 0.01 for tail.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many to show, the strangest first.")] = 20,
    json: options.Json = False,
) -> None:
    """List the rows that are far from every cluster, and in which column.

    --out writes these rows to a table.
    """
    n_clusters = options.number_of_clusters(settings, file)
    output_files.check_files(output.out, source=file, json=json)
    data = prepare(file, reading, choice)
    output_files.check_new_columns(data.table, output)
    estimator = estimator_calls.fitted(data, n_clusters, settings)
    found = estimator_calls.answer(estimator, data.Z, data.table, rule=rule.value, level=level)
    strangest = np.argsort(found.pvalue, kind="stable")  # NaN, of rows without a value, last
    strays = strangest[found.outlier[strangest]]
    output_files.write_output(data.table, output, found, rows=np.sort(strays))
    if json:
        described = _described(data, estimator, found, strays)
        screen.print_json({"file": data.table.source, "rows": data.table.n_rows, "outliers": described})
    elif str(output.out) != "-":
        printed_summary.print_verdict(found)
        shown = strays[:top] if len(strays) else strangest[: min(5, top)]
        if not len(strays):
            screen.tell("The least typical rows, all the same:")
        _print(_described(data, estimator, found, shown), data.id_column, data.table.row_word)
        screen.tell("A spread is how far the rows of a cluster typically are from its centre, in one column.")
        if len(strays) > top:
            screen.tell(f"{len(strays) - top} more: --top {len(strays)} shows them, --out FILE writes them.")
        printed_summary.print_written({output.out: f"{screen.count(len(strays), 'row')}"})


def _described(data: Data, estimator: Any, found: Answer, rows: Array) -> list[dict[str, Any]]:
    """For each row where it stands, what it is called and which value is the strangest."""
    away = data.Z[rows] - estimator.cluster_centers_[found.label[rows]]
    deviations = estimator_calls.deviations(estimator)
    worst = np.argmax(np.nan_to_num(np.abs(away / deviations[found.label[rows]]), nan=-1.0), axis=1)
    places = data.table.places(rows.tolist())
    return [
        {
            data.table.row_word: places[n],
            "name": None if data.row_names is None else data.row_names[i],
            "cluster": int(found.label[i]),
            "outlier_pvalue": float(found.pvalue[i]),
            "column": data.columns[j],
            "value": float(data.X[i, j]),
            "spreads": float(away[n, j] / deviations[found.label[i], j]),
        }
        for n, (i, j) in enumerate(zip(rows, worst, strict=True))
    ]


def _print(described: list[dict[str, Any]], id_column: str | None, row_word: str) -> None:
    named = [] if id_column is None else [id_column]
    header = [row_word, *named, "nearest cluster", "p-value", "strangest value", "off by"]
    lines = [
        [
            str(row[row_word]),
            *([row["name"]] if named else []),
            str(row["cluster"]),
            f"{row['outlier_pvalue']:.2g}",
            f"{row['column']} = {screen.number(row['value'])}",
            f"{row['spreads']:+.1f} spreads",
        ]
        for row in described
    ]
    screen.print_table(header, lines, text=[1, 4] if named else [3])
