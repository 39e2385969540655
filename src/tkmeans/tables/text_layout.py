"""The layout of a text file, mostly guessed: encoding, delimiter, records and header."""

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import numpy as np

from tkmeans.tables.file_content import WATCH, Content
from tkmeans.tables.numerals import SPACES, Numerals, unit_of
from tkmeans.tables.table import DATE, TRUTH, Reading, TableError

# The longer marks first: UTF-32's begins like UTF-16's.
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"}
_MARKS |= {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

# Delimiters, in this order where several divide a file equally well. A blank stands for any run of blanks.
NAMED = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars", " ": "blanks"}

_NOTATIONS = (Numerals(), Numerals(",", "." + SPACES), Numerals(".", "," + SPACES), Numerals(","))
_LOOKED_AT, _CELLS = 100, 4000  # records, and cells, that the delimiter is guessed from
_AGREEING = 0.9  # of them have the same number of cells under the right delimiter
_LIKE_NUMBER, _NUMBER = re.compile("[+-]?[.,]?[0-9]"), re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?")
# Probabilities of a first row below which it is none, and may be none; more numbers have no equal steps by accident.
_CLEAR, _DOUBTFUL, _MANY = 1e-3, 1e-2, 4
_LIKE_ASCII = ("utf-8", "cp1252", "latin-1")
_TITLES = 20  # records among which names may stand below titles
_BLOCK = 1 << 20  # bytes that are looked at at once


class Survey(NamedTuple):
    """What is known of a text file after one look at all of its bytes."""

    encoding: str
    mark: bytes  # the byte-order mark
    is_guess: bool  # whether the encoding is a guess by what the bytes look like
    quotes: str  # quotation marks: "", "closed", or "loose" if text may stand behind some that enclose line breaks
    head: str  # the text of the first block
    is_all: bool  # whether that is all there is

    def parted(self) -> tuple[str, str, str | None]:
        """Comments and Excel's "sep=;" before the table, the table, and the delimiter if that line gives it."""
        start, delimiter = 0, None
        for line in io.StringIO(self.head, newline=""):
            is_given = line.casefold().startswith("sep=") and len(line.rstrip("\r\n")) == 5
            if not is_given and line.strip() and not line.startswith("#"):
                break
            delimiter = line[4] if is_given else delimiter
            start += len(line)
        return self.head[:start], self.head[start:], delimiter

    def names_above(self, width: int, delimiter: str, numerals: Numerals) -> "Record | None":
        """The header that begins with # directly above rows of this width: words, and not one number; None without."""
        raw = (lines := ["", *io.StringIO(self.parted()[0], newline="")])[-1]
        for text in (raw.removeprefix("# "), raw) if raw.startswith("#") else ():
            cells = next((record.cells for record in records(text, delimiter)), [])
            kinds = {numerals.kind_of([cell.lstrip("#")]) for cell in cells}
            if len(cells) == width and "text" in kinds <= {"", "text"}:
                return Record(cells, raw, len(lines) - 1)
        return None


def survey(content: Content, encoding: str | None) -> Survey:
    """Look at all bytes: the encoding must fit the last of them, too."""
    head, size, source = content.read(_BLOCK + 1), _BLOCK, content.source
    while size < len(head) < 1 << 26 and head.count(b"\n") < 3:  # its lines are long
        size *= 4
        head = content.read(size + 1)
    mark, marked = next(((mark, name) for mark, name in _MARKS.items() if head.startswith(mark)), (b"", None))
    wanted = codecs.lookup(encoding).name.removesuffix("-sig") if encoding else marked
    if wanted in ("utf-16", "utf-32"):  # in either order of bytes
        wanted = next((n for n in (marked, *_plausible(head)) if str(n).startswith(wanted)), f"{wanted}-le")
    for name in (wanted,) if wanted else _plausible(head):
        quotes, misfit = _scan(content, name)
        if misfit is None:
            break
        if wanted:
            raise TableError(f"{source} is not {wanted}: byte {misfit} does not fit; add encoding='...'")
    else:
        known = "text nor Parquet, Feather, JSON, a workbook or NPY"
        raise TableError(f"{source} is not a table that tkmeans can read: it is neither {known}")
    is_all = len(head) <= size
    text = codecs.getincrementaldecoder(name)().decode(head.removeprefix(mark), final=is_all)
    return Survey(name, mark, not wanted and name != "utf-8", quotes, text, is_all)


def _scan(content: Content, encoding: str) -> tuple[str, int | None]:
    """What quotation marks are, and the place of the first byte that does not fit; None if all do."""
    decoder, n_quotes, n_breaks, n_behind, done = codecs.getincrementaldecoder(encoding)(), 0, 0, 0, 0
    with content.open() as file:
        while block := file.read(_BLOCK):
            if b'"' in block:  # looking for one is quicker
                marks = (signs := np.frombuffer(block, np.uint8)) == ord('"')
                within = np.cumsum(np.append(np.uint8(n_quotes % 2), marks), dtype=np.uint8)[1:] % 2 == 1
                n_breaks += int(np.any(within & np.isin(signs, [*b"\r\n"])))
                n_behind += int(not np.all(np.isin(signs[1:][(marks & ~within)[:-1]], [*b'\r\n\t,;|"'])))
                n_quotes += int(np.count_nonzero(marks))
            waiting = len(decoder.getstate()[0])
            if waiting or encoding not in _LIKE_ASCII or not block.isascii():
                try:
                    decoder.decode(block)
                except UnicodeError as fault:
                    return "", done - waiting + getattr(fault, "start", 0)
            done += len(block)
            WATCH.get()(min(done, content.size), 2 * content.size)  # which is less if it is packed
    quotes = "loose" if n_quotes % 2 or (n_breaks and n_behind) or encoding not in _LIKE_ASCII else "closed"
    return quotes if n_quotes else "", done if decoder.getstate()[0] else None


def _plausible(data: bytes) -> tuple[str, ...]:
    if b"\0" not in data:  # Windows-1252 is Latin-1 with more letters; the few bytes it lacks are Latin-1's
        return _LIKE_ASCII
    # Text that is mostly ASCII has a zero in every other byte in UTF-16, and in three of four in UTF-32.
    zeros = [data[i::4].count(0) / len(data) for i in range(4)]
    high, low, order = max((zeros[1::2], zeros[::2], "le"), (zeros[::2], zeros[1::2], "be"))
    return (f"utf-{16 if max(low) <= 0.005 else 32}-{order}",) if sum(high) >= 0.2 and min(low) <= 0.005 else ()


class Record(NamedTuple):
    """One row of the file, cut up and as it stands there."""

    cells: list[str]
    raw: str  # with its line ending; several lines if there are line breaks within quotes
    line: int  # where it begins, from 1


def records(text: Any, delimiter: str, source: str = "", number: int = 1, single: bool = False) -> Iterator[Record]:
    """Cut a text, or its lines, of which the first has this number, into records; empty lines are passed over."""
    pending: list[str] = []

    def lines() -> Iterator[str]:
        # \n, \r\n and \r alike, and kept
        for line in io.StringIO(text, newline="") if isinstance(text, str) else text:
            pending.append(line)
            yield " ".join(line.split()) if delimiter == " " else line

    try:
        for cells in csv.reader(lines(), delimiter=delimiter, skipinitialspace=True):
            raw = "".join(pending)
            # As for Arrow, a line of blanks alone counts in a `single` column, or if they are delimiters.
            blanks = delimiter != " " and bool(raw.strip("\r\n")) and (single or delimiter in raw)
            if cells and (raw.strip() or blanks):
                yield Record(cells, raw, number)
            number += len(pending)
            pending.clear()
    except csv.Error as fault:
        way_out = "the cell is too long, or a quotation mark that is opened there is never closed"
        raise TableError(f"{source}, line {number}: {fault}; {way_out}") from None


def guess_delimiter(text: str, decimal: str | None, source: str = "") -> str:
    """The delimiter under which records have equally many cells that no other divides, and most of them are values."""
    fits, found, allowed = {}, {}, 0.0  # how well the header fits, the cells, and how many may be cut by another
    for delimiter in NAMED:
        try:
            sample = [record.cells for record in islice(records(text, delimiter), _LOOKED_AT)]
        except TableError:
            continue
        if delimiter == decimal and not any(delimiter in cell for row in sample for cell in row):
            continue  # no quotation marks keep the two apart
        (width, count), *_ = Counter(len(cells) for cells in sample[1:] or sample).most_common(1)
        if width < 2 or count < _AGREEING * len(sample[1:] or sample):
            continue
        is_trailing = not any(row[-1].strip() for row in sample[1:])  # else R has no name for its row names
        fits[delimiter] = {width: 2, width - 1: 1 + is_trailing}.get(len(sample[0]), 0)
        allowed = (1 - _AGREEING) * len(sample)
        found[delimiter] = [cell for row in sample[1:] or sample for cell in row[: 1 + _CELLS // len(sample)]]
    scores, notations = {}, [each for each in _NOTATIONS if decimal in (None, each.decimal)]
    for delimiter, cells in found.items():
        texts = [cell for cell in cells if not _is_value(cell, notations)]
        others = "".join({*found} - {delimiter, " "})  # which divide lines as well; before a blank, they are text's
        n_cut = sum(map(bool, map(re.compile(rf"[{others}](?!\s)").search, texts))) if others else 0
        scores[delimiter] = fits[delimiter], n_cut <= allowed, 1 - len(texts) / len(cells)
    best = max(scores, key=lambda delimiter: scores[delimiter], default=";" if decimal == "," else ",")
    if best == "," and scores.get(" ", ())[:2] == (fits.get(","), True) and any("," in cell for cell in found[" "]):
        raise TableError(f"{source}: commas may stand before decimals; add delimiter=',' or delimiter=' ' to choose")
    return best


def _is_value(cell: str, notations: Iterable[Numerals]) -> bool:
    """Whether a cell is a number, a date or a boolean; a sign behind a number is no part of it."""
    text = cell.replace(unit_of(cell), "", 1).strip()
    is_number = text[-1:] not in {*NAMED} and any(each.number(text) is not None for each in notations)
    return is_number or bool(DATE.fullmatch(text)) or text.casefold() in TRUTH


def has_header(sample: Sequence[list[str]], numerals: Numerals, reading: Reading, source: str) -> tuple[bool, str]:
    """Whether the first record holds names: words above numbers, not one number, or numbers, of which a note tells."""
    if reading.header is None:
        _check_title(sample, numerals, source)
    words = _above_numbers(sample, numerals)
    if any(words) or (not words and all(numerals.number(cell) is None or not cell.strip() for cell in sample[0])):
        return True, ""
    note = _numbered(sample, reading, source) if reading.header is None else ""
    return bool(note), note


def _above_numbers(sample: Sequence[list[str]], numerals: Numerals) -> list[bool]:
    """Whether cells of the first record are words, for those above numbers."""
    words = []
    for j, cell in enumerate(sample[0]):
        kind = numerals.kind_of(row[j] for row in sample[1:] if j < len(row))
        if kind not in ("", "text") and not numerals.is_missing(cell):
            words.append(bool(numerals.values([cell], kind)[1]))
    return words


def _check_title(sample: Sequence[list[str]], numerals: Numerals, source: str) -> None:
    """Complain about a first record that is mostly empty if one below it has a word above each column of numbers."""
    width, filled = len(sample[0]), [sum(map(bool, map(str.strip, row))) for row in sample[:_TITLES]]
    numerals = Numerals(numerals.decimal, numerals.thousands)  # whatever words for a missing value there are
    for i in range(1, len(filled)) if 2 * filled[0] <= width else ():
        if filled[i] == len(sample[i]) == width and {*_above_numbers(sample[i:], numerals)} == {True}:
            found = f"its first line fills {filled[0]} of {width} cells, and a later one begins with"
            way_out = "delete the lines above the names of the columns, or add header=True if the first line has them"
            raise TableError(f"{source}: {found} {sample[i][0]!r}, {sample[i][1]!r}; {way_out}")


def _numbered(sample: Sequence[list[str]], reading: Reading, source: str) -> str:
    """A note if the first record holds numbers as names: years, or 0, 1, 2; complain where only a person can know."""
    first = [cell.strip() for cell in sample[0]]
    at = [j for j, cell in enumerate(first) if _LIKE_NUMBER.match(cell)]
    shown = " to ".join(dict.fromkeys(first[j] for j in at[:1] + at[-1:]))
    note = f"the first line ({shown}) is read as the names of the columns; add header=False if it is data"
    if known := {name for name in reading.names if _LIKE_NUMBER.match(name)}:  # to a model
        return note if known <= {*first} else ""
    series, is_index = _series(first, at), bool(at) and not first[0] and first[at[0]] == "0"  # as pandas writes it
    if reading.names or not series or not (is_index or len(at) > 1 or (series == "years" and len(first) > 1)):
        return ""
    # How often a row like those below would look so: by how often they have its numbers, or nothing where it has none.
    columns = zip(first, zip_longest(*sample[1:], fillvalue=""), strict=False)
    times = [[*map(str.strip, cells)].count(cell) for cell, cells in columns if not cell or _LIKE_NUMBER.match(cell)]
    chance = math.prod((1 + n) / (1 + len(sample)) for n in times)
    alike = {_series(row, at, np.sort) for row in sample[1:]} if len(at) > 1 or not is_index else ()
    if chance > _DOUBTFUL or series in alike:
        return ""
    is_clear = is_index or len(at) > 2 or (series == "years" and len(at) > 1)
    if is_clear and chance < _CLEAR and 2 * times.count(0) >= len(times):
        return note
    raise TableError(f"{source}: its first line ({shown}) may be names or data; add header=True or header=False")


def _series(row: Sequence[str], at: Sequence[int], order: Any = np.array) -> str:
    """Whether the cells at these places are "years" in order, "numbers" that count, or many in equal steps; or not."""
    cells = [row[j].strip().replace(",", ".") for j in at if j < len(row)]
    if len(cells) < len(at) or not cells or not all(map(_NUMBER.fullmatch, cells)):
        return ""
    numbers = order([*map(float, cells)])
    steps = np.diff(numbers)
    if np.all((numbers % 1 == 0) & (numbers >= 1800) & (numbers <= 2100)) and abs(np.sum(np.sign(steps))) == len(steps):
        return "years"
    is_even = bool(np.allclose(steps, steps[:1], rtol=1e-6, atol=0)) and not np.any(steps == 0)
    return "numbers" * (is_even and (len(at) > _MANY or bool(np.all(steps == 1))))
