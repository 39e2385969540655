"""The options that commands share, and how every command ends."""

import inspect
import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from tkmeans.cli import screen
from tkmeans.tables.table import TableError, WrongUse

Scale = StrEnum("Scale", ["none", "standard", "robust", "minmax"])  # how columns of different units are made comparable
Shape = StrEnum("Shape", ["round", "elliptical", "auto"])  # of clusters
Decimal = StrEnum("Decimal", {"point": ".", "comma": ","})  # the sign before the decimals

_FILE = "CSV, Parquet, Feather, JSON, xlsx, xls, ods, DuckDB or NPY, recognised by content; - for standard input."
_SHAPES = "round: of one width; elliptical: of any width and direction; auto: elliptical if there are enough rows."
_CLUSTERS = typer.Option("-k", "--clusters", min=1, help="Number of clusters; chosen if absent.")
_OUT = "Write the table with new columns; - for standard output."
_DEVICES = dict.fromkeys(("/dev/stdout", "/dev/fd/1"), Path("-"))  # which are standard output, too
_reading = partial(typer.Option, rich_help_panel="How to read the file")
_choice = partial(typer.Option, rich_help_panel="What to cluster by")

File = Annotated[str, typer.Argument(metavar="FILE", help=_FILE, callback=lambda name: re.sub("^-(?=.)", "./-", name))]
MarkOutliers = Annotated[bool, typer.Option("--mark-outliers", help="Give outliers the cluster -1.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same result.")]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 for all. The result does not depend on it.")]


class ReadingOptions(NamedTuple):
    """What a text file does not tell itself."""

    delimiter: Annotated[str | None, _reading(help="The sign between cells, such as ';' or tab.")] = None
    decimal: Annotated[Decimal | None, _reading(help="The decimal sign.")] = None
    thousands: Annotated[str | None, _reading(help="The sign between groups of three digits.")] = None
    encoding: Annotated[str | None, _reading(help="The encoding, such as utf-8, latin-1 or utf-16.")] = None
    header: Annotated[bool | None, _reading("--header/--no-header", help="Whether the first line has names.")] = None
    missing: Annotated[list[str] | None, _reading(help="One more word for a missing value; may be repeated.")] = None
    table: Annotated[str | None, _reading(help="The sheet of a workbook; the table of a database, or a query.")] = None


class ColumnOptions(NamedTuple):
    """Which columns are data, and what the others are."""

    columns: Annotated[str | None, _choice(help="Only these columns: names or numbers, as in a,b or 2,5.")] = None
    without: Annotated[str | None, _choice(help="Leave these columns out.")] = None
    keep: Annotated[str | None, _choice(help="Also these columns, which look like identifiers or dates.")] = None
    encode: Annotated[str | None, _choice(help="Also these text columns: 0 or 1 for each value.")] = None
    id: Annotated[str | None, _choice(help="The column that names the rows.")] = None
    weights: Annotated[str | None, _choice(help="The column with the weight of each row.")] = None
    scale: Annotated[Scale, _choice(help="How to make columns of different units comparable.")] = Scale.robust


class ModelOptions(NamedTuple):
    """How to fit."""

    k: Annotated[int | None, _CLUSTERS] = None
    shape: Annotated[Shape, typer.Option(help=_SHAPES)] = Shape.auto
    min_cluster_size: Annotated[int | None, typer.Option(min=1, help="Smaller heaps are no cluster.")] = None
    seed: Seed = 0
    max_iter: Annotated[int, typer.Option(min=1, help="The largest number of iterations.")] = 300
    jobs: Jobs = -1


class OutputOptions(NamedTuple):
    """Where the table with the answer goes."""

    out: Annotated[Path | None, typer.Option(help=_OUT, callback=lambda path: _DEVICES.get(str(path), path))] = None
    prefix: Annotated[str, typer.Option(help="Put this before the names of the new columns.")] = ""


def typed_again(*records: NamedTuple) -> list[str]:
    """The options that somebody gave, as they would be typed."""
    given = ((key, x) for each in records for key, x in each._asdict().items() if x != each._field_defaults.get(key))
    return [word for key, value in given for word in screen.typed(key.replace("_", "-"), value)]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command from a function: records of options become single options, and faults a sentence and an exit code."""
    own = _parameters(function)
    records = {each.name: each.annotation for each in own if hasattr(each.annotation, "_fields")}
    parameters = [one for each in own for one in (_parameters(each.annotation) if each.name in records else [each])]

    @wraps(function)
    def run(**given: Any) -> None:
        from tkmeans.persistence import ModelFileError

        if given.get("jobs") == 0:
            raise typer.BadParameter("--jobs cannot be 0")
        for name, record in records.items():
            given[name] = record(**{field: given.pop(field) for field in record._fields})
        try:
            return function(**given)
        except (TableError, ModelFileError, ImportError) as fault:
            no_choice = re.sub(r", (or|and)( add)? (without|columns)=.*", "", str(fault))  # for predict
            screen.complain(screen.as_options(str(fault) if "choice" in records else no_choice))
            raise typer.Exit(2 if isinstance(fault, WrongUse) else 1) from None
        except BrokenPipeError:
            raise  # the reader of our output has seen enough
        except OSError as fault:
            what = fault.strerror or str(fault)
            screen.complain(what if fault.filename is None else f"{fault.filename}: {what}")
        except MemoryError:
            screen.complain("the memory of this machine is not enough for these data")
        except KeyboardInterrupt:
            screen.complain("interrupted; no file was left half-written")
            raise typer.Exit(130) from None
        raise typer.Exit(1)  # 2, for wrong usage, is Typer's own

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(function) or "")  # paragraphs, however wide
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters of a function, or fields of a record, to be given by name."""
    hints, found = get_type_hints(function, include_extras=True), inspect.signature(function).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name]) for each in found]
