"""Tables as text: CSV, TSV and their relatives, read and written without changing what was there."""

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress, islice, pairwise, zip_longest
from typing import Any, BinaryIO, NamedTuple, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.file_content import WATCH, Content, NoRows, csv_batches, numpy_of, pyarrow
from tkmeans.tables.numerals import POINTED, SPACES, Numerals, guess_numerals
from tkmeans.tables.table import CHUNK, Added, Cells, Reading, Table, TableError, no_header, texts_of, unique_names
from tkmeans.tables.text_layout import NAMED, Record, Survey, guess_delimiter, has_header, records, survey

_BY_HAND = 10_000  # records that are in memory cell by cell at one time
_SAMPLED, _SAMPLED_CELLS = 500, 10_000  # records, and cells, that the notation is guessed from
_TELLING = 100  # cells of a block that tell what a column holds, and as many of the unusual ones
_NAMED_LINES = 3  # lines that a complaint names
_PLAIN = r"\s*-?(?:[0-9]+{0}?[0-9]*|{0}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*"  # a number as Arrow reads it


class Layout(NamedTuple):
    """How a text file is written."""

    found: Survey
    preamble: str  # comments before the table
    delimiter: str
    numerals: Numerals
    newline: str
    n_bytes_before: int  # the first row
    first_line: int  # of the first row, from 1
    header: str  # as it stands there; empty if there is none
    trailing: bool  # whether rows end with one more delimiter than the header


class _Again(Exception):
    """What was read so far stands; go on in another way."""


@final
class TextTable(Table):
    """A text file: Arrow reads its numbers, and what Arrow does not understand is read cell by cell."""

    format = "text"
    row_word = "line"

    def __init__(self, content: Content, names: list[str], layout: Layout, sample: Sequence[Sequence[str]]) -> None:
        unique, notes = unique_names(names)
        numerals, sign, found = layout.numerals, layout.delimiter, layout.found
        columns = {name: [row[j] for row in sample if j < len(row)] for j, name in enumerate(unique)}
        notations = {name: numerals.kind_of(cells) for name, cells in columns.items()}
        notes = notes if layout.header else [no_header(unique, len(re.findall("(?m)^#", layout.preamble)))]
        super().__init__(content.source, unique, notations.values(), notes)
        self.notations, self.numerals = notations, numerals
        self._content, self._layout, self.stamp = content, layout, content.stamp
        plain = re.compile(_PLAIN.format(re.escape(numerals.decimal)))
        seen = {cell for row in sample for cell in row}
        missing = {cell for cell in seen if numerals.is_missing(cell)}
        odd = {cell for cell in seen - missing if not plain.fullmatch(cell)}
        self._by_cells = {name for name, cells in columns.items() if not odd.isdisjoint(cells)}  # not Arrow's
        broken = {cell for cell in seen - missing if not cell.strip().lstrip("+-").isdecimal()}
        self.wholes = {name for name in unique if notations[name] == "number" and broken.isdisjoint(columns[name])}
        # Words for a missing value that Arrow gets; every one of them costs time for every cell.
        self._missing = {"", *numerals.given} | missing
        self._by_hand = f'{sign} "' in found.head or sign == " " or not sign.isascii() or found.quotes == "loose"
        self._single = len(unique) + layout.trailing == 1
        self.layout, self.encoding, self.sign = _unusual(layout, content.packing), found.encoding, sign

    def settle(self, reading: Reading) -> None:
        """Look at all rows for what the first leave open: empty columns, codes in whole numbers, and points."""
        sign, is_open = self._layout.delimiter, not self.numerals.sure and self.numerals.decimal == "."
        before = re.escape(f'{sign}"\r\n' + " " * (f"{sign} " in self._layout.found.head))
        doubtful = self.wholes if self.wholes and self._may_have(f"0(?<=[{before}]0)[0-9]") else set()
        if is_open and self._may_have(r"\.[0-9]{3}"):
            doubtful = {name for name, kind in self.kinds.items() if kind == "number"}
        seen: dict[str, list[str]] = {name: [] for name, kind in self.notations.items() if not kind or name in doubtful}
        for arrays in self.chunks([*seen], 0, lambda _, array: array.dictionary.to_pylist(), seen) if seen else ():
            for cells, words in zip(seen.values(), arrays, strict=True):
                cells += words[:_TELLING]
                cells += islice((word for word in words if not word.isdecimal() or word[0] == "0"), _TELLING)
                cells += islice((word for word in words if is_open and not POINTED.fullmatch(word)), _TELLING)
        if is_open and not guess_numerals([*seen.values()], reading, self.source).sure and sign != ",":
            self.notes += islice(self.numerals.doubts(seen, reading), _NAMED_LINES)
        for name, kind in ((name, self._layout.numerals.kind_of(cells)) for name, cells in seen.items()):
            if kind == "code" or not self.notations[name]:
                self.notations[name], self.kinds[name] = kind, kind if kind in self.KINDS else "number"

    def _may_have(self, pattern: str) -> bool:
        """Whether this, of at most four characters, occurs in the text, by a look at all bytes, which is quick."""
        if "0".encode(self.encoding) != b"0" or not pattern.isascii():
            return True
        sought, edge = re.compile(pattern.encode()), b""
        with self._content.open() as file:
            while (block := file.read(1 << 20)) and not sought.search(edge + block):
                edge = block[-3:]
        return bool(block)

    def chunks(
        self, names: Sequence[str], n_rows: int = CHUNK, made: Any = None, as_text: Collection[str] = ()
    ) -> Iterator[list[Any]]:
        """Cells, or what is made of them, of the columns in order; if Arrow stumbles, the rest is read cell by cell."""
        made, done = made or self._cells, 0
        while True:
            skip = done
            with suppress(_Again):
                for arrays in self._columns_by_hand(names) if self._by_hand else self._columns_by_arrow(names, as_text):
                    if skip < (n_found := len(arrays[0])):
                        yield [made(name, array[skip:]) for name, array in zip(names, arrays, strict=True)]
                        done += n_found - skip
                    skip = max(0, skip - n_found)
                self.known_rows = done
                return

    def cells(self, name: str, as_they_are: bool = False) -> list[str]:
        """A column as text; empty where missing or, if wanted as they are, only where a person calls that missing."""
        words, held = super().cells(name), [cells.texts for _, cells in self._loaded[name][1]]
        if None in held or sum(map(len, held)) < len(words):  # some are held as numbers
            words = [word for (part,) in self.chunks([name], 0, lambda _, x: texts_of(x), [name]) for word in part]
        given, is_missing = self.numerals.given, self.numerals.is_missing
        asked = {each for each in {*words} if each.strip().casefold() == "none"}  # an answer like others, if not given
        return ["" if (c.casefold() in given if as_they_are or c in asked else is_missing(c)) else c for c in words]

    def places(self, rows: Sequence[int]) -> list[int]:
        """The lines of the file, in which empty lines and line breaks within cells count."""
        wanted, held = set(rows), islice(enumerate(self._records()), max(rows, default=-1) + 1)
        lines = {i: record.line for i, record in held if i in wanted}
        return [lines[row] for row in rows]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows as they were, with the added columns behind."""
        layout, encoding = self._layout, self._layout.found.encoding
        decimal, unknown = layout.numerals.decimal, "NA" if layout.delimiter == " " else ""
        columns = [column.texts(lambda x: f"{x:.6g}".replace(".", decimal), unknown) for column in added.values()]
        file.write(layout.found.mark + layout.preamble.encode(encoding))
        file.write(self._extended(layout.header, added).encode(encoding) if layout.header else b"")
        chosen = compress(enumerate(self._records()), np.isin(np.arange(rows.max(initial=-1) + 1), rows))
        while some := list(islice(chosen, _BY_HAND)):
            lines = [self._extended(row.raw, [cells[i] for cells in columns], layout.trailing) for i, row in some]
            file.write("".join(lines).encode(encoding))

    def _columns_by_arrow(self, names: Sequence[str], as_text: Collection[str]) -> Iterator[list[Any]]:
        """Columns as Arrow reads them: numbers, or text where somebody should look at the cells."""
        arrow, csv = (pyarrow("to read text files", module) for module in ("pyarrow", "pyarrow.csv"))
        layout, text = self._layout, arrow.dictionary(arrow.int32(), arrow.string())
        texts = {name for name, kind in self.notations.items() if kind not in ("", "number", "code")}
        texts |= self._by_cells | {*as_text}
        behind = ["\0"] * layout.trailing
        types = {name: text if name in texts else arrow.float64() for name in names} | dict.fromkeys(behind, text)
        read = csv.ReadOptions(block_size=1 << 20, column_names=[*self.names, *behind])
        parse = csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=bool(layout.found.quotes))
        how = {"null_values": sorted(self._missing), "decimal_point": layout.numerals.decimal}
        convert = csv.ConvertOptions(column_types=types, include_columns=[*names, *behind], **how)
        try:
            file, raw = self._content.native()
            with raw, file:
                file.read(layout.n_bytes_before)
                for batch in csv_batches(file, layout.found.encoding, read, parse, convert):
                    WATCH.get()(self._content.size + raw.tell(), 2 * self._content.size)
                    if behind and any(map(str.strip, batch.columns[-1].dictionary.to_pylist())):
                        self._by_hand = True
                        raise _Again
                    if batch.num_rows:
                        yield batch.columns[: len(names)]
        except (arrow.ArrowInvalid, arrow.ArrowKeyError) as fault:
            culprit, word = (re.search(what, str(fault)) for what in (r"column #(\d+)", r"invalid value '(.*)'"))
            if culprit and word and word[1] not in self._missing and layout.numerals.is_missing(word[1]):
                self._missing.add(word[1])
            elif culprit and self.names[int(culprit[1])] not in self._by_cells:
                self._by_cells.add(self.names[int(culprit[1])])
            else:
                self._by_hand = True
            raise _Again from None

    def _cells(self, name: str, array: Any) -> Cells:
        """Cells from Arrow: numbers as they are, text by its meaning."""
        if not hasattr(array, "dictionary"):
            values = numpy_of(array)
            if np.any(np.isinf(values)):
                self._by_cells.add(name)
                raise _Again
            return Cells(self.known(values))
        kind = self.notations[name]
        cells = self._layout.numerals.cells(array, kind)
        plain = kind in ("", "number") and not len(cells.wrong) and name not in self._by_cells
        return cells._replace(texts=None) if plain and len(array.dictionary) else cells

    def _columns_by_hand(self, names: Sequence[str]) -> Iterator[list[Any]]:
        arrow = pyarrow("to read text files")
        at = {name: j for j, name in enumerate(self.names)}
        places, rows = [at[name] for name in names], self._checked_records()
        while chunk := list(islice(rows, _BY_HAND)):
            yield [arrow.array([row.cells[j] for row in chunk], arrow.string()).dictionary_encode() for j in places]

    def _checked_records(self) -> Iterator[Record]:
        """The rows; those of another length, and a quotation mark that stays open, are complained of."""
        layout, last, wrong, n_wrong = self._layout, None, [], 0
        stray = re.compile(rf'"[^"\r\n]*[\r\n][^"]*"(?![ \t]*(?:["\r\n{re.escape(layout.delimiter)}]|\Z))')
        for record in self._records():
            if len(record.cells) != len(self.names) + layout.trailing or (layout.trailing and record.cells[-1].strip()):
                wrong += [record] if n_wrong < _NAMED_LINES else []
                n_wrong += 1
            elif not n_wrong:
                yield record
            last = record
            if stray.search(record.raw):
                why = "a quotation mark is opened there, and text stands behind the one that closes it lines below"
                raise TableError(f"{self.source}, line {record.line}: {why}; delete or double them")
        if last is not None and last.raw.count('"') % 2 and len(last.raw.splitlines()) > 1:
            raise TableError(f"{self.source}, line {last.line}: a quotation mark is opened there and never closed")
        if n_wrong:
            named = "; ".join(f"line {record.line} has {len(record.cells)}" for record in wrong)
            rest = f"; and {n_wrong - _NAMED_LINES} more lines" if n_wrong > _NAMED_LINES else ""
            sign = NAMED.get(layout.delimiter, repr(layout.delimiter))
            first = layout.first_line - _n_lines(layout.header)
            found = f"line {first} has {len(self.names)} cells divided by {sign}, but {named}{rest}"
            is_title = 2 * n_wrong >= record.line and all(len(each.cells) > len(self.names) for each in wrong)
            is_note = all(re.match(r"[^\w\s\"'+.-]", each.raw) and len(each.cells) == 1 for each in wrong)
            way_out = "give every column a name, delete lines such as a title above these names, " * is_title
            way_out += "delete lines that are no rows, such as comments and totals, " * is_note
            way_out += "put quotation marks around cells that contain the delimiter, or add delimiter='...'"
            raise TableError(f"{self.source}: {found}; {way_out}")

    def _records(self) -> Iterator[Record]:
        file, layout = self._content.open(), self._layout
        file.read(layout.n_bytes_before)
        file = file if isinstance(file, io.BytesIO) else io.BufferedReader(file, 1 << 18)
        with io.TextIOWrapper(file, encoding=layout.found.encoding, newline="") as text:
            yield from records(text, layout.delimiter, self.source, layout.first_line, self._single)

    def _extended(self, raw: str, cells: Iterable[str], trailing: bool = False) -> str:
        body, sign = raw.rstrip("\r\n"), self._layout.delimiter
        kept = body[: body.rindex(sign)] if trailing else body
        quoted = ('"' + cell.replace('"', '""') + '"' if sign in cell or '"' in cell else cell for cell in cells)
        return sign.join([kept, *quoted]) + (raw[len(body) :] or self._layout.newline)


def _n_lines(text: str) -> int:
    return sum(1 for _ in io.StringIO(text, newline=""))


def read_text(content: Content, reading: Reading) -> TextTable:
    """Find out how a text file is written; ask the user where the file leaves it open."""
    found, source = survey(content, reading.encoding), content.source
    preamble, text, given = found.parted()
    if not text.strip():
        raise NoRows(f"{source} is empty{' but for lines with #' * bool(preamble.strip())}")
    delimiter = reading.delimiter or given or guess_delimiter(text, reading.decimal, source)
    reading = reading._replace(delimiter=delimiter)
    newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text else "\r" if "\r" in text else "\n"
    head = list(islice(records(text, delimiter, source, 1 + _n_lines(preamble)), _SAMPLED + 1))
    head = head if found.is_all or len(head) > _SAMPLED else head[:-1]  # which may be cut off
    if not head:
        raise TableError(f"{source}: its first line is longer than a table's; add delimiter='...'")
    head = head[: max(20, _SAMPLED_CELLS // max(1, len(head[-1].cells)))]
    sample = [record.cells for record in head]
    numerals = guess_numerals([*zip_longest(*(sample[1:] or sample), fillvalue="")], reading, source)
    is_named, note = has_header(sample, numerals, reading, source)
    above = None if is_named and not note else found.names_above(len(sample[0]), delimiter, numerals)
    if above is not None and reading.header is not False:
        preamble, text = preamble.removesuffix(above.raw), above.raw + text
        head, sample, is_named, note = [above, *head], [above.cells, *sample], True, ""
    with_names = is_named if reading.header is None else reading.header
    names, trailing = _column_names(head, with_names, reading, numerals, source)
    header = head[0].raw if with_names else ""
    first = head[0].line + _n_lines(header)
    n_bytes = len(found.mark + "".join(islice(io.StringIO(found.head, newline=""), first - 1)).encode(found.encoding))
    layout = Layout(found, preamble, delimiter, numerals, newline, n_bytes, first, header, trailing)
    table = TextTable(content, names, layout, sample[with_names:])
    table.notes += [note] if note else []
    table.settle(reading)
    return table


def _column_names(
    head: list[Record], header: bool, reading: Reading, numbers: Numerals, source: str
) -> tuple[list[str], bool]:
    """Names of the columns, empty without a header, and whether records end with one more delimiter than it."""
    if not (below := [len(record.cells) for record in head[header:]]):
        raise NoRows(f"{source} has the names of columns but no rows; add header=False if its only line is data")
    names, trailing = [name.strip() for name in head[0].cells] if header else [""] * below[0], False
    if len(names) == 1 and reading.delimiter == "," and all(width == 2 for width in below):
        found = f"line {head[0].line} has one name, but there are two cells in the lines below"
        way_out = f"delete line {head[0].line} if it is a title, or add decimal=',' if these are decimal commas"
        raise TableError(f"{source}: {found}; {way_out}")
    if header and all(width == len(names) + 1 for width in below):
        trailing = 2 * sum(not record.cells[-1].strip() for record in head[1:]) > len(below)
        is_of_r = not trailing and _are_row_names(head[1:], numbers)
        if is_of_r and reading.decimal is None and reading.delimiter == "," and (cut := _cut_number(head[1:])):
            found = f"lines have one cell more than there are names, and {cut!r} may be one number"
            way_out = "put quotation marks around numbers with decimal commas, or divide cells by semicolons"
            raise TableError(f"{source}: {found}; {way_out}; add decimal='.' if lines begin with names of rows")
        names = ["", *names] if is_of_r else names
    return names, trailing


def _cut_number(rows: list[Record]) -> str:
    """The first of numbers that commas between cells may have cut in two in every row, as in p1,29,7; or nothing."""
    columns = [*zip(*(row.cells for row in rows), strict=True)]
    pairs = ([*map(",".join, zip(*both, strict=True))] for both in pairwise(columns))
    cut = re.compile(r"\s*[+-]?(?:0|[1-9][0-9]*),[0-9]+\s*")
    return next((cells[0].strip() for cells in pairs if all(map(cut.fullmatch, cells))), "")


def _are_row_names(rows: list[Record], numerals: Numerals) -> bool:
    """Whether first cells are names of rows: text, the only numbers in quotation marks, or numbers that count up."""
    cells = [row.cells[0].strip() for row in rows]
    quoted = all(row.raw.startswith('"') and row.raw.count('"') < 2 * len(row.cells) for row in rows)
    if not quoted and numerals.kind_of(cells) == "number" and cells[0].isdecimal() and (cells[1:] or cells[0] in "01"):
        return cells == [str(int(cells[0][:15]) + i) for i in range(len(cells))]
    return quoted or numerals.kind_of(cells) in ("text", "code", "date")


def _unusual(layout: Layout, packing: str) -> str:
    """What a reader of CSV would not have expected."""
    group, guess = layout.numerals.thousands[:1], " (a guess: encoding='...' for another)" * layout.found.is_guess
    unusual = [] if layout.delimiter == "," else [NAMED.get(layout.delimiter, repr(layout.delimiter))]
    unusual += ["decimal commas"] if layout.numerals.decimal == "," else []
    unusual += ["digits in groups of three" + f" ({group!r})" * (group not in SPACES)] if group else []
    unusual += [f"encoding {layout.found.encoding}{guess}"] if layout.found.encoding != "utf-8" else []
    found = [f"with {', '.join(unusual)}"] * bool(unusual) + [f"compressed by {packing}"] * bool(packing)
    return f"read as text {', '.join(found)}" if found else ""
