"""The options that commands share, and how every command ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from tkmeans.cli import screen

FAULT, INTERRUPTED = 1, 130  # exit codes; 0 is success, and 2, for wrong usage, is Typer's own


class Scale(StrEnum):
    """How columns of different units are made comparable."""

    none = "none"
    standard = "standard"
    robust = "robust"
    minmax = "minmax"


class Decimal(StrEnum):
    """The sign before the decimals."""

    point = "."
    comma = ","


_FILE = "CSV, TSV, Parquet, Feather or NPY, recognised by content; - for standard input."
_READING, _CHOICE = "How to read a text file", "What to cluster by"


File = Annotated[str, typer.Argument(metavar="FILE", help=_FILE)]


class ReadingOptions(NamedTuple):
    """What a text file does not tell itself."""

    delimiter: Annotated[
        str | None, typer.Option(help="What divides the cells, such as ';' or tab.", rich_help_panel=_READING)
    ] = None
    decimal: Annotated[Decimal | None, typer.Option(help="The decimal sign.", rich_help_panel=_READING)] = None
    thousands: Annotated[
        str | None, typer.Option(help="The sign between groups of three digits.", rich_help_panel=_READING)
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Such as utf-8, latin-1 or utf-16.", rich_help_panel=_READING)
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line has names.", rich_help_panel=_READING),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(help="One more word for a missing value; may be repeated.", rich_help_panel=_READING),
    ] = None


class ColumnOptions(NamedTuple):
    """Which columns are data, and what the others are."""

    columns: Annotated[
        str | None, typer.Option(help="Names or numbers, as in a,b or 2,5.", rich_help_panel=_CHOICE)
    ] = None
    without: Annotated[str | None, typer.Option(help="All columns of numbers but these.", rich_help_panel=_CHOICE)] = (
        None
    )
    id: Annotated[str | None, typer.Option(help="The column that names the rows.", rich_help_panel=_CHOICE)] = None
    weights: Annotated[
        str | None, typer.Option(help="The column that says how often a row counts.", rich_help_panel=_CHOICE)
    ] = None
    scale: Annotated[
        Scale, typer.Option(help="How to make columns of different units comparable.", rich_help_panel=_CHOICE)
    ] = Scale.robust


class ModelOptions(NamedTuple):
    """How to fit."""

    k: Annotated[int | None, typer.Option("-k", "--clusters", min=1, help="The number of clusters.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Makes the answer reproducible; it should not change it.")] = 0
    max_iter: Annotated[int, typer.Option(min=1, help="The most iterations.")] = 300
    jobs: Annotated[int, typer.Option(help="Threads; -1 for all. The answer does not depend on it.")] = -1


class OutputOptions(NamedTuple):
    """Where the table with the answer goes."""

    out: Annotated[
        Path | None, typer.Option(help="Write the table and the new columns there; - for standard output.")
    ] = None
    prefix: Annotated[str, typer.Option(help="Put this before the names of the new columns.")] = ""


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def number_of_clusters(model: ModelOptions, file: str) -> int:
    """What -k says; people who do not know it yet are told how to find out."""
    if model.k is None:
        raise typer.BadParameter(f"say how many clusters; 'tkmeans select-k {file}' suggests a number", param_hint="-k")
    return model.k


def typed_again(*records: NamedTuple) -> list[str]:
    """The options that somebody gave, as they would be typed."""
    words = []
    for record in records:
        for field, value in record._asdict().items():
            if value == record._field_defaults.get(field):
                continue
            if isinstance(value, bool):
                words.append(f"--{'' if value else 'no-'}{field}")
            else:
                words += [
                    word for each in (value if isinstance(value, list) else [value]) for word in (f"--{field}", each)
                ]
    return words


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command from a function: records of options become single options, errors become messages and exit codes."""
    hints = get_type_hints(function, include_extras=True)
    records = {name: hint for name, hint in hints.items() if hasattr(hint, "_fields")}

    @wraps(function)
    def run(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field: given.pop(field) for field in record._fields})
        _ending_well(lambda: function(**given))

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, hint in hints.items()
        if name != "return"
        for parameter in (_fields(hint) if name in records else [_parameter(function, name, hint)])
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _fields(record: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[field],
            default=record._field_defaults.get(field, inspect.Parameter.empty),
        )
        for field in record._fields
    ]


def _parameter(function: Callable[..., None], name: str, hint: Any) -> inspect.Parameter:
    return inspect.signature(function).parameters[name].replace(annotation=hint)


def _ending_well(run: Callable[[], None]) -> None:
    """Run; what the user can mend is said in a sentence, not in a traceback."""
    from tkmeans.persistence import ModelFileError
    from tkmeans.tables import TableError

    try:
        run()
    except (TableError, ModelFileError) as fault:
        screen.complain(str(fault))
    except BrokenPipeError:
        raise  # the reader of our output has seen enough
    except OSError as fault:
        what = fault.strerror or str(fault)
        screen.complain(what if fault.filename is None else f"{fault.filename}: {what}")
    except ImportError as missing:
        screen.complain(str(missing))
    except MemoryError:
        screen.complain("the memory of this machine is not enough for these data")
    except KeyboardInterrupt:
        screen.complain("interrupted; no file was left half-written")
        raise typer.Exit(INTERRUPTED) from None
    else:
        return
    raise typer.Exit(FAULT)
