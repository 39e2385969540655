"""The choice of columns: which are data, which are carried along, and which are at fault."""

import csv
import difflib
import shlex
from collections.abc import Sequence

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables import Column, Table, TableError

RESULTS = ("cluster", "probability", "outlier_pvalue")  # the columns that are added

_WORDS_FOR_MISSING = 3  # a complaint about bad cells suggests no more of them
_ID_NAMES = ("id", "index", "rowid", "row_id", "unnamed: 0")


def named(table: Table, text: str) -> list[str]:
    """Columns by name or, failing that, by number: "a,b" or "2,5"."""
    if text in table.names:
        return [text]
    return [column_named(table, word) for word in next(csv.reader([text], skipinitialspace=True), [])]


def column_named(table: Table, word: str) -> str:
    """The column of this name or number."""
    word = word.strip()
    if word in table.names:
        return word
    if word.isdecimal() and 1 <= int(word) <= len(table.names):
        return table.names[int(word) - 1]
    close = [name for name in table.names if word and word.casefold() in name.casefold()]
    close = close[:3] or difflib.get_close_matches(word, table.names, n=1)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"its columns are {listed(table.names)}"
    raise TableError(f"{table.source} has no column {word!r}; {hint}")


def choose(table: Table, columns: str | None, without: str | None, taken: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns to cluster by, and notes on the others; `taken`, for weights and names of rows, are not chosen."""
    if columns is not None:
        names = [name for name in named(table, columns) if name not in taken]
        for name in names:
            check_numbers(table, table.column(name))
            if table.column(name).is_empty:
                raise TableError(f"{table.source}: column {name!r} is empty; leave it out")
        return names, []
    ignored = {*taken, *(named(table, without) if without is not None else [])}
    earlier = set(RESULTS) if set(RESULTS) <= set(table.names) else set()
    found: list[str] = []
    aside: dict[str, list[str]] = {}
    for name in table.names:
        if name not in ignored:
            column = table.column(name)
            reason = "from an earlier run" if name in earlier else _why_not(column)
            if reason:
                aside.setdefault(reason, []).append(name)
            else:
                check_numbers(table, column)
                found.append(name)
    others = "; ".join(f"{listed(names)} ({reason})" for reason, names in aside.items())
    if not found:
        raise TableError(f"{table.source} has no column of numbers to cluster by: {others or 'all were left out'}")
    return found, [f"carried along, but not clustered by: {others}"] if aside else []


def _why_not(column: Column) -> str:
    """Why a column is not clustered by unless somebody asks for it; empty if it is."""
    if column.is_empty:
        return "empty"
    if column.is_text:
        return "text"
    if column.n_bad:
        return ""
    known = column.values[~np.isnan(column.values)]
    if np.ptp(known) == 0 and len(column.values) > 1:
        return "the same in every row"
    whole = len(known) == len(column.values) and bool(np.all(known == np.round(known)))
    if whole and len(known) > 2 and bool(np.all(np.diff(known) == 1)) and known[0] in (0, 1):
        return "counts the rows"
    if whole and column.name.strip().casefold() in _ID_NAMES and len(np.unique(known)) == len(known):
        return "numbers the rows"
    return ""


def check_numbers(table: Table, column: Column) -> None:
    """Complain about cells that are not numbers: they must become neither text nor missing behind one's back."""
    if not column.n_bad:
        return
    if column.is_text:
        example = next(cell for cell in table.cells(column.name) if cell)
        raise TableError(
            f"{table.source}: column {column.name!r} is text, such as {example!r}; clusters are made of numbers"
        )
    words = list(dict.fromkeys(cell.value for cell in column.bad))
    leave = f"--without {shlex.quote(column.name)} to leave the column out"
    if len(words) <= _WORDS_FOR_MISSING and column.n_bad == len(column.bad):
        missing = " ".join(f"--missing {shlex.quote(word)}" for word in words)
        stand = "that stands for a missing value" if len(words) == 1 else "these stand for missing values"
        way_out = f"add {missing} if {stand}, or {leave}"
    else:
        way_out = f"correct them, or add {leave}"
    if column.n_bad == 1 and column.bad[0].line == 1:
        way_out = f"add --header if that is the name of the column, or {way_out}"
    raise TableError(
        f"{table.source}: {column.n_numbers} cells of column {column.name!r} are numbers, but {column.n_bad} "
        f"{'is' if column.n_bad == 1 else 'are'} not: {column.describe_bad_cells()}; {way_out}"
    )


def weights_of(table: Table, name: str) -> Array:
    """Sample weights from a column."""
    column = table.column(name)
    check_numbers(table, column)
    wrong = np.flatnonzero(~(column.values >= 0))
    if len(wrong):
        rows = ", ".join(f"row {i + 1}: {column.values[i]:g}" for i in wrong[:5])
        raise TableError(
            f"{table.source}: weights must not be negative or missing, but {len(wrong)} in {name!r} are ({rows}); "
            "a weight of 0 ignores a row"
        )
    return column.values


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, if there are not too many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
