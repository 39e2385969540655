"""Tables as text: CSV, TSV and their relatives, read and written without changing what was there."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import BinaryIO, NamedTuple, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.numerals import Numerals, guess_numerals
from tkmeans.tables.table import KEPT_BAD, Added, BadCell, Column, Reading, Table, TableError, unique_names
from tkmeans.tables.text_layout import NAMED, cells_of, decode, guess_delimiter, has_header, records, split_preamble

_CHUNK = 10_000  # records that are in memory cell by cell at one time
_SAMPLED = 500  # records from the beginning, and as many from all over the file, that the notation is guessed from
_NAMED_LINES = 3  # lines that a complaint names


class Layout(NamedTuple):
    """How a text file is written."""

    encoding: str
    mark: bytes  # the byte-order mark
    preamble: str  # comments before the table
    delimiter: str
    numerals: Numerals
    newline: str


class Lines(NamedTuple):
    """The records of a file as they stand there."""

    raw: list[str]
    line: Array  # (n,) where each begins, from 1
    width: Array  # (n,) cells of each
    sample: list[list[str]]  # the cells of some, the first among them


@final
class TextTable(Table):
    """A text file: its lines as they are, and the numbers in them."""

    format = "text"

    def __init__(self, source: str, lines: Lines, layout: Layout, header: bool) -> None:
        n_header = int(header)
        names, self._trailing = _column_names(lines, header, layout.delimiter, source)
        names, notes = unique_names(names)
        if not header:
            named = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
            called = f"columns are called {named}; add --header if it has their names"
            notes = [f"the first line looks like data, so {called}"]
        super().__init__(source, names, len(lines.raw) - n_header, notes)
        self.layout = layout
        self._header, self._raw, self._line = lines.raw[:n_header], lines.raw[n_header:], lines.line[n_header:]
        self._columns = {column.name: column for column in self._numbers()}

    def column(self, name: str) -> Column:
        """The numbers of a column."""
        return self._columns[name]

    def cells(self, name: str) -> list[str]:
        """A column as text; empty where missing."""
        j = self.names.index(name)
        found = (cells[j].strip() for cells in cells_of(self._raw, self.layout.delimiter))
        return ["" if self.layout.numerals.is_missing(cell) else cell for cell in found]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows as they were, with the added columns behind."""
        encoding, unknown = self.layout.encoding, "NA" if self.layout.delimiter == " " else ""
        columns = [column.texts(self.layout.numerals.write, unknown) for column in added.values()]
        file.write(self.layout.mark + self.layout.preamble.encode(encoding))
        for raw in self._header:
            file.write(self._extended(raw, added).encode(encoding))
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            lines = (self._extended(self._raw[i], [cells[i] for cells in columns], self._trailing) for i in part)
            file.write("".join(lines).encode(encoding))

    def _numbers(self) -> Iterator[Column]:
        values: list[list[Array]] = [[] for _ in self.names]
        bad: list[list[BadCell]] = [[] for _ in self.names]
        n_bad = [0] * len(self.names)
        rows, start = cells_of(self._raw, self.layout.delimiter), 0
        while chunk := list(islice(rows, _CHUNK)):
            for j, cells in enumerate(islice(zip(*chunk, strict=True), len(self.names))):
                numbers, wrong = self.layout.numerals.numbers(cells)
                values[j].append(numbers)
                n_bad[j] += len(wrong)
                bad[j] += (
                    BadCell(start + i + 1, int(self._line[start + i]), cells[i].strip())
                    for i in wrong[: KEPT_BAD - len(bad[j])]
                )
            start += len(chunk)
        for j, name in enumerate(self.names):
            yield Column(name, np.concatenate(values[j]), tuple(bad[j]), n_bad[j])

    def _extended(self, raw: str, cells: Iterable[str], trailing: bool = False) -> str:
        body = raw.rstrip("\r\n")
        newline = raw[len(body) :] or self.layout.newline
        if trailing:
            body = body.rstrip().removesuffix(self.layout.delimiter)
        special = (self.layout.delimiter, '"')
        quoted = ('"' + cell.replace('"', '""') + '"' if any(s in cell for s in special) else cell for cell in cells)
        return self.layout.delimiter.join([body, *quoted]) + newline


def read_text(data: bytes, reading: Reading, source: str) -> TextTable:
    """Read a text file; what it does not say clearly, the user is asked for."""
    text, encoding, mark, guessed = decode(data, reading.encoding, source)
    preamble, text, said = split_preamble(text)
    if not text.strip():
        raise TableError(f"{source} is empty")
    delimiter = reading.delimiter or said or guess_delimiter(text, reading.decimal)
    newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text else "\r" if "\r" in text else "\n"
    lines = _read_lines(text, delimiter, preamble.count(newline), source)
    below = lines.sample[1:] or lines.sample
    numerals = guess_numerals([cell for row in below for cell in row], reading, source)
    header = has_header(lines.sample, numerals) if reading.header is None else reading.header
    layout = Layout(encoding, mark, preamble, delimiter, numerals, newline)
    table = TextTable(source, lines, layout, header)
    if unusual := _unusual(layout, guessed=guessed):
        table.notes.insert(0, f"read as text with {unusual}")
    return table


def _read_lines(text: str, delimiter: str, n_before: int, source: str) -> Lines:
    """Cut the text into records once, to check them; the cells of all at one time might not fit into memory."""
    raw: list[str] = []
    line, width, sample = [], [], []
    every = max(1, text.count("\n") // _SAMPLED)
    try:
        for record in records(text, delimiter, 1 + n_before):
            if len(raw) < _SAMPLED or len(raw) % every == 0:
                sample.append(record.cells)
            raw.append(record.raw)
            line.append(record.line)
            width.append(len(record.cells))
    except TableError as fault:
        raise TableError(f"{source}, {fault}") from None
    if raw[-1].count('"') % 2 and len(raw[-1].splitlines()) > 1:
        raise TableError(f"{source}, line {line[-1]}: a quotation mark is opened there and never closed")
    return Lines(raw, np.array(line), np.array(width), sample)


def _column_names(lines: Lines, header: bool, delimiter: str, source: str) -> tuple[list[str], bool]:
    """Names of the columns, empty without a header, and whether records end with one more delimiter than it."""
    below = lines.width[1:] if header else lines.width
    if len(below) == 0:
        raise TableError(f"{source} has the names of columns but no rows; add --no-header if its only line is data")
    names, trailing = [name.strip() for name in lines.sample[0]] if header else [""] * int(below[0]), False
    if len(names) == 1 and delimiter == "," and np.all(below == 2):
        raise TableError(
            f"{source}: line {lines.line[0]} has one name, but there are two cells in the lines below; "
            "add --decimal , if these are decimal commas"
        )
    if header and np.all(below == len(names) + 1):
        trailing = all(not row[-1].strip() for row in lines.sample[1:])
        if not trailing:  # the habit of R: row names, and no name for them
            names = ["", *names]
    wrong = np.flatnonzero(below != len(names) + trailing) + int(header)
    if len(wrong):
        named = "; ".join(f"line {lines.line[i]} has {lines.width[i]}" for i in wrong[:_NAMED_LINES])
        rest = f"; and {len(wrong) - _NAMED_LINES} more lines" if len(wrong) > _NAMED_LINES else ""
        divided = f"divided by {NAMED.get(delimiter, repr(delimiter))}"
        raise TableError(
            f"{source}: line {lines.line[0]} has {len(names)} cells {divided}, "
            f"but {named}{rest}; put quotation marks around cells that contain the delimiter, or add --delimiter"
        )
    return names, trailing


def _unusual(layout: Layout, *, guessed: bool) -> str:
    """What a reader of CSV would not have expected."""
    said = [] if layout.delimiter == "," else [NAMED.get(layout.delimiter, repr(layout.delimiter))]
    if layout.numerals.decimal == ",":
        said.append("decimal commas")
    if layout.numerals.thousands:
        said.append(f"digits in groups of three ({layout.numerals.thousands[0]!r})")
    if layout.encoding != "utf-8":
        said.append(f"encoding {layout.encoding}" + (" (a guess: --encoding for another)" if guessed else ""))
    return ", ".join(said)
