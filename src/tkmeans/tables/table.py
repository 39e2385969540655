"""The table that a fit or a command works on, whatever file it came from: columns, cells and added columns."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tkmeans.stats import Array

_NAMED_CELLS, KEPT_BAD = 5, 20  # bad cells that a message names, and that are kept
_FEW_ABOVE = 3  # rows above the first number that may be no rows
CHUNK = 65_536  # rows that are read at once where the format does not decide it
WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_bytes())  # names and beginnings of files
TRUTH = {"true": 1.0, "false": 0.0}
_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
DATE = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{_TIME})?")

# What would steer a terminal, or turn the direction of its text: names come from files, and files from anywhere.
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class TableError(ValueError):
    """What is wrong with a table; ways out are arguments of `DataFile`, which the command shows as its options."""


class WrongUse(TableError):
    """An argument that fits no table."""


class Reading(NamedTuple):
    """What a person may specify about a file; None or empty where it is to be found out."""

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] = ()  # further words for a missing value
    table: str | None = None  # the sheet of a workbook; the table of a database, or a query
    usual: str = "."  # the decimal sign where the file leaves it open
    names: tuple[str, ...] = ()  # of columns that it should have

    def checked(self) -> "Reading":
        """The same, or what is wrong with it whatever the file is."""
        signs = {"delimiter": self.delimiter, "decimal": self.decimal, "thousands": self.thousands or None}
        for name, sign in signs.items():
            word = name != "delimiter" and str(sign).isalnum()  # or a part of one, or of a number
            if sign is not None and (word or len(sign) != 1 or sign == '"' or not (sign.isprintable() or sign == "\t")):
                raise WrongUse(f"{name}={sign!r} is not one sign, such as ';' or tab")
        if self.decimal is not None and self.decimal == self.thousands:
            raise WrongUse(f"decimal={str(self.decimal)!r} and thousands={self.thousands!r} must differ")
        try:
            "01".encode(self.encoding or "utf-8").index("0".encode(self.encoding or "utf-8"))  # as not every codec can
        except (LookupError, ValueError):
            raise WrongUse(f"no encoding is called {self.encoding!r}; try utf-8, latin-1 or utf-16") from None
        return self


class Cells(NamedTuple):
    """Consecutive cells of a column."""

    values: Array  # (m,) NaN where missing or not a number
    wrong: Array = np.empty(0, np.int64)  # places of the cells that are neither numbers nor missing
    texts: Any = None  # the cells as an Arrow dictionary array of text; None where they are numbers


class Column(NamedTuple):
    """One column: its numbers, or why it has none."""

    name: str
    values: Array  # (n,) NaN where missing or not a number
    bad: tuple[tuple[str, str], ...] = ()  # places, as "line 22", and the first cells that are not numbers, unless text
    n_bad: int = 0
    kind: str = "number"  # or "boolean", "date", "code" (0815, 12E4), "text"
    bad_above: bool = False  # whether all bad cells stand above the first number

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
        return self.n_numbers < self.n_bad


class Added(NamedTuple):
    """A column to append."""

    values: Array  # (n,) int or float; where not known, what to put in formats that cannot leave a cell empty
    known: Array  # (n,) bool

    def texts(self, write: Callable[[float], str], unknown: str) -> list[str]:
        """The values as text, those that are not whole numbers by `write`."""
        write = str if np.issubdtype(self.values.dtype, np.integer) else write
        return [write(x) if known else unknown for x, known in zip(self.values.tolist(), self.known, strict=True)]


class Table(ABC):
    """Named columns of equal length, read in chunks, that can be written again with more columns."""

    KINDS = ("number", "boolean", "date", "code", "text")  # of columns; other kinds of numbers are named by their unit
    format = "other"  # what it is written as: "text", "parquet", "feather" or "npy"; "other" becomes text
    layout = ""  # how the file is written, where that is worth a word
    encoding = "utf-8"  # of what is written as text
    is_matrix = False  # whether it is an array without names, in which every column is data
    row_word = "row"  # what rows are counted in
    tables: Sequence["Table"] = ()  # the files of a folder
    row_places: Sequence[int] | None = None  # where each is; None if they are counted from 1
    known_rows: int | None = None
    missing: tuple[str, ...] = ()  # further words for a missing value
    numerals: Any = None  # of what is text
    stamp: Callable[[], tuple[Any, ...]] = tuple  # what would be another if somebody wrote to the file

    def __init__(self, source: str, names: Sequence[str], kinds: Iterable[str], notes: Sequence[str] = ()) -> None:
        self.source = self.sheet = source  # for messages, and those about a sheet of a workbook
        self.names, self.notes = list(names), list(notes)
        self.kinds = {n: kind if kind in self.KINDS else "number" for n, kind in zip(names, kinds, strict=True)}
        self.notations: dict[str, str] = {}  # of columns of text: these kinds or, of numbers, a unit; "" if empty
        self.singles: set[str] = set()  # columns in single precision
        self.wholes: set[str] = set()  # columns of text whose first cells are whole numbers without decimals
        self._loaded: dict[str, tuple[Column, list[tuple[int, Cells]]]] = {}

    @abstractmethod
    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """These columns from the first row to the last, about `n_rows` at a time; then the rows are known."""

    def dtype(self, names: Sequence[str]) -> Any:
        """The type of these columns side by side: single precision if all of them are."""
        return np.dtype(np.float32 if set(names) <= self.singles else np.float64)

    def known(self, values: Array, kind: str = "number") -> Array:
        """These values of columns of a kind, NaN where they are what a person calls missing."""
        gone = gone_numbers(self.missing, kind)
        return np.where(np.isin(values, np.array(gone, values.dtype)), np.nan, values) if gone else values

    def notation(self, name: str) -> str:
        """How a column writes numbers, by an example such as 1.5, 1,5 or 1.5 %."""
        decimal, kind = "." if self.numerals is None else self.numerals.decimal, self.notations.get(name, "")
        held = self.kinds.get(name, "")
        kind = held if held in ("date", "boolean") else "" if kind in self.KINDS else kind
        return f"1{decimal}5 {kind}".rstrip()

    def places(self, rows: Sequence[int]) -> list[int]:
        """Where rows, counted from 0, are in the file, in lines or in what `row_word` names."""
        return [row + 1 if self.row_places is None else self.row_places[row] for row in rows]

    def where(self, rows: Sequence[int]) -> list[str]:
        """The places of rows, in words."""
        return [f"{self.row_word} {place}" for place in self.places(rows)]

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[Array]:
        """The rows of these columns in order, as arrays of shape (some, p)."""
        parted = [self.indicated(name) or (name, None) for name in names]
        held = list(dict.fromkeys(name for name, _ in parted))
        dtype, start = self.dtype(held), 0
        for chunk in self.chunks(held, n_rows):
            by_name = dict(zip(held, chunk, strict=True))
            X = np.empty((len(chunk[0].values), len(names)), dtype)
            for j, (name, value) in enumerate(parted):
                cells = by_name[name]
                if value is None and len(cells.wrong):
                    raise TableError(complaint(self.source, self._column(name, cells.values, [(start, cells)])))
                with np.errstate(invalid="ignore"):  # of a NaN that signals
                    X[:, j] = cells.values if value is None else _indicator(cells, value, self.kinds[name])
            start += len(X)
            yield X

    def indicated(self, name: str) -> tuple[str, str] | None:
        """The column and the value that an indicator such as "species=Gentoo" is about; None if it is a column."""
        cuts = [] if name in self.kinds else [i for i, sign in enumerate(name[:-1]) if sign == "="]
        return next(((name[:i], name[i + 1 :]) for i in reversed(cuts) if name[:i] in self.kinds), None)

    def rows(self, names: Sequence[str], picked: Array, n_rows: int) -> Array:
        """Rows of these columns by their ascending numbers."""
        found, start = [np.empty((0, len(names)), self.dtype(names))], 0
        for batch in self.batches(names, n_rows):
            first, last = np.searchsorted(picked, [start, start + len(batch)])
            found.append(batch[picked[first:last] - start])
            start += len(batch)
        return np.concatenate(found)

    @property
    def n_rows(self) -> int:
        """The number of rows; they are read if need be."""
        if self.known_rows is None:
            self.load()
        return self.known_rows or 0

    def load(self) -> None:
        """Read all columns into memory."""
        self._loaded = {column.name: (column, parts) for column, parts in self._gathered(self.chunks(self.names))}

    def first(self, n_rows: int) -> list[Column]:
        """The columns of the first rows, so many, whether the table is loaded or not."""
        held = [*self._loaded.values()] or [*self._gathered(self.chunks(self.names, n_rows), n_rows)]
        if not len(held[0][0].values):
            raise TableError(f"{self.source} has no rows")
        cut = [[(at, c._replace(wrong=c.wrong[c.wrong < n_rows - at])) for at, c in parts] for _, parts in held]
        return [self._column(c.name, c.values[:n_rows], parts) for (c, _), parts in zip(held, cut, strict=True)]

    def column(self, name: str) -> Column:
        """The numbers of a column."""
        if not self._loaded:
            self.load()
        return self._loaded[name][0]

    def cells(self, name: str, as_they_are: bool = False) -> list[str]:
        """A column as text; empty where missing or, if wanted as they are, only where a person calls that missing."""
        texts = ["" if value != value else str(value) for value in self.column(name).values.tolist()]
        for start, cells in self._loaded[name][1]:
            if cells.texts is not None:  # as there may be in some chunks and not in others
                texts[start : start + len(cells.texts)] = texts_of(cells.texts)
        return texts

    def _gathered(self, chunks: Iterable[list[Cells]], n_rows: float = np.inf) -> Iterator[tuple[Column, list[Any]]]:
        """The columns that the first chunks make up, and where their cells are not just numbers."""
        values: list[Array] = [np.empty(0) for _ in self.names]
        held: list[list[tuple[int, Cells]]] = [[] for _ in self.names]  # where something is not a number
        start = 0
        for chunk in chunks:
            stop = start + len(chunk[0].values)
            for j, cells in enumerate(chunk):
                values[j] = values[j] if start else np.empty(0, cells.values.dtype)
                if stop > len(values[j]):  # in place, with room for what may come
                    values[j].resize(stop + stop // 8, refcheck=False)
                values[j][start:stop] = cells.values
                infinite = np.flatnonzero(np.isinf(cells.values))
                values[j][start + infinite] = np.nan
                if cells.texts is not None or len(cells.wrong) or len(infinite):
                    held[j].append((start, cells if len(cells.wrong) else cells._replace(wrong=infinite)))
            if (start := stop) >= n_rows:
                break
        for name, found, parts in zip(self.names, values, held, strict=True):
            found.resize(start, refcheck=False)
            yield self._column(name, found, parts), parts

    def _column(self, name: str, values: Array, parts: list[tuple[int, Cells]]) -> Column:
        column = Column(name, values, (), sum(len(cells.wrong) for _, cells in parts), self.kinds[name])
        bad: list[tuple[str, str]] = []
        for start, cells in [] if column.is_text else parts:
            wrong = cells.wrong[: KEPT_BAD - len(bad)].tolist()
            texts = cells.texts if cells.texts is None or not wrong else texts_of(cells.texts)
            words = [str(cells.values[i] if texts is None else texts[i]) for i in wrong]
            bad += zip(self.where([start + i for i in wrong]), words, strict=True)
        first = int(np.argmax(~np.isnan(values))) if len(values) else 0
        return column._replace(bad=tuple(bad), bad_above=all(np.all(at + c.wrong < first) for at, c in parts))


def one_line(text: str) -> str:
    """A name or a cell for a message, which neither steers a terminal nor begins a line of its own."""
    return STEERING.sub("", " ".join(text.splitlines()))


def texts_of(cells: Any) -> list[str]:
    """The cells of an Arrow dictionary array; empty where missing."""
    words = [word.strip() if word else "" for word in cells.dictionary.to_pylist()]
    return ["" if i is None else words[i] for i in cells.indices.to_pylist()]


def _indicator(cells: Cells, value: str, kind: str) -> Array:
    """1 where a cell is this value, however it is written, 0 where it is another, NaN where it is missing."""
    equal = np.isin(cells.values, np.nan if kind == "text" else number_of(value))
    if cells.texts is not None:
        equal |= np.array(texts_of(cells.texts)) == value
    missing = np.isnan(cells.values)
    missing[cells.wrong] = False
    return np.where(missing, np.nan, equal)


def number_of(word: str) -> float:
    """What a word such as 2007, true or 2026-11-17 stands for in a column; NaN for other words."""
    try:
        return TRUTH[word.casefold()] if word.casefold() in TRUTH else float(word)
    except ValueError:
        return np.nan if (day := day_number(word)) is None else day


def gone_numbers(words: Iterable[str], kind: str = "number") -> list[float]:
    """The numbers, or dates, among words for a missing value."""
    numbers = {word: number_of(word.replace(",", ".")) for word in words if word.casefold() not in TRUTH}
    return [x for word, x in numbers.items() if x == x and (kind == "date") == bool(DATE.fullmatch(word))]


def day_number(cell: str) -> float | None:
    """Days since 1970 of a date."""
    try:
        when = datetime.fromisoformat(cell if DATE.fullmatch(cell) else "")
    except ValueError:
        return None
    return (when.replace(tzinfo=when.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)


def complaint(source: str, column: Column) -> str:
    """The message about cells that are not numbers: they never become text or missing silently."""
    words = list(dict.fromkeys(word for _, word in column.bad))
    leave = f"without={[column.name]!r} to leave the column out"
    stand = "that stands for a missing value" if len(words) == 1 else "these stand for missing values"
    few = len(words) <= 3 and column.n_bad == len(column.bad) and TRUTH.keys().isdisjoint(map(str.casefold, words))
    way_out = f"add missing={words!r} if {stand}, or {leave}" if few else f"correct them, or add {leave}"
    if sign := next((sign for sign in ",." if all(re.fullmatch(rf"[+-]?\d*[{sign}]\d+", word) for word in words)), ""):
        parts = all(re.fullmatch(rf"[+-]?[1-9]\d{{0,2}}[{sign}]\d{{3}}", word) for word in words)
        option, what = ("thousands", "separates thousands") if parts else ("decimal", "is the sign before decimals")
        way_out = f"add {option}={sign!r} if that {what}, or {way_out}"
    those, hold = ("that row", "it holds") if column.n_bad == 1 else ("these rows", "they hold")
    if column.n_bad == 1 and column.bad[0][0] == "line 1":
        way_out = f"add header=True if that is the name of the column, or {way_out}"
    elif column.bad_above and column.n_bad <= _FEW_ABOVE:
        way_out = f"delete {those} if {hold} units or second names, or {way_out}"
    if {*words} == {column.name}:
        way_out = f"delete {those}, where the names of the columns are repeated, or add {leave}"
    elif all(re.fullmatch("[ :]*[-=_]{2,}[ :]*", word) for word in words):
        way_out = f"delete {those}, as a line of a Markdown table is no row, or add {leave}"
    named = [f"{place}: {word!r}" for place, word in column.bad[:_NAMED_CELLS]]
    named += [f"and {column.n_bad - len(named)} more"] if column.n_bad > len(named) else []
    numbers = f"{column.n_numbers} cells of column {column.name!r} are numbers, but {column.n_bad}"
    return f"{source}: {numbers} {'is' if column.n_bad == 1 else 'are'} not: {'; '.join(named)}; {way_out}"


def no_header(names: Sequence[str], n_comments: int = 0) -> str:
    """A note on the names of columns that have none, and on lines above them that were taken for comments."""
    named = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    if n_comments:
        passed = f"lines with # above the data ({n_comments}) are comments"
        return f"{passed}, so columns are called {named}; delete the # of one that is a row or has their names"
    return f"the first line looks like data, so columns are called {named}; add header=True if it has their names"


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names that differ, and a note for each one that had to change; a column without a name is x and its number."""
    given, notes, most = set(names), [], 5
    unique: dict[str, None] = {}  # in their order
    numbers: dict[str, Iterator[int]] = {}
    for j, name in enumerate(names):
        base = new = name or f"x{j + 1}"
        while new in unique or (new != name and new in given):
            new = f"{base}_{next(numbers.setdefault(base, count(2)))}"
        if new != name:
            again = f"there is more than one column {name!r}: number {j + 1}"
            notes.append(f"{again if name else f'column {j + 1} has no name: it'} is {new!r} here")
        unique[new] = None
    return list(unique), notes[:most] + [f"{len(notes) - most} more columns were renamed"] * (len(notes) > most)
