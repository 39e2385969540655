"""The table that commands work on, whatever file it came from: columns, bad cells and added columns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from tkmeans.stats import Array

# A column with fewer numbers than this among its values is text.
MOSTLY = 0.5

_NAMED_CELLS = 5  # bad cells that a message names
KEPT_BAD = 20  # bad cells that are kept


class TableError(ValueError):
    """What is wrong with a table, and what to do about it."""


class Reading(NamedTuple):
    """What a person may say about a text file; None or empty where the file shall tell."""

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] = ()  # further words for a missing value


class BadCell(NamedTuple):
    """A cell that is neither a number nor missing."""

    row: int  # counted from 1, without the header
    line: int | None  # of the file, where it has lines
    value: str

    def __str__(self) -> str:
        where = f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"
        return f"{where}: {self.value!r}"


class Column(NamedTuple):
    """One column: its numbers, or why it has none."""

    name: str
    values: Array  # (n,) NaN where missing or not a number
    bad: tuple[BadCell, ...] = ()  # the first cells that are not numbers
    n_bad: int = 0

    @property
    def n_numbers(self) -> int:
        """How many cells hold a number."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def is_empty(self) -> bool:
        """Whether every cell is missing."""
        return self.n_numbers == self.n_bad == 0

    @property
    def is_text(self) -> bool:
        """Whether other things than numbers prevail."""
        return self.n_numbers < MOSTLY * (self.n_numbers + self.n_bad)

    def describe_bad_cells(self) -> str:
        """The cells that are not numbers, by row and value."""
        rest = self.n_bad - min(len(self.bad), _NAMED_CELLS)
        return "; ".join(map(str, self.bad[:_NAMED_CELLS])) + (f"; and {rest} more" if rest else "")


class Added(NamedTuple):
    """A column to append."""

    values: Array  # (n,) int or float; where not known, what to put in formats that cannot leave a cell empty
    known: Array  # (n,) bool

    def texts(self, write: Callable[[float], str], unknown: str) -> list[str]:
        """The values as text, those that are not whole numbers by `write`."""
        write = str if np.issubdtype(self.values.dtype, np.integer) else write
        return [
            write(value) if known else unknown for value, known in zip(self.values.tolist(), self.known, strict=True)
        ]


def column_of(name: str, values: Array) -> Column:
    """The column of an array of numbers: float32 and float64 stay what they are, and infinity is no number."""
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    infinite = np.flatnonzero(np.isinf(values))
    if not len(infinite):
        return Column(name, values)
    bad = tuple(BadCell(int(i) + 1, None, str(values[i])) for i in infinite[:KEPT_BAD])
    return Column(name, np.where(np.isinf(values), np.nan, values), bad, len(infinite))


class Table(ABC):
    """Named columns of equal length that can be written again with more columns."""

    format: str  # what it is written as: "text", "parquet", "feather" or "npy"

    def __init__(self, source: str, names: Sequence[str], n_rows: int, notes: Sequence[str] = ()) -> None:
        self.source = source  # for messages
        self.names = list(names)
        self.n_rows = n_rows
        self.notes = list(notes)

    @abstractmethod
    def column(self, name: str) -> Column:
        """The numbers of a column."""

    @abstractmethod
    def cells(self, name: str) -> list[str]:
        """A column as text; empty where missing."""

    @abstractmethod
    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows and the added columns in the table's own format."""


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names that differ, and a note for each one that had to change; a column without a name is x and its number."""
    taken, notes = set(names), []
    unique: list[str] = []
    for j, name in enumerate(names):
        new, count = name or f"x{j + 1}", 2
        while new in unique or (new != name and new in taken):
            new, count = f"{name or f'x{j + 1}'}_{count}", count + 1
        if name and new != name:
            notes.append(f"there is more than one column {name!r}: number {j + 1} is {new!r} here")
        elif not name:
            notes.append(f"column {j + 1} has no name: it is {new!r} here")
        unique.append(new)
    return unique, notes
