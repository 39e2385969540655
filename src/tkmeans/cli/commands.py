"""The application: all commands, which import what they compute with when they run, so that help is quick."""

import signal
import sys
from enum import StrEnum
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tkmeans import __version__
from tkmeans.cli import estimator_calls, options, output_files, screen
from tkmeans.cli import printed_summary as summary
from tkmeans.cli.comparison_commands import demo, reproduce
from tkmeans.cli.options import ColumnOptions, File, Json, MarkOutliers, ModelOptions, OutputOptions, ReadingOptions
from tkmeans.cli.prepared_data import Data, missing_values, numbers, prepare, print_notes, read_file
from tkmeans.row_answers import RowAnswers
from tkmeans.stats import Array
from tkmeans.tables import Table, TableError, choose
from tkmeans.tables.roles import indicators, listed
from tkmeans.tables.table_files import NOT_WRITTEN

_SHOWN = {"evidence": ".1f", "icl": ".1f", "bic": ".1f", "outlier_fraction": ".1%", "stability": ".2f"}
_UNITS = str.maketrans({"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY"})
Criterion = StrEnum("Criterion", ["evidence", "icl", "bic", "stability"])  # what the number of clusters is chosen by
Rule = StrEnum("Rule", ["strays", "tail"])  # what makes an outlier


def fit(
    file: File,
    settings: ModelOptions,
    output: OutputOptions,
    choice: ColumnOptions,
    reading: ReadingOptions,
    model: Annotated[Path | None, typer.Option(help="Save the model to this file, for 'tkmeans predict'.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this file, as HTML.")] = None,
    mark_outliers: MarkOutliers = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how each column will be used, and exit.")] = False,
    json: Json = False,
) -> None:
    """Cluster the rows of a table and describe the clusters.

    The columns of numbers are scaled by median and deviation (see --scale); other columns are
    kept and help to describe the clusters. --out writes the table with three more columns: cluster,
    probability (of that cluster) and outlier_pvalue (small for rows that are far from every cluster).
    """
    from tkmeans.cluster_descriptions import described

    if dry_run:
        summary.print_plan(prepare(file, reading, choice), json=json)
        return
    output_files.check_files(output.out, model, report, sources=[file], json=json)
    data = prepare(file, reading, choice)
    output_files.check_new_columns(data.table, output)
    estimator, selection = estimator_calls.fitted(data, settings)
    centers = estimator.cluster_centers_
    k, in_units = len(centers), centers if data.scaler is None else data.scaler.inverse_transform(centers)
    found = estimator_calls.answer(estimator, data.Z, data.table, fitted=True)
    output_files.write_output(data.table, output, found, mark_outliers=mark_outliers)
    if model is not None:
        output_files.save_model(estimator, data, model)
    if report is not None:
        output_files.save_report(estimator, data, report, selection)
    if str(output.out) == "-":
        return
    with screen.counting("describing the clusters"):
        description = described(found, data.values, data.columns, data.categories, k)
    if json:
        labels = summary.labels_of(found, mark_outliers=mark_outliers)
        screen.print_json(summary.as_document(data, estimator, found, description, in_units, labels))
    else:
        summary.print_clusters(data, estimator, found, description, in_units)
        summary.print_outliers(found, data.table, data.columns, data.values)
        summary.print_written({output.out: summary.TABLE, model: "the model", report: "the report"})
        again, given = options.typed_again(choice, reading), () if selection else ("-k", k)
        same = options.typed_again(settings._replace(k=None), choice, reading)
        inside = Path.cwd().is_relative_to(Path(file).resolve())  # a folder such as .
        place = Path(file).resolve() if inside else Path(file)
        suffix = ".csv" if place.suffix.casefold() in NOT_WRITTEN else place.suffix
        to = ("--out", place.parent / f"{place.stem}-clustered{suffix}", *["--mark-outliers"] * mark_outliers)
        beside = ("--out", place.parent / "report.html") if inside else ()
        suggestions = [
            (output.out is None, ("fit", file, "-k", k, *same, *to), "writes your table with the cluster of each row"),
            (report is None, ("report", file, *given, *same, *beside), "writes a report to look at and to pass on"),
            (model is not None, ("predict", model, "NEW.csv"), "finds the clusters of other rows"),
            (True, ("outliers", file, "-k", k, *same), "lists the rows that belong to no cluster"),
            (bool(given), ("select-k", file, *again), f"checks whether {k} is a good number of clusters"),
        ]
        summary.print_next(file, *((summary.typed(*words), why) for wanted, words, why in suggestions if wanted))


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, from 'tkmeans fit --model' or tkmeans.save().")],
    file: File,
    output: OutputOptions,
    reading: ReadingOptions,
    mark_outliers: MarkOutliers = False,
    json: Json = False,
) -> None:
    """Assign the rows of another table to the clusters of a saved model.

    The table must have the columns that the model was fitted on, under the same names; other columns are kept.
    """
    from tkmeans import load

    output_files.check_files(output.out, sources=[file, model], json=json)
    kinds = [path.is_file() and b'"tkmeans-model"' in path.read_bytes()[:4096] for path in (model, Path(file))]
    if model.is_file() and kinds == [False, True]:
        raise TableError(f"{file} is the model, which comes first: {summary.typed('predict', file, model)}")
    loaded = load(model)
    steps = [step for _, step in loaded.steps] if hasattr(loaded, "steps") else [loaded]
    fitted = getattr(steps[0], "_notations", ["1.5"] * steps[0].n_features_in_)
    names = tuple(map(str, getattr(steps[0], "feature_names_in_", ())))
    gone = [word for word in getattr(steps[0], "_missing", ()) if word not in (reading.missing or ())]
    reading = reading._replace(missing=[*(reading.missing or ()), *gone])
    table = read_file(file, reading, usual="," if "," in "".join(fitted) else ".", names=names)
    output_files.check_new_columns(table, output)
    columns = _columns_for(steps[0], table, model)
    X = np.column_stack(numbers(table, columns))
    written = zip(columns, map(table.notation, columns), fitted, X.T, strict=True)
    units = [(n, [x.translate(_UNITS)[4:] or "no unit" for x in both]) for n, *both, x in written if np.any(x == x)]
    others = [f"{name} ({ours} here, {theirs} there)" for name, (ours, theirs) in units if ours != theirs]
    strange = [name for name, x in zip(columns, X.T, strict=True) if table.indicated(name) and not np.nansum(x)]
    known = [*columns, *getattr(steps[0], "_other_values", ())]  # of old models a single one stands for two values
    encoded = [parted[0] for parted in map(table.indicated, known) if parted]
    several = (name for name in dict.fromkeys(encoded) if encoded.count(name) > 1)
    new = [each for name in several for each in indicators(table, name) if each not in known]
    about = {"no row has": strange, "the model does not know": new, "missing, as in the fit, are also the values": gone}
    about["not in the units that the model was fitted in; convert if need be:"] = others
    remarks = [*missing_values(X), *(f"{what} {listed(names)}" for what, names in about.items() if names)]
    notes = print_notes(table, f"{screen.count(len(X), 'row')}, by {listed(columns)}", *remarks)
    with estimator_calls.as_messages(table):
        Z = X if len(steps) == 1 else steps[0].transform(X)
    found = estimator_calls.answer(steps[-1], Z, table)
    output_files.write_output(table, output, found, mark_outliers=mark_outliers)
    if json:
        document = {"file": table.source, "model": str(model), "rows": len(X), "columns": columns}
        document["labels"] = summary.labels_of(found, mark_outliers=mark_outliers)
        screen.print_json(document | {"outliers": summary.outlier_places(found, table), "notes": notes})
    elif str(output.out) != "-":
        screen.print_table(summary.sizes_of(found, len(steps[-1].cluster_centers_)))
        summary.print_outliers(found, table, columns, X.T)
        summary.print_written({output.out: summary.TABLE})


def _columns_for(first: Any, table: Table, model: Path) -> list[str]:
    """The columns that the model was fitted on."""
    if not hasattr(first, "feature_names_in_"):
        if len(columns := choose(table).names) != first.n_features_in_:
            wanted = f"{model} has no names and wants {screen.count(first.n_features_in_, 'column')} of numbers"
            raise TableError(f"{wanted}, but {table.source} has {len(columns)}: {listed(columns)}")
        return columns
    columns = [str(name) for name in first.feature_names_in_]
    if lost := [name for name in columns if name not in table.kinds and table.indicated(name) is None]:
        lacks = f"{table.source} lacks {', '.join(map(repr, lost))}, which {model} was fitted on"
        raise TableError(f"{lacks}; its columns are {listed(table.names)}")
    del first.feature_names_in_  # it has done its work, and the rows go on without names
    return columns


def outliers(
    file: File,
    settings: ModelOptions,
    output: OutputOptions,
    choice: ColumnOptions,
    reading: ReadingOptions,
    rule: Annotated[Rule, typer.Option(help="strays: far from all clusters; tail: small p-values.")] = Rule.strays,
    level: Annotated[float | None, typer.Option(help="Level of the rule; 0.5 for strays, 0.01 for tail.")] = None,
    top: Annotated[int, typer.Option(min=1, help="The number of rows to show, the most unusual first.")] = 20,
    json: Json = False,
) -> None:
    """List the rows that are far from every cluster, and the column in which they are.

    --out writes these rows to a table.
    """
    if level is not None and not 0 < level < 1:
        raise typer.BadParameter(f"{level} is no probability between 0 and 1", param_hint="--level")
    output_files.check_files(output.out, sources=[file], json=json)
    data = prepare(file, reading, choice)
    output_files.check_new_columns(data.table, output)
    estimator, _ = estimator_calls.fitted(data, settings)
    found = estimator_calls.answer(estimator, data.Z, data.table, fitted=True, rule=rule.value, level=level)
    strangest = np.argsort(found.pvalue, kind="stable")  # NaN, of rows without a value, last
    strays = strangest[found.outlier[strangest]]
    output_files.write_output(data.table, output, found, rows=np.sort(strays))
    if json:
        described = _described(data, estimator, found, strays)
        screen.print_json({"file": data.table.source, "rows": data.table.n_rows, "outliers": described})
    elif str(output.out) != "-":
        summary.print_outliers(found, data.table, data.columns, data.values)
        if not len(strays):
            screen.tell("The least typical rows are:")
        shown = _described(data, estimator, found, strays[:top] if len(strays) else strangest[: min(5, top)])
        cells = {data.table.row_word: [str(row.get("place", row[data.table.row_word])) for row in shown]}
        cells |= {} if data.id_column is None else {data.id_column: [row["name"] for row in shown]}
        cells |= {"nearest cluster": [str(row["cluster"]) for row in shown]}
        cells |= {"p-value": [f"{row['outlier_pvalue']:.2g}" for row in shown]}
        cells |= {"most unusual value": [f"{row['column']} = {screen.number(row['value'])}" for row in shown]}
        cells |= {"off by": [f"{row['spreads']:+.1f} spreads" for row in shown]}
        screen.print_table(cells, text=(data.id_column, "most unusual value"))
        screen.tell("A spread is how far the rows of a cluster typically are from its centre, in one column.")
        if len(strays) > top:
            screen.tell(f"{len(strays) - top} more: --top {len(strays)} shows them, --out FILE writes them.")
        summary.print_written({output.out: screen.count(len(strays), "row")})


def _described(data: Data, estimator: Any, found: RowAnswers, rows: Array) -> list[dict[str, Any]]:
    """For each row where it stands, what it is called and which value is the most unusual."""
    from tkmeans.report.clustering import deviations

    away = (data.Z[rows] - estimator.cluster_centers_[found.label[rows]]) / deviations(estimator)[found.label[rows]]
    worst = np.argmax(np.nan_to_num(np.abs(away), nan=-1.0), axis=1)
    places = summary.places_of(data.table, rows.tolist())
    return [
        place
        | {"name": data.row_names and data.row_names[i], "cluster": int(found.label[i])}
        | {"outlier_pvalue": float(found.pvalue[i]), "column": data.columns[j]}
        | {"value": float(data.values[j][i]), "spreads": float(spreads[j])}
        for i, j, spreads, place in zip(rows, worst, away, places, strict=True)
    ]


def select_k(
    file: File,
    choice: ColumnOptions,
    reading: ReadingOptions,
    largest: Annotated[int, typer.Option("--max", min=1, help="The largest number of clusters to try.")] = 20,
    smallest: Annotated[int, typer.Option("--min", min=1, help="The smallest number of clusters to try.")] = 1,
    criterion: Annotated[Criterion, typer.Option(help="The criterion to choose by.")] = Criterion.evidence,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    json: Json = False,
) -> None:
    """Suggest a number of clusters."""
    if smallest > largest:
        raise typer.BadParameter(f"{smallest} is larger than --max {largest}", param_hint="--min")
    data = prepare(file, reading, choice)
    selection = estimator_calls.selected(data, range(smallest, largest + 1), criterion.value, seed, jobs)
    if json:
        fields = ("criterion", "best", "runner_up", "margin", "n_clusters", *_SHOWN)
        document = {field: getattr(selection, field) for field in fields}
        screen.print_json({"file": data.table.source, "columns": data.columns} | document)
        return
    marks = {selection.best: "best", selection.runner_up: "next"}
    values = {name: getattr(selection, name) for name in _SHOWN if getattr(selection, name) is not None}
    cells = {"clusters": [*map(str, selection.n_clusters)]}
    cells |= {name.replace("_", " "): [format(x, _SHOWN[name]) for x in column] for name, column in values.items()}
    screen.print_table(cells | {"": [marks.get(int(k), "") for k in selection.n_clusters]}, text=[""])
    screen.tell("Smaller values of evidence, icl and bic are better.")
    if "stability" in values:
        screen.tell("Stability is 1 if resamples give the same clusters; best is the largest number with at least .8.")
    screen.tell(f"\n[bold]{selection.sentence}.[/bold]")
    again = "-k", selection.best, *options.typed_again(choice, reading)
    deeds = {"fit": "finds these clusters", "report": "writes a report on them"}
    summary.print_next(file, *((summary.typed(deed, file, *again), why) for deed, why in deeds.items()))


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
    output_files.check_files(None, out, sources=[file])
    data = prepare(file, reading, choice)
    estimator, selection = estimator_calls.fitted(data, settings, largest)
    output_files.save_report(estimator, data, out, selection)
    summary.print_written({out: "open it in a browser"})


_CODES = "Exit codes: 0 success, 1 a problem with the data or a file, 2 wrong usage, 130 interrupted."
_LOOK: dict[str, Any] = {"rich_markup_mode": "rich", "pretty_exceptions_show_locals": False, "no_args_is_help": True}
app = typer.Typer(help="Robust k-means: clusters that outliers do not move.", epilog=_CODES, **_LOOK)
for each in (demo, fit, predict, select_k, outliers, report, reproduce):
    app.command(each.__name__.replace("_", "-"))(options.command(each))


def main() -> None:
    """Run the command."""
    # End like after Ctrl-C: files that were being written are removed.
    for name in ("SIGTERM", "SIGHUP"):
        if signal.getsignal(number := getattr(signal, name, signal.SIGTERM)) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    if isinstance(sys.stdout, TextIOWrapper):  # a name that its encoding lacks is no fault; one of the disk comes early
        sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)
    sys.stdin = sys.stdin or TextIOWrapper(BytesIO())  # None if it is closed
    try:
        app()
    except OSError as fault:  # help that cannot be printed
        sys.exit(f"Error: {fault.strerror}")
    finally:
        try:
            print(end="", flush=True)
        except OSError:  # has been reported, and Python would try again
            sys.stdout = None


@app.callback(invoke_without_command=True)
def _common(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if version:
        typer.echo(f"tkmeans {__version__}")
        raise typer.Exit
