"""The commands on single rows: `tkmeans predict`, by a model that was kept, and `tkmeans outliers`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tkmeans.cli import estimator_calls, options, output_files, printed_summary, screen
from tkmeans.cli.prepared_data import Data, missing_values, numbers, prepare, print_notes, read_file
from tkmeans.cli.printed_summary import labels_of, outlier_places
from tkmeans.row_answers import RowAnswers
from tkmeans.stats import Array
from tkmeans.tables import Table, TableError, choose
from tkmeans.tables.roles import listed

Rule = StrEnum("Rule", ["strays", "tail"])  # what makes an outlier


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, from 'tkmeans fit --model' or tkmeans.save().")],
    file: options.File,
    output: options.OutputOptions,
    reading: options.ReadingOptions,
    mark_outliers: options.MarkOutliers = False,
    json: options.Json = False,
) -> None:
    """Assign the rows of another table to the clusters of a saved model.

    The table must have the columns that the model was fitted on, under the same names; other columns are kept.
    """
    from tkmeans import load

    output_files.check_files(output.out, source=file, json=json)
    if model.is_file() and not _is_model(model) and _is_model(Path(file)):
        raise TableError(f"{file} is the model, which comes first: {printed_summary.typed('predict', file, model)}")
    loaded = load(model)
    table = read_file(file, reading)
    output_files.check_new_columns(table, output)
    steps = [step for _, step in loaded.steps] if hasattr(loaded, "steps") else [loaded]
    columns = _columns_for(steps[0], table, model)
    X = np.column_stack(numbers(table, columns))
    notes = print_notes(table, f"{screen.count(len(X), 'row')}, by {listed(columns)}", *missing_values(X))
    with estimator_calls.as_messages(table.source):
        Z = X if len(steps) == 1 else steps[0].transform(X)
    found = estimator_calls.answer(steps[-1], Z, table)
    output_files.write_output(table, output, found, mark_outliers=mark_outliers)
    if json:
        document = {"file": table.source, "model": str(model), "rows": len(X), "columns": columns}
        document |= {"labels": labels_of(found), "outliers": outlier_places(found, table), "notes": notes}
        screen.print_json(document)
    elif str(output.out) != "-":
        sizes = printed_summary.sizes_of(found, getattr(steps[-1], "n_clusters", None) or steps[-1].n_components)
        screen.print_table(list(sizes), [*zip(*sizes.values(), strict=True)])
        screen.tell(found.sentence)
        printed_summary.print_written({output.out: "the table with the cluster of each row"})


def _is_model(path: Path) -> bool:
    return path.is_file() and b'"tkmeans-model"' in path.read_bytes()[:4096]


def _columns_for(first: Any, table: Table, model: Path) -> list[str]:
    """The columns that the model was fitted on."""
    if not hasattr(first, "feature_names_in_"):
        columns = choose(table).names
        if len(columns) != first.n_features_in_:
            wanted = f"{model} has no names and wants {screen.count(first.n_features_in_, 'column')} of numbers"
            raise TableError(f"{wanted}, but {table.source} has {len(columns)}: {listed(columns)}")
        return columns
    columns = [str(name) for name in first.feature_names_in_]
    if lost := [name for name in columns if name not in table.names and table.indicated(name) is None]:
        lacks = f"{table.source} lacks {', '.join(map(repr, lost))}, which {model} was fitted on"
        raise TableError(f"{lacks}; its columns are {listed(table.names)}")
    del first.feature_names_in_  # it has done its work, and the rows go on without names
    return columns


def outliers(
    file: options.File,
    settings: options.ModelOptions,
    output: options.OutputOptions,
    choice: options.ColumnOptions,
    reading: options.ReadingOptions,
    rule: Annotated[Rule, typer.Option(help="strays: far from all clusters; tail: small p-values.")] = Rule.strays,
    level: Annotated[float | None, typer.Option(help="Level of the rule; 0.5 for strays, 0.01 for tail.")] = None,
    top: Annotated[int, typer.Option(min=1, help="The number of rows to show, the strangest first.")] = 20,
    json: options.Json = False,
) -> None:
    """List the rows that are far from every cluster, and the column in which they are.

    --out writes these rows to a table.
    """
    output_files.check_files(output.out, source=file, json=json)
    data = prepare(file, reading, choice)
    output_files.check_new_columns(data.table, output)
    n_clusters, _ = estimator_calls.number_of_clusters(data, settings)
    estimator = estimator_calls.fitted(data, n_clusters, settings)
    found = estimator_calls.answer(estimator, data.Z, data.table, fitted=True, rule=rule.value, level=level)
    strangest = np.argsort(found.pvalue, kind="stable")  # NaN, of rows without a value, last
    strays = strangest[found.outlier[strangest]]
    output_files.write_output(data.table, output, found, rows=np.sort(strays))
    if json:
        described = _described(data, estimator, found, strays)
        screen.print_json({"file": data.table.source, "rows": data.table.n_rows, "outliers": described})
    elif str(output.out) != "-":
        screen.tell(found.sentence)
        if not len(strays):
            screen.tell("The least typical rows are:")
        _print(data, _described(data, estimator, found, strays[:top] if len(strays) else strangest[: min(5, top)]))
        screen.tell("A spread is how far the rows of a cluster typically are from its centre, in one column.")
        if len(strays) > top:
            screen.tell(f"{len(strays) - top} more: --top {len(strays)} shows them, --out FILE writes them.")
        printed_summary.print_written({output.out: screen.count(len(strays), "row")})


def _described(data: Data, estimator: Any, found: RowAnswers, rows: Array) -> list[dict[str, Any]]:
    """For each row where it stands, what it is called and which value is the strangest."""
    from tkmeans.report.clustering import deviations

    away = (data.Z[rows] - estimator.cluster_centers_[found.label[rows]]) / deviations(estimator)[found.label[rows]]
    worst = np.argmax(np.nan_to_num(np.abs(away), nan=-1.0), axis=1)
    places = data.table.places(rows.tolist())
    return [
        {
            data.table.row_word: places[n],
            "name": None if data.row_names is None else data.row_names[i],
            "cluster": int(found.label[i]),
            "outlier_pvalue": float(found.pvalue[i]),
            "column": data.columns[j],
            "value": float(data.values[j][i]),
            "spreads": float(away[n, j]),
        }
        for n, (i, j) in enumerate(zip(rows, worst, strict=True))
    ]


def _print(data: Data, described: list[dict[str, Any]]) -> None:
    shown = {
        data.table.row_word: [str(row[data.table.row_word]) for row in described],
        **({} if data.id_column is None else {data.id_column: [row["name"] for row in described]}),
        "nearest cluster": [str(row["cluster"]) for row in described],
        "p-value": [f"{row['outlier_pvalue']:.2g}" for row in described],
        "strangest value": [f"{row['column']} = {screen.number(row['value'])}" for row in described],
        "off by": [f"{row['spreads']:+.1f} spreads" for row in described],
    }
    text = [j for j, name in enumerate(shown) if name in (data.id_column, "strangest value")]
    screen.print_table(list(shown), [*zip(*shown.values(), strict=True)], text=text)
