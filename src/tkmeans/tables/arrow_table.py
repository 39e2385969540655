"""Tables that Arrow holds or reads: Parquet, Feather, datasets, JSON, workbooks and databases."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any, BinaryIO, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.file_content import Content, NoRows, imported, numpy_of, pyarrow
from tkmeans.tables.numerals import Numerals, guess_numerals
from tkmeans.tables.table import CHUNK, Added, Cells, Reading, Table, TableError, gone_numbers, no_header, unique_names
from tkmeans.tables.text_layout import has_header

Batches = Callable[[list[str], int], Iterable[Any]]  # record batches of these columns, about so many rows at a time


@final
class ArrowTable(Table):
    """Columns with types; where the format has none for cells, text is read as in a text file."""

    def __init__(
        self, source: str, schema: Any, batches: Batches, format: str, n_rows: Any = None, stamp: Any = tuple
    ) -> None:
        if not schema.names or len(set(schema.names)) < len(schema.names):
            raise TableError(f"{source} has {'two columns of one name' if schema.names else 'no columns'}; rename one")
        super().__init__(source, schema.names, [_kind(field.type) for field in schema])
        self.format, self.known_rows, self.stamp, self._schema, self._batches = format, n_rows, stamp, schema, batches
        self.singles = {field.name for field in schema if str(field.type) in ("float", "halffloat")}
        self.numerals = Numerals()

    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """The columns in order."""
        n_found = 0
        with naming(self.source):
            for batch in self._batches(list(names), n_rows):
                yield [self._cells(name, batch.column(name)) for name in names]
                n_found += batch.num_rows
        self.known_rows = n_found

    def _cells(self, name: str, array: Any) -> Cells:
        arrow, kind = pyarrow(), self.kinds[name]
        if name in self.notations:
            return self.numerals.cells(array.dictionary_encode(), self.notations[name])
        if kind == "text":
            texts = _as_text(array)
            words, indices = texts.dictionary.to_pylist() if self.missing else (), numpy_of(texts.indices)
            gone = np.isin(indices, [i for i, word in enumerate(words) if word in self.missing])
            return Cells(np.full(len(array), np.nan), np.flatnonzero(~gone & ~np.isnan(indices)), texts)
        if kind == "date":
            micros = array.cast(arrow.timestamp("us"), safe=False).cast(arrow.int64())
            return Cells(self.known(numpy_of(micros.cast(arrow.float64(), safe=False)) / 86_400_000_000, kind))
        values = numpy_of(array if arrow.types.is_floating(array.type) else array.cast(arrow.float64(), safe=False))
        values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
        return Cells(self.known(values) if kind == "number" else values)

    def cells(self, name: str, as_they_are: bool = False) -> list[str]:
        """A column as text; empty where missing."""
        with naming(self.source):  # dates may be beyond Python's
            gone, cells = [*self.missing, *gone_numbers(self.missing)], self.stored(name).to_pylist()
        lost = (cell != cell or (type(cell) is not bool and cell in gone) for cell in cells)
        return ["" if nothing else _word(cell) for nothing, cell in zip(lost, cells, strict=True)]

    def stored(self, name: str) -> Any:
        """A column with its type."""
        return pyarrow().Table.from_batches(self._batches([name], CHUNK)).column(name)

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows with all their columns, in the format they came in."""
        arrow = pyarrow()
        table = arrow.Table.from_batches(self._batches(self._schema.names, CHUNK), self._schema)
        for name, column in added.items():
            table = table.append_column(name, arrow.array(column.values, mask=~column.known))
        table = table if len(rows) == table.num_rows else table.take(arrow.array(rows))
        if self.format == "parquet":
            try:
                pyarrow(module="pyarrow.parquet").write_table(table, file)
            except arrow.ArrowException as fault:
                raise TableError(f"{self.source} cannot be written as Parquet, try .csv: {fault}") from None
        else:
            with arrow.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table.unify_dictionaries())


def _kind(stored: Any) -> str:
    """What a column of this type holds."""
    types = pyarrow().types
    tests = {"boolean": (types.is_boolean,), "date": (types.is_timestamp, types.is_date)}
    tests["number"] = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return next((kind for kind, each in tests.items() if any(test(stored) for test in each)), "text")


def _as_text(array: Any) -> Any:
    """Any column as a dictionary of texts."""
    arrow = pyarrow()
    if arrow.types.is_dictionary(array.type):
        return arrow.DictionaryArray.from_arrays(array.indices, _as_text(array.dictionary).dictionary_decode())
    if not (arrow.types.is_string(array.type) or arrow.types.is_large_string(array.type)):
        array = arrow.array([None if cell is None else _word(cell) for cell in array.to_pylist()], arrow.string())
    return array.dictionary_encode()


@contextmanager
def naming(source: str, *others: type[Exception]) -> Iterator[None]:
    """What Arrow, or another reader, complains of, with the name of the file and in one sentence."""
    try:
        yield
    except (pyarrow().ArrowException, OSError, OverflowError, UnicodeError, *others) as fault:
        raise TableError(f"{source} cannot be read: {str(fault).splitlines()[0]}") from fault


def read_parquet(content: Content) -> ArrowTable:
    """A Parquet file, decoded a few pages at a time."""
    arrow, parquet = (pyarrow("to read Parquet files", module) for module in ("pyarrow", "pyarrow.parquet"))

    def opened() -> Any:
        # A buffer per column instead of all columns of a row group, which may be large.
        file = arrow.BufferReader(content.read()) if content.path is None or content.packing else content.native()[0]
        return parquet.ParquetFile(file, buffer_size=1 << 14, pre_buffer=False)

    def batches(names: list[str], n_rows: int) -> Iterator[Any]:
        with opened() as file:
            yield from file.iter_batches(n_rows, columns=names, use_threads=False)

    with naming(content.source), opened() as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    return ArrowTable(content.source, schema, batches, "parquet", n_rows, content.stamp)


def read_feather(content: Content) -> ArrowTable:
    """An Arrow file, also known as Feather; its batches are as the writer made them."""
    arrow = pyarrow("to read Feather files")
    is_stream = content.read(4) == b"\xff\xff\xff\xff"
    if content.path is None or content.packing or is_stream:
        with naming(content.source):
            found = (arrow.ipc.open_stream if is_stream else arrow.ipc.open_file)(content.read()).read_all()
            found.validate(full=True)  # Arrow reads offsets as they come: a damaged file would crash the process
            return held_table(content.source, found, format="feather")

    def batches(names: list[str], n_rows: int) -> Iterator[Any]:
        fields = [schema.get_field_index(name) for name in names]
        with content.native()[0] as file:
            reader = arrow.ipc.open_file(file, options=arrow.ipc.IpcReadOptions(included_fields=sorted(set(fields))))
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                batch.validate(full=True)
                yield from arrow.Table.from_batches([batch]).to_batches(n_rows)

    with naming(content.source), content.native()[0] as file:
        schema = arrow.ipc.open_file(file).schema
        return ArrowTable(content.source, schema, batches, "feather", stamp=content.stamp)


def held_table(source: str, table: Any, *, format: str = "other") -> ArrowTable:
    """A table that Arrow holds in memory."""
    if table.num_rows == 0 or table.num_columns == 0:
        raise NoRows(f"{source} is empty: it has {table.num_rows} rows and {table.num_columns} columns")
    return ArrowTable(source, table.schema, lambda names, n: table.select(names).to_batches(n), format, table.num_rows)


def read_json(content: Content, reading: Reading) -> ArrowTable:
    """JSON: an object a line, an array of objects or of rows, or an object of columns."""
    source = content.source
    try:
        text = content.read().decode(reading.encoding or json.detect_encoding(content.read(4)))
        try:
            rows = json.loads(text)
        except json.JSONDecodeError as fault:
            if fault.msg != "Extra data":
                raise
            rows = [_from_line(line) for line in re.finditer(r"[^\r\n]*\S[^\r\n]*", text)]
    except (ValueError, RecursionError) as fault:
        raise TableError(f"{source} is not JSON throughout: {fault}; correct it, or save the table as CSV") from None
    names: list[str] = []
    lists = [x for x in rows.values() if isinstance(x, (list, dict))] if isinstance(rows, dict) else []
    if len(lists) == 1 and isinstance(lists[0], list) and all(isinstance(row, dict) for row in lists[0]):
        rows = lists[0] or rows  # of {"data": [{...}, ...], "total": 2}
    if isinstance(rows, dict) and all(isinstance(values, list) for values in rows.values()):
        names = list(rows)
        rows = [*zip(*rows.values(), strict=True)] if len({*map(len, rows.values())}) == 1 else None
    if isinstance(rows, dict) and not any(isinstance(value, (dict, list)) for value in rows.values()):
        rows = [rows]
    if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = [[row.get(name) for name in names] for row in rows]
    shapes = {len(row) if isinstance(row, (list, tuple)) else None for row in rows or ()}
    if len(shapes) != 1 or None in shapes:
        wanted = "is an array of objects or of rows, one object or row for each line, or an object of columns"
        raise TableError(f"{source} is JSON but no table; wanted {wanted}, as pandas' to_json(orient='records') writes")
    return _typed_cells(source, names, rows, reading) if names else _titled(source, rows, reading)[0]


def _from_line(line: re.Match[str]) -> Any:
    """The value in a line of JSON lines; a fault is that of the whole text, and so of its line there."""
    try:
        return json.loads(line[0])
    except json.JSONDecodeError as fault:
        raise json.JSONDecodeError(fault.msg, line.string, line.start() + fault.pos) from None


def read_workbook(content: Content, reading: Reading) -> ArrowTable:
    """A sheet of a workbook of Excel or LibreOffice."""
    source = content.source
    calamine = imported("python_calamine", f"{source}: workbooks need python-calamine: pip install 'tkmeans[io]'")
    try:
        data = content.read()
        notes = _check_sheets(source, data) if data.startswith(b"PK") else []
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = book.sheet_names
        if reading.table is not None and reading.table not in sheets:
            raise TableError(f"{source} has no sheet {reading.table!r}; it has {', '.join(map(repr, sheets))}")
        for name in [reading.table] if reading.table is not None else sheets:
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            if any(cell != "" for row in rows for cell in row):
                break
        else:
            raise TableError(f"{source} is empty: it has no filled sheet")
    except TableError:
        raise
    except Exception as fault:
        raise TableError(f"{source} is a damaged workbook or a zip archive such as .npz ({fault}); unpack it") from None
    places = [i + 1 for i, row in enumerate(rows) if any(cell != "" for cell in row)]
    used = [j for j in range(len(rows[0])) if any(row[j] != "" for row in rows)]
    for row in rows:  # nothing is None, and a whole number, of which a workbook knows no type, an int
        wholes = (type(cell) is float and cell.is_integer() and abs(cell) <= 2**53 for cell in row)
        row[:] = [None if cell == "" else int(cell) if whole else cell for cell, whole in zip(row, wholes, strict=True)]
    of = f" (of {', '.join(map(repr, sheets))}; add table='...' for another)" if len(sheets) > 1 else ""
    table, header = _titled(f"{source}: sheet {name!r}{of}", [[rows[i - 1][j] for j in used] for i in places], reading)
    table.source, table.row_places = source, places[header:]
    table.notes += notes
    if len(sheets) > 1 and reading.table is None:
        table.notes.insert(0, f"sheet {name!r} of {len(sheets)} was read; add table='...' for another")
    return table


def _check_sheets(source: str, data: bytes) -> list[str]:
    """Refuse a workbook with a few cells so far apart that what is between them has no room; notes on its cells."""
    errors, n_waiting = list[str](), 0
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for name in packed.namelist():
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", name):
                text = packed.read(name)
                errors += map(bytes.decode, re.findall(rb't="e"[^>]*>(?:<f[^<]*(?:</f>)?)?<v>([^<]*)', text))
                formulas = re.findall(rb"<c ([^>]*)><f(?:[^>]*/>|[^<]*</f>)(?:<v ?/>|<v></v>)?</c>", text)
                n_waiting += sum(b't="str"' not in about for about in formulas)  # else the result is empty text
                columns, rows = (re.findall(what, text) for what in (rb' r="([A-Z]+)[0-9]', rb'<row [^>]*?r="([0-9]+)'))
                last = max(set(columns), key=lambda letters: (len(letters), letters), default=b"A")
                n_columns = sum(26**i * (sign - 64) for i, sign in enumerate(reversed(last)))
                if (n_rows := max(map(int, rows), default=0)) * n_columns > 1e8 + 100 * len(columns):
                    apart = f"{len(columns)} cells are strewn over {n_rows} rows and {n_columns} columns"
                    raise TableError(f"{source}: in {name} {apart}; delete those far from the table")
    notes = [f"errors in cells, such as {errors[0]}, are read as missing values"] if errors else []
    if n_waiting:
        waiting = f"{n_waiting} cells hold formulas that no program has calculated, and are read as missing values"
        notes.append(f"{waiting}; open the workbook in a spreadsheet program and save it")
    return notes


def read_duckdb(content: Content, reading: Reading) -> ArrowTable:
    """A table of a DuckDB database, or the answer to a query."""
    source = content.source
    if content.path is None or content.packing:
        raise TableError(f"{source} is a DuckDB database, which must be a file that is not compressed")
    duckdb = imported("duckdb", f"{source} is a DuckDB database, which needs duckdb: pip install duckdb")
    # Without external access neither a view nor a query of the database's own making reads other files.
    how = {"read_only": True, "config": {"enable_external_access": "false"}}
    with naming(source, duckdb.Error), duckdb.connect(str(content.path), **how) as base:
        base.execute("SET enable_progress_bar = false")  # it would go to standard output
        found = base.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
        tables = {".".join(t[t[0] == "main" :]): '"."'.join(part.replace('"', '""') for part in t) for t in found}
        wanted = reading.table or (next(iter(tables)) if len(tables) == 1 else None)
        if wanted is None:
            raise TableError(f"{source} holds the tables {', '.join(tables) or '(none)'}; add table='...' for one")
        asked = wanted not in tables and re.match(r"\s*(select|with|from)\s", wanted, re.IGNORECASE)
        query = wanted if asked else 'FROM "' + tables.get(wanted, wanted.replace('"', '""')) + '"'
        return held_table(source, base.sql(query).to_arrow_table())


def _titled(source: str, rows: Sequence[Sequence[Any]], reading: Reading) -> tuple[ArrowTable, bool]:
    """A table of rows, of which the first may hold the names, and whether it does."""
    sample = [[*map(_word, row)] for row in rows[:500]]
    is_named, note = has_header(sample, Numerals(), reading, source)
    header = is_named if reading.header is None else reading.header
    if not rows[header:]:
        raise NoRows(f"{source} has the names of columns but no rows")
    names = [name.strip() for name in sample[0]] if header else [f"x{j + 1}" for j in range(len(sample[0]))]
    table = _typed_cells(source, names, rows[header:], reading)
    table.notes += [note] if note else [no_header(table.names)] * (reading.header is None and not is_named)
    return table, header


def _typed_cells(source: str, names: Sequence[str], rows: Sequence[Sequence[Any]], reading: Reading) -> ArrowTable:
    """A table of Python's values; columns that hold more than one type are read like text."""
    arrow = pyarrow("to read this file")
    unique, notes = unique_names(names)
    columns = dict(zip(unique, zip(*rows, strict=True), strict=True))
    mixed = {name: cells for name, cells in columns.items() if not _has_type(cells)}
    texts = {name: [*dict.fromkeys(map(_telling, cells))] for name, cells in mixed.items()}
    numerals = guess_numerals(texts.values(), reading, source)
    columns |= {name: tuple(_word(cell, numerals.decimal) for cell in cells) for name, cells in mixed.items()}
    with naming(source):
        stored = [arrow.array(cells, from_pandas=True) for cells in columns.values()]
        table = held_table(source, arrow.Table.from_arrays(stored, names=unique))
    table.notes, table.numerals = [*notes, *[*numerals.doubts(texts, reading)][:3]], numerals
    table.notations = {name: numerals.kind_of(columns[name]) for name in mixed}
    table.kinds |= {name: kind if kind in table.KINDS else "number" for name, kind in table.notations.items()}
    return table


def _has_type(cells: Sequence[Any]) -> bool:
    """Whether Arrow has one type for the cells of a column, which loses no digit."""
    types = {type(cell) for cell in cells if cell is not None}
    exact = types <= {int, float} and all(-(2**53) <= cell <= 2**53 for cell in cells if type(cell) is int)
    return exact or any(types <= {each} for each in (bool, datetime, date))


def _telling(cell: Any) -> str:
    """What shows how a column writes numbers: text; and numbers by three digits, beside which 1.487 may be 1487."""
    if type(cell) in (int, float) and (cell % 1 == 0 or abs(cell) >= 100):
        return (f"{abs(cell):.0f}" if isinstance(cell, float) else str(abs(cell)))[:3]
    return cell if isinstance(cell, str) else ""


def _word(cell: Any, decimal: str = ".") -> str:
    """A cell as text, in the words of JSON where it is not one value, a number with this decimal sign."""
    if isinstance(cell, float):
        return str(cell).replace(".", decimal)
    return "" if cell is None else json.dumps(cell, default=str) if isinstance(cell, (bool, dict, list)) else str(cell)
