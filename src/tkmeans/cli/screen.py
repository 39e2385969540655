"""The screen: results on standard output, messages and progress on standard error."""

import ast
import json
import math
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from tkmeans.tables.table import STEERING, one_line

_ENVIRONMENT = {name: value for name, value in os.environ.items() if (name, value) != ("COLUMNS", "0")}
out = Console(emoji=False, _environ=_ENVIRONMENT)
err = Console(stderr=True, emoji=False, _environ=_ENVIRONMENT)

_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NAMES = "delimiter|decimal|thousands|encoding|header|missing|table|columns|without|keep"
_ARGUMENT = re.compile(rf"\b({_NAMES})=(\[(?:{_TEXT}|[ ,.])*\]|{_TEXT}|True|False)")
PLAIN_WIDTH = 120  # of tables that do not go to a terminal


def _print_message(form: str, style: str, text: str) -> None:
    """Print to standard error, in lines only on terminals: programs that read messages want them whole."""
    err.print(Text(clean(form.format(text)), style=style), soft_wrap=not err.is_terminal)


clean = partial(STEERING.sub, "")
warn, complain = partial(_print_message, "Note: {}", "yellow"), partial(_print_message, "Error: {}", "bold red")


def notes(texts: Sequence[str]) -> None:
    """Print remarks on what was done."""
    for text in texts:
        _print_message("{}.", "dim", text[:1].upper() + text[1:])


def typed(name: str, value: Any) -> list[str]:
    """An option as it would be typed, again and again for a list."""
    if isinstance(value, bool):
        return [f"--{'' if value else 'no-'}{name}"]
    return [word for each in (value if isinstance(value, list) else [value]) for word in (f"--{name}", str(each))]


def as_options(text: str) -> str:
    """The arguments of `DataFile` that a message of the library suggests, as options of the command."""

    def option(found: re.Match[str]) -> str:
        name, value = found[1], ast.literal_eval(found[2])
        if isinstance(value, list):
            words = [str(word) for word in value if word is not ...]
            value = words if name == "missing" else ",".join(words)
        return shlex.join(typed(name, value))

    return _ARGUMENT.sub(option, text)


def tell(text: str) -> None:
    """Print a line of a result; [bold] and the like are understood, so names must be `escape`d."""
    out.print(clean(text), highlight=False, soft_wrap=not out.is_terminal)


@contextmanager
def counting(what: str, *, transient: bool = True) -> Iterator[Callable[..., None]]:
    """A function to update a bar, which shows the share that is done, once it is known, and the time left."""
    with Progress(console=err, transient=transient, disable=not err.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(escape(clean(what)), total=None))


def print_json(document: Any) -> None:
    """The one thing that goes to standard output with --json; null for what is no finite number."""
    from tkmeans.persistence.encoding import pretty

    plain = json.loads(json.dumps(document, default=lambda value: value.tolist()), parse_constant=lambda _: None)
    unsafe = STEERING if out.encoding.startswith("utf") else re.compile(r"[^\n -~]")
    print(unsafe.sub(lambda sign: json.dumps(sign[0])[1:-1], pretty(plain)))


def print_table(columns: Mapping[str, Sequence[str]], *, text: Collection[str | None] = ()) -> None:
    """A table of numbers; columns whose names are in `text` are text."""
    table = Table()
    for name in columns:
        table.add_column(Text(one_line(name)), justify="left" if name in text else "right", overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(one_line(cell)) for cell in row))
    (out if out.is_terminal else Console(width=PLAIN_WIDTH)).print(table, highlight=False)


def number(value: float) -> str:
    """Four digits, which is what people compare."""
    return f"{value:{'.0f' if 1000 <= abs(value) < 1e6 else '.4g'}}" if math.isfinite(value) else "-"


def numbers(values: Sequence[float]) -> list[str]:
    """Numbers to be compared with each other: as many decimals as their differences need."""
    spread, largest = max(values) - min(values), max(map(abs, values))
    decimals = 2 - math.floor(math.log10(spread or largest or 1.0))
    if largest >= 1e7 or decimals > 6:
        return [number(value) for value in values]
    return [f"{value:.{max(decimals, 0)}f}" for value in values]


def count(n: int, noun: str) -> str:
    """1 row, 2 rows."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
