"""The command `tkmeans predict`: the clusters of other rows, by a model that was kept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tkmeans.cli import estimator_calls, output_files, printed_summary, screen
from tkmeans.cli.options import File, Json, OutputOptions, ReadingOptions
from tkmeans.cli.prepared_data import missing_values, numbers, read_file
from tkmeans.tables import Table, TableError, choose
from tkmeans.tables.roles import listed


def predict(
    model: Annotated[Path, typer.Argument(help="What 'tkmeans fit --model' or tkmeans.save() has written.")],
    file: File,
    output: OutputOptions,
    reading: ReadingOptions,
    mark_outliers: Annotated[bool, typer.Option("--mark-outliers", help="Outliers get the cluster -1.")] = False,
    json: Json = False,
) -> None:
    """Find the cluster of each row of another table.

    The table needs the columns that the model was made from, under the same names; others are
    carried along.
    """
    from tkmeans import load

    output_files.check_files(output.out, source=file, json=json)
    _check_order(model, file)
    loaded = load(model)
    table = read_file(file, reading)
    output_files.check_new_columns(table, output)
    steps = [step for _, step in loaded.steps] if hasattr(loaded, "steps") else [loaded]
    columns = _columns_for(steps[0], table, model)
    X = numbers(table, columns)
    layout = [table.layout] if table.layout else []
    said = [*layout, *table.notes, f"{screen.count(len(X), 'row')}, by {listed(columns)}", *missing_values(X)]
    notes = [screen.as_options(note) for note in said]
    screen.notes(notes)
    with estimator_calls.as_messages(table.source):
        Z = X if len(steps) == 1 else steps[0].transform(X)
    found = estimator_calls.answer(steps[-1], Z, table)
    output_files.write_output(table, output, found, mark_outliers=mark_outliers)
    if json:
        document = {"file": table.source, "model": str(model), "rows": len(X), "columns": columns}
        outliers = printed_summary.outlier_places(found, table)
        document |= {"labels": printed_summary.labels_of(found), "outliers": outliers}
        screen.print_json(document | {"notes": notes})
    elif str(output.out) != "-":
        printed_summary.print_sizes(found, getattr(steps[-1], "n_clusters", None) or steps[-1].n_components)
        printed_summary.print_verdict(found)
        printed_summary.print_written({output.out: "the table with the cluster of each row"})


def _check_order(model: Path, file: str) -> None:
    """Say so if the table was given for the model."""

    def is_model(path: Path) -> bool:
        return path.is_file() and b'"tkmeans-model"' in path.read_bytes()[:4096]

    if model.is_file() and not is_model(model) and is_model(Path(file)):
        raise TableError(f"{file} is the model, which comes first: {printed_summary.typed('predict', file, model)}")


def _columns_for(first: Any, table: Table, model: Path) -> list[str]:
    """The columns that the model was made from."""
    if not hasattr(first, "feature_names_in_"):
        columns = choose(table).names
        if len(columns) != first.n_features_in_:
            raise TableError(
                f"{model} has no names and wants {screen.count(first.n_features_in_, 'column')} of numbers, "
                f"but {table.source} has {len(columns)}: {listed(columns)}"
            )
        return columns
    columns = [str(name) for name in first.feature_names_in_]
    if lost := [name for name in columns if name not in table.names and table.indicated(name) is None]:
        raise TableError(
            f"{table.source} lacks {', '.join(map(repr, lost))}, which {model} was made from; "
            f"its columns are {listed(table.names)}"
        )
    del first.feature_names_in_  # it has done its work, and the rows go on without names
    return columns
