"""Files that hold tables, recognised by their first bytes when read, by their names when written."""

import csv
import io
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from lzma import LZMAError
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables import arrow_table
from tkmeans.tables.file_content import Content, NoRows, content_of, pyarrow
from tkmeans.tables.numerals import PLAIN, Numerals
from tkmeans.tables.roles import listed
from tkmeans.tables.table import CHUNK, WORDS, Added, Cells, Reading, Table, TableError, WrongUse
from tkmeans.tables.text_table import TextTable, read_text

# What other files begin with, and what to do about them; what files are written as; and which of a folder are read.
_STRANGERS = {begin.encode("latin-1"): meaning for begin, meaning in WORDS["strangers"].items()}
_FORMATS = {suffix: form for form, suffixes in WORDS["formats"].items() for suffix in suffixes}
NOT_WRITTEN, _IN_FOLDERS, _ALONE_IN_FOLDERS = WORDS["not written"], WORDS["in folders"], WORDS["alone in folders"]


@final
class MatrixTable(Table):
    """A matrix on disk, or held. Read, not mapped: mapped pages count as memory in use."""

    format = "npy"
    is_matrix = True

    def __init__(self, content: Content, offset: int, shape: Sequence[int], stored: Any, held: Any) -> None:
        names = [f"x{j + 1}" for j in range(shape[1])]
        super().__init__(content.source, names, ["number"] * shape[1])
        self._content, self._offset, self._stored, self._held = content, offset, stored, held
        self.known_rows, self._row_bytes, self.stamp = shape[0], stored.itemsize * shape[1], content.stamp
        self.singles = set(names) if stored.kind == "f" and stored.itemsize <= 4 else set()

    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """The columns, cut."""
        for X in self.batches(names, n_rows):
            yield [Cells(column) for column in X.T]

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[Array]:
        """The rows in order."""
        with self._content.open() as file:
            for start in range(0, self.n_rows, n_rows):
                yield self._read(file, start, min(n_rows, self.n_rows - start), names)

    def rows(self, names: Sequence[str], picked: Array, n_rows: int) -> Array:
        """Rows by their numbers, one by one."""
        with self._content.open() as file:
            parts = [self._read(file, int(row), 1, names) for row in picked]
        return np.concatenate([np.empty((0, len(names)), self.dtype(names)), *parts])

    def cells(self, name: str, as_they_are: bool = False) -> list[str]:
        """A column as text; of whole numbers all digits."""
        if self._stored.kind not in "iu":
            return super().cells(name)
        with self._content.open() as file:
            return [str(n) for n in self._read(file, 0, self.n_rows, [name], self._stored).ravel().tolist()]

    def _read(self, file: Any, start: int, n_rows: int, names: Sequence[str], kind: Any = None) -> Array:
        if self._held is None:
            file.seek(self._offset + start * self._row_bytes)
            if len(values := np.fromfile(file, self._stored, n_rows * len(self.names))) < n_rows * len(self.names):
                raise ValueError(f"{self.source} has become shorter while it was read")
        else:
            values = self._held[start : start + n_rows]
        X = values.reshape(n_rows, -1).astype(kind or self.dtype(names), copy=False)
        X = X if kind else self.known(X)
        return X if list(names) == self.names else X[:, [int(name[1:]) - 1 for name in names]]


def read_npy(content: Content) -> Table:
    """Read an array; nothing in it is unpickled."""
    source = content.source
    if content.packing:
        data = content.read()
        content = Content(source, None, data, "", len(data))
    with content.open() as file:
        try:
            read_header = {(1, 0): np.lib.format.read_array_header_1_0}
            read_header |= dict.fromkeys([(2, 0), (3, 0)], np.lib.format.read_array_header_2_0)
            shape, by_columns, stored = read_header[np.lib.format.read_magic(file)](file)
        except Exception as fault:  # of Python's tokenizer, too
            raise TableError(f"{source} is not a whole .npy file: {fault}") from None
        offset = file.tell()
    of = [stored] if stored.names is None else [stored[name] for name in stored.names]
    numbers = all(each.kind in ("fiub" if stored.names is None else "fiubUSMm") and not each.shape for each in of)
    if len(shape) != 2 - (stored.names is not None) or min(shape) < 0 or not numbers:
        raise TableError(f"{source} holds {stored} of shape {shape}; a matrix of numbers is needed")
    if not all(shape):
        raise TableError(f"{source} is empty: its array has the shape {shape}")
    if missing := max(0, offset + math.prod(shape) * stored.itemsize - content.size):
        raise TableError(f"{source} is cut short: {missing} bytes of its {shape[0]} rows are missing")
    if stored.names is None and not by_columns and content.path is not None:
        return MatrixTable(content, offset, shape, stored, None)
    array = np.load(io.BytesIO(content.data)) if content.path is None else np.load(content.path, mmap_mode="r")
    if stored.names is None:
        return MatrixTable(content, offset, shape, stored, array)
    fields = {name: np.ascontiguousarray(array[name], stored[name].newbyteorder("=")) for name in stored.names}
    return arrow_table.held_table(source, pyarrow("to read arrays with named fields").table(fields))


def read_table(path: Any, reading: Reading | None = None) -> Table:
    """Open a table: a file of any format that is known by its content, a folder, "-" for standard input, a dataset."""
    reading = (reading or Reading()).checked()
    table = _opened(path, reading)
    table.missing = reading.missing
    return table


def _opened(path: Any, reading: Reading) -> Table:
    if type(path).__module__ == "pyarrow._dataset":
        read = partial(path.to_batches, batch_readahead=2, fragment_readahead=1)  # what waits should be bounded
        return arrow_table.ArrowTable("the dataset", path.schema, lambda ns, n: read(columns=ns, batch_size=n), "other")
    if os.fspath(path) != "-" and os.path.isdir(path):
        return _folder(path, reading)
    content = content_of(path)
    try:
        return _read(content, reading)
    except (OSError, EOFError, LZMAError) as fault:
        if not content.packing:
            raise
        raise TableError(f"{content.source} cannot be unpacked: it is damaged ({fault})") from None


def _folder(path: Any, reading: Reading) -> Table:
    """The tables below a folder, one after the other; what is passed over is named, if it is not hidden."""
    below = [file.relative_to(path) for file in sorted(Path(path).rglob("*")) if not file.is_dir()]
    below = [name for name in below if not re.search(r"(^|[/\\])\.", str(name))]
    kinds = ([name for name in below if name.suffix.lower() in each] for each in (_IN_FOLDERS, _ALONE_IN_FOLDERS))
    named = next(filter(None, kinds), [])
    files = [name for name in named if not re.search(r"(^|[/\\])_", str(name)) and not Path(path, name).is_fifo()]
    tables, empty, usual = dict[Path, Table](), [], reading._replace(usual=",")
    for name in files:
        try:
            tables[name] = read_table(Path(path, name), usual)
            usual = usual._replace(names=usual.names or tuple(tables[name].names))
        except NoRows:
            empty.append(str(name))
    if not tables:
        wanted = f"of the kinds {', '.join(_IN_FOLDERS + _ALONE_IN_FOLDERS)}"
        wanted = f"with rows; there are none in {listed(empty)}" if empty else wanted
        raise FileNotFoundError(f"folder {str(path)!r} holds no file {wanted}")
    signs = {name: table.numerals for name, table in tables.items() if isinstance(table, TextTable)}
    if {each.decimal for each in signs.values() if each.sure} != {","}:  # which would hold for the others, too
        again = [name for name, each in signs.items() if not each.sure and each.decimal == ","]
        tables |= {name: read_table(Path(path, name), usual._replace(usual=".")) for name in again}
    table = Concatenated(os.fspath(path), [*tables.values()])
    others = [str(name) for name in below if name not in files and (name in named or name.name[0] != "_")]
    keys = sorted({part.partition("=")[0] for name in files for part in name.parts[:-1] if "=" in part})
    aside = {"not those of tables": others, "those of files without rows": empty, "parts of those of folders": keys}
    table.notes += [f"not read, as their names are {why}: {listed(names)}" for why, names in aside.items() if names]
    return table


def _read(content: Content, reading: Reading) -> Table:
    """The table in a file, by its first bytes."""
    head = content.read(64)
    readers: dict[Any, Any] = {b"\x93NUMPY": read_npy, b"PAR1": arrow_table.read_parquet}
    readers |= dict.fromkeys([b"ARROW1", b"\xff\xff\xff\xff"], arrow_table.read_feather)
    readers |= dict.fromkeys([b"PK\x03\x04", b"\xd0\xcf\x11\xe0"], partial(arrow_table.read_workbook, reading=reading))
    readers[head[:8] + b"DUCK"] = partial(arrow_table.read_duckdb, reading=reading)
    if reading.table is not None and not head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0", head[:8] + b"DUCK")):
        raise WrongUse(f"{content.source} is no workbook and no database; leave table={reading.table!r} out")
    if read := next((read for magic, read in readers.items() if head.startswith(magic)), None):
        return read(content)
    if strange := next((meaning for magic, meaning in _STRANGERS.items() if head.startswith(magic)), None):
        raise TableError(f"{content.source} is {strange}")
    if _FORMATS.get(suffix := Path(content.source).suffix.casefold(), "text") != "text":
        raise TableError(f"{content.source} does not begin like a {suffix} file; it is damaged or misnamed")
    begin = content.read(1 << 16).replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")  # which may be UTF-16
    if re.match(rb"<[!?]|<\w[^<>]*>(\s*[\r\n]\s*)?<", begin):  # columns may be called <DATE> and <OPEN>
        raise TableError(f"{content.source} is a web page or other markup; download the table itself")
    is_json = re.match(rb'\{\s*["}]|\[\s*[\[{\]]|[\[{]\s*$|\[[^\r\n]*\]\s*([\r\n]\s*\[|$)', begin)
    if is_json or (suffix in (".json", ".jsonl", ".ndjson") and begin.startswith((b"[", b"{"))):
        return arrow_table.read_json(content, reading)
    return read_text(content, reading)


@final
class Concatenated(Table):
    """Files one after the other, with the columns of the first."""

    def __init__(self, source: str, tables: list[Table]) -> None:
        first = tables[0]
        known = [{name: table.notations.get(name, kind) for name, kind in table.kinds.items()} for table in tables]
        notations = [next((each[name] for each in known if each.get(name)), "") for name in first.names]
        for j, name in enumerate(first.names):  # whole numbers of one file may be codes, with zeros only in others
            held = {table.notations.get(name) for table in tables if name not in table.wholes}
            notations[j] = "code" if "code" in held <= {"code", ""} else notations[j]
        super().__init__(source, first.names, notations, first.notes)
        self.notations = dict(zip(first.names, notations, strict=True))
        more = [f"{name!r} of {table.source}" for table in tables for name in table.names if name not in first.kinds]
        self.notes += [f"columns that {first.source} does not have are not read: {listed(more)}"] if more else []
        self.layout, self.tables, self.is_matrix, self.numerals = first.layout, tables, first.is_matrix, first.numerals
        self.singles = set.intersection(*(table.singles for table in tables))
        self.wholes = set.intersection(*(table.wholes for table in tables))
        self.stamp = lambda: tuple(table.stamp() for table in tables)
        counts = [table.known_rows for table in tables]
        self.known_rows = None if None in counts else sum(count or 0 for count in counts)

    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """The columns of all files in order."""
        for table in self.tables:
            if table.is_matrix and len(table.names) != len(self.names):
                raise TableError(f"{table.source} has {len(table.names)} columns, and others {len(self.names)}")
            if lost := [name for name in names if name not in table.kinds]:
                having = listed([each.source for each in self.tables if lost[0] in each.kinds])
                found_there = f"its columns are {listed(table.names)}; {lost[0]!r} is in {having}"
                raise TableError(f"{table.source} has no column {lost[0]!r}; {found_there}")
            found = {name: {table.notations.get(name, table.kinds[name]), self.notations[name]} for name in names}
            strange = {name for name, both in found.items() if len(both - {""}) > 1 and both - {*PLAIN}}
            for chunk in table.chunks(names, n_rows):
                yield [_misfit(c) if name in strange else c for name, c in zip(names, chunk, strict=True)]
        self.known_rows = sum(table.known_rows or 0 for table in self.tables)

    def where(self, rows: Sequence[int]) -> list[str]:
        """The files of rows, and their places there."""
        found, start = dict[int, str](), 0
        for table in self.tables:
            stop = np.inf if table.known_rows is None else start + table.known_rows  # all before it are read
            own = [row for row in rows if start <= row < stop]
            within = table.where([row - start for row in own]) if own else ()
            found |= zip(own, (f"{table.source}, {place}" for place in within), strict=True)
            start = int(min(stop, 2**62))
        return [found[row] for row in rows]

    def cells(self, name: str, as_they_are: bool = False) -> list[str]:
        """A column as text, as it stands in the files; empty where missing."""
        return [cell for table in self.tables for cell in table.cells(name, as_they_are)]


def _misfit(cells: Cells) -> Cells:
    """Cells of another unit or kind than those of other files: not one of them is a number of the column."""
    words = [None if x != x else repr(x).removesuffix(".0") for x in cells.values.tolist()]
    texts = pyarrow().array(words, "string").dictionary_encode() if cells.texts is None else cells.texts
    return Cells(np.full(len(words), np.nan), np.union1d(cells.wrong, np.flatnonzero(~np.isnan(cells.values))), texts)


def write_table(
    table: Table, file: BinaryIO, added: Mapping[str, Added], *, rows: Array | None = None, like: str | Path = ""
) -> None:
    """Write these rows, or all, with added columns, in the format of files called `like`, else in that of the table."""
    if clash := [name for name in added if name in table.names]:
        raise TableError(f"{table.source} already has a column {clash[0]!r}")
    rows = np.arange(table.n_rows) if rows is None else rows
    wanted, tabs = _FORMATS.get(suffix := Path(like).suffix.casefold(), table.format), suffix in (".tsv", ".tab")
    wanted = "other" if tabs and isinstance(table, TextTable) and table.sign != "\t" else wanted
    if wanted == table.format and isinstance(table, (TextTable, arrow_table.ArrowTable)) and wanted != "other":
        table.write(file, added, rows)
    elif wanted in ("text", "other"):
        columns = [_with_points(table, name) for name in table.names]
        columns += [column.texts("{:.6g}".format, "") for column in added.values()]
        text = io.StringIO(newline="")
        lines = csv.writer(text, delimiter="\t" if tabs else ",", lineterminator="\n")
        lines.writerow([*table.names, *added])
        lines.writerows([column[i] for column in columns] for i in rows)
        file.write(text.getvalue().encode())
    elif wanted == "npy":
        fields = {name: _plain(table, name) for name in table.names}
        fields |= {name: column.values for name, column in added.items()}
        types = [(name, values.dtype) for name, values in fields.items()]
        np.save(file, np.rec.fromarrays([values[rows] for values in fields.values()], types), allow_pickle=False)
    else:
        arrow = pyarrow("to write Parquet and Feather files")
        arrays = {name: _typed(table, name, arrow) for name in table.names}
        arrow_table.held_table(table.source, arrow.table(arrays), format=wanted).write(file, added, rows)


def _with_points(table: Table, name: str) -> list[str]:
    """The cells of a column as text, its numbers with a decimal point, whatever sign and units their files have."""
    cells, unit = table.cells(name, (column := table.column(name)).is_text), table.notation(name)[4:]
    if column.kind != "number" or name not in table.notations:
        return cells
    both = zip(cells, column.values.tolist(), Numerals().values(cells, unit)[0].tolist(), strict=True)
    return [cell if x != x or x == plain else f"{x!r} {unit}".replace(".0 ", " ").rstrip() for cell, x, plain in both]


def check_format(path: str | os.PathLike[str]) -> None:
    """Complain about a file name that asks for a format which cannot be written, or not here."""
    if (suffix := Path(path).suffix.casefold()) in NOT_WRITTEN:
        raise TableError(f"tkmeans writes .csv, .tsv, .txt, .parquet, .feather and .npy, not {suffix} as in {path}")
    if _FORMATS.get(suffix) in ("parquet", "feather"):
        pyarrow("to write Parquet and Feather files")


def _plain(table: Table, name: str, nothing: str | None = "") -> Array:
    """A column as an array: its numbers if that is all it has, else its text."""
    column = table.column(name)
    as_text = column.n_bad or column.kind in ("date", "code", "text")
    is_long = not as_text and bool(np.any(np.abs(column.values) >= 2.0**53))  # so that digits would be lost
    cells = table.cells(name, column.is_text) if as_text or is_long else []
    cells = [cell.removesuffix(".0") for cell in cells] if is_long else cells
    if is_long and all(re.fullmatch("[+-]?[0-9]*", cell) for cell in cells):
        fits = all(abs(int(cell or 0)) < 2**63 for cell in cells)
        return np.array([int(cell) if cell and fits else cell or nothing for cell in cells])
    is_whole = name in table.wholes and np.array_equal(column.values, np.round(column.values), equal_nan=True)
    if is_whole and not as_text and (nothing is None or column.n_numbers == len(column.values)):
        return np.array([None if x != x else int(x) for x in column.values.tolist()])
    return np.array([cell or nothing for cell in cells]) if as_text else column.values


def _typed(table: Table, name: str, arrow: Any) -> Any:
    """A column as Arrow holds it, with the type it has."""
    if isinstance(table, arrow_table.ArrowTable) and name not in table.notations:
        return table.stored(name)
    if isinstance(table, Concatenated) and all(isinstance(part, arrow_table.ArrowTable) for part in table.tables):
        with suppress(arrow.ArrowException):  # no type fits all files
            parts = [arrow.table({name: _typed(part, name, arrow)}) for part in table.tables]
            if len({arrow.types.is_floating(part.schema[0].type) for part in parts}) == 1:  # else digits may be lost
                return arrow.concat_tables(parts, promote_options="permissive").column(name)
    return arrow.array(_plain(table, name, None), from_pandas=True)
