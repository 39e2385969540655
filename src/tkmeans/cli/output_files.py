"""The files that commands write: tables with answers, models and reports; checked before the work."""

import os
import shlex
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tkmeans.atomic import check_not_input, replacing
from tkmeans.cli import screen
from tkmeans.cli.options import OutputOptions
from tkmeans.cli.prepared_data import Data
from tkmeans.row_answers import RowAnswers
from tkmeans.stats import Array
from tkmeans.tables import Added, Table, TableError, check_format, write_table
from tkmeans.tables.roles import LEVELS, RESULTS, indicators
from tkmeans.tables.table import WrongUse


def check_files(table: Path | None, *others: Path | None, sources: Iterable[str | Path], json: bool = False) -> None:
    """Complain before the work, not after it, about files that could not be written."""
    if json and str(table) == "-":
        raise typer.BadParameter("--json and --out - cannot both have standard output", param_hint="--out")
    if any(str(path) == "-" for path in others):
        raise typer.BadParameter("only tables can go to -, standard output; name a file")
    if sys.stdout is None and (json or str(table) == "-"):
        raise TableError("standard output is closed")
    paths = [path for path in (table, *others) if path is not None and str(path) != "-"]
    for path in paths:
        if (target := Path(os.path.realpath(path))).is_symlink():
            raise TableError(f"{path} is a link that leads back to itself; choose another name")
        if path.is_dir():
            raise TableError(f"{path} is a folder; name a file in it")
        if not target.parent.is_dir():
            raise TableError(f"there is no folder {target.parent} to write {path.name} to")
        if not os.access(path if path.exists() else target.parent, os.W_OK):
            raise TableError(f"{path} cannot be written: no permission")
    for path in [*paths, Path("/dev/stdout")] if str(table) == "-" else paths:
        for source in sources if path.is_file() or path is table or not path.exists() else ():  # a terminal can be both
            check_not_input(path, "/dev/stdin" if str(source) == "-" else source)
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise typer.BadParameter(f"one file cannot take two things: {', '.join(map(str, paths))}")
    if table is not None:
        check_format(table)


def check_new_columns(table: Table, output: OutputOptions) -> None:
    """Complain about names that the table already has, cannot write, or that a spreadsheet takes for a formula."""
    if output.prefix.startswith(("=", "+", "-", "@")):
        raise WrongUse(f"names that begin with {output.prefix[0]!r} are formulas; choose another --prefix")
    written = output.prefix.encode(table.encoding, "ignore").decode(table.encoding)
    if written != output.prefix or not written.isprintable():
        why = f"be written in {table.encoding}" if written.isprintable() else "be part of a name, as it would not print"
        raise TableError(f"{output.prefix!r} cannot {why}; choose another --prefix")
    clash = [output.prefix + name for name in RESULTS if output.prefix + name in table.names]
    if output.out is not None and clash:
        way_out = f"add --prefix tk_ to call the new ones {', '.join(f'tk_{name}' for name in RESULTS)}"
        raise TableError(f"{table.source} already has a column {clash[0]!r}; {way_out}")


def write_output(
    table: Table, output: OutputOptions, found: RowAnswers, *, rows: Array | None = None, mark_outliers: bool = False
) -> None:
    """Write the table with its new columns where that is wanted, as a whole or not at all."""
    if output.out is None:
        return
    label = np.where(found.core if mark_outliers else found.known, found.label, -1).astype(np.int64)
    known = (x if x is None else np.where(found.known, x, np.nan) for x in (found.probability, found.pvalue))
    answers = zip(RESULTS, (label, *known), strict=True)
    added = {output.prefix + name: Added(values, found.known) for name, values in answers if values is not None}
    target: Any = nullcontext(sys.stdout.buffer) if str(output.out) == "-" else replacing(output.out)
    with screen.counting(f"writing {output.out}"), target as file:
        write_table(table, file, added, rows=rows, like=output.out)
        file.flush()


def save_model(estimator: Any, data: Data, path: Path) -> None:
    """Keep scaler and estimator with the names of the columns; the table has what is known of its rows."""
    from sklearn.pipeline import Pipeline

    from tkmeans import save

    first = copy(estimator if data.scaler is None else data.scaler)
    written = [data.table.notation(name) for name in data.columns]
    facts: dict[str, Any] = {"feature_names_in_": data.columns, "_missing": data.table.missing}
    facts["_notations"] = written if {*written} != {"1.5"} else ()
    encoded = dict.fromkeys(parted[0] for parted in map(data.table.indicated, data.columns) if parted)
    values = [made for name in encoded if len(made := indicators(data.table, name)) <= LEVELS]
    facts["_other_values"] = [each for made in values for each in made if each not in data.columns]
    vars(first).update({name: np.array(words, dtype=object) for name, words in facts.items() if words})
    steps = [("scale", first), ("cluster", estimator)]
    save(first if data.scaler is None else Pipeline(steps), path, training_rows=False)


def save_report(estimator: Any, data: Data, path: Path, selection: Any = None) -> None:
    """Write the report, with the command that made it."""
    from tkmeans.report import write_report

    table = data.table
    called = data.row_names or table.where(range(table.n_rows))
    facts: dict[str, Any] = {"feature_names": data.columns, "row_names": called, "scaler": data.scaler}
    facts |= {"categories": data.categories, "selection": selection, "call": shlex.join(["tkmeans", *sys.argv[1:]])}
    facts["notes"] = data.notes
    with screen.counting(f"writing {path}"):
        write_report(path, estimator, np.column_stack(data.values), title=Path(table.source).name, **facts)
