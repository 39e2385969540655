"""Tables that Arrow holds or reads: Parquet, Feather, datasets, JSON, workbooks and databases."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.file_content import Content, numpy_of, pyarrow
from tkmeans.tables.numerals import Numerals, guess_numerals
from tkmeans.tables.table import CHUNK, Added, Cells, Reading, Table, TableError, cells_of, unique_names
from tkmeans.tables.text_layout import has_header

Batches = Callable[[list[str], int], Iterator[Any]]  # record batches of these columns, about so many rows at a time

_DAY = 86_400_000_000  # microseconds


@final
class ArrowTable(Table):
    """Columns with types; where the format has none for cells, text is read as in a text file."""

    def __init__(
        self, source: str, schema: Any, batches: Batches, *, format: str = "other", n_rows: Any = None
    ) -> None:
        names, notes = unique_names(schema.names)
        super().__init__(source, names, notes)
        self.format, self.known_rows = format, n_rows
        self._schema, self._batches, self._stored = schema, batches, dict(zip(names, schema.names, strict=True))
        self._repeated = len(set(schema.names)) < len(names)
        self._numerals: Numerals | None = None  # of formats whose cells have types but columns have not
        self._kinds: dict[str, str] = {}
        self._stamp: Callable[[], tuple[Any, ...]] = tuple
        self.first_place = 1

    def read_text(self, numerals: Numerals, columns: Mapping[str, Sequence[str]]) -> None:
        """Read the cells of these columns, which hold more than numbers, as if they came from a text file."""
        self._numerals = numerals
        self._kinds = {name: numerals.kind_of(cells) for name, cells in columns.items()}

    def stamp(self) -> tuple[Any, ...]:
        """That of the file, if there is one."""
        return self._stamp()

    def places(self, rows: Sequence[int]) -> list[int]:
        """The rows of a sheet, or of the table."""
        return [row + self.first_place for row in rows]

    def kind(self, name: str) -> str:
        """What the type of a column says."""
        types, kind = pyarrow().types, self._schema.field(self.names.index(name)).type
        if name in self._kinds:
            return self._kinds[name] if self._kinds[name] in ("boolean", "date", "code", "text") else "number"
        if types.is_boolean(kind):
            return "boolean"
        if types.is_timestamp(kind) or types.is_date(kind):
            return "date"
        numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
        return "number" if any(test(kind) for test in numbers) else "text"

    def dtype(self, names: Sequence[str]) -> Any:
        """Single precision if all columns are."""
        arrow = pyarrow()
        kinds = [self._schema.field(self.names.index(name)).type for name in names]
        return np.dtype("f4" if kinds and all(k in (arrow.float32(), arrow.float16()) for k in kinds) else "f8")

    def chunks(self, names: Sequence[str], n_rows: int = CHUNK) -> Iterator[list[Cells]]:
        """The columns in order."""
        stored = None if self._repeated else [self._stored[name] for name in names]
        places = [self.names.index(name) for name in names]
        n_found = 0
        with naming(self.source):
            for batch in self._batches(stored or self._schema.names, n_rows):
                arrays = [batch.column(place if stored is None else stored[j]) for j, place in enumerate(places)]
                n_found += batch.num_rows
                yield [self._cells(name, array) for name, array in zip(names, arrays, strict=True)]
        self.known_rows = n_found

    def _cells(self, name: str, array: Any) -> Cells:
        arrow, kind = pyarrow(), self.kind(name)
        types = arrow.types
        if name in self._kinds and self._numerals is not None:
            array = array if hasattr(array, "dictionary") else array.dictionary_encode()
            distinct = array.dictionary.to_pylist()
            found, wrong = self._numerals.values(distinct, self._kinds[name])
            indices = numpy_of(array.indices.fill_null(-1))
            return Cells(np.append(found, np.nan)[indices], np.flatnonzero(np.isin(indices, wrong)), array)
        if kind == "text":
            return Cells(
                np.full(len(array), np.nan),
                np.flatnonzero(numpy_of(array.is_valid().cast(arrow.uint8()))),
                _as_text(array),
            )
        if kind == "date":
            known = numpy_of(array.is_valid().cast(arrow.uint8()))
            micros = array.cast(arrow.timestamp("us"), safe=False).cast(arrow.int64()).fill_null(0)
            return Cells(np.where(known, numpy_of(micros) / _DAY, np.nan))
        if types.is_null(array.type):
            return Cells(np.full(len(array), np.nan))
        if kind == "boolean" or types.is_decimal(array.type):
            array = array.cast(arrow.uint8()) if kind == "boolean" else array
            array = array.cast(arrow.float64())
        return cells_of(numpy_of(array))

    def cells(self, name: str) -> list[str]:
        """A column as text; empty where missing."""
        place = None if self._repeated else [self._stored[name]]
        batches = self._batches(place or self._schema.names, CHUNK)
        found = (batch.column(0 if place else self.names.index(name)).to_pylist() for batch in batches)
        return ["" if cell is None or cell != cell else str(cell) for part in found for cell in part]

    def write(self, file: BinaryIO, added: Mapping[str, Added], rows: Array) -> None:
        """Write these rows with all their columns, in the format they came in."""
        arrow = pyarrow()
        table = arrow.Table.from_batches(self._batches(self._schema.names, CHUNK), self._schema)
        for name, column in added.items():
            table = table.append_column(name, arrow.array(column.values, mask=~column.known))
        table = table if len(rows) == table.num_rows else table.take(arrow.array(rows))
        if self.format == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, file)
        else:
            with arrow.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)


def _as_text(array: Any) -> Any:
    """Any column as a dictionary of texts."""
    arrow = pyarrow()
    if arrow.types.is_dictionary(array.type):
        words = [None if word is None else str(word) for word in array.dictionary.to_pylist()]
        return arrow.DictionaryArray.from_arrays(array.indices, arrow.array(words, arrow.string()))
    if not (arrow.types.is_string(array.type) or arrow.types.is_large_string(array.type)):
        array = arrow.array([None if cell is None else str(cell) for cell in array.to_pylist()], arrow.string())
    return array.dictionary_encode()


@contextmanager
def naming(source: str) -> Iterator[None]:
    """What Arrow complains of, with the name of the file and in one sentence."""
    arrow = pyarrow()
    try:
        yield
    except arrow.ArrowMemoryError:
        raise  # which is no fault of the file
    except (arrow.ArrowException, OSError) as fault:
        raise TableError(f"{source} cannot be read: {str(fault).splitlines()[0]}") from fault


# ---- files with types -------------------------------------------------------------------------


def read_parquet(content: Content) -> ArrowTable:
    """A Parquet file, decoded a few pages at a time."""
    arrow = pyarrow("to read Parquet files")
    from pyarrow import parquet

    def opened() -> Any:
        packed = content.path is None or content.packing
        # A buffer per column instead of all columns of a row group, which may be large.
        file = arrow.BufferReader(content.in_memory()) if packed else str(content.path)
        return parquet.ParquetFile(file, buffer_size=1 << 14, pre_buffer=False)

    def batches(names: list[str], n_rows: int) -> Iterator[Any]:
        with opened() as file:
            yield from file.iter_batches(n_rows, columns=names, use_threads=False)

    with naming(content.source), opened() as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    return _named(ArrowTable(content.source, schema, batches, format="parquet", n_rows=n_rows), content)


def read_feather(content: Content) -> ArrowTable:
    """An Arrow file, also known as Feather; its batches are as the writer made them."""
    arrow = pyarrow("to read Feather files")
    if content.path is None or content.packing or content.begin().startswith(b"\xff\xff\xff\xff"):
        with naming(content.source):
            data = arrow.BufferReader(content.in_memory())
            stream = content.begin().startswith(b"\xff\xff\xff\xff")
            whole = (arrow.ipc.open_stream if stream else arrow.ipc.open_file)(data).read_all()
        return held_table(content.source, whole, format="feather")

    def batches(names: list[str], n_rows: int) -> Iterator[Any]:
        fields = [schema.names.index(name) for name in names]
        with arrow.OSFile(str(content.path)) as file:
            reader = arrow.ipc.open_file(file, options=arrow.ipc.IpcReadOptions(included_fields=sorted(set(fields))))
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                for start in range(0, batch.num_rows, n_rows):
                    yield batch.slice(start, n_rows)

    with naming(content.source), arrow.OSFile(str(content.path)) as file:
        schema = arrow.ipc.open_file(file).schema
    return _named(ArrowTable(content.source, schema, batches, format="feather"), content)


def dataset_table(dataset: Any) -> ArrowTable:
    """A `pyarrow.dataset.Dataset`, filtered or not."""

    def batches(names: list[str], n_rows: int) -> Iterator[Any]:
        # Little is read ahead here: what is waiting to be computed should be bounded.
        return dataset.to_batches(columns=names, batch_size=n_rows, batch_readahead=2, fragment_readahead=1)

    return ArrowTable("the dataset", dataset.schema, batches)


def held_table(source: str, table: Any, *, format: str = "other") -> ArrowTable:
    """A table that Arrow holds in memory."""
    if table.num_rows == 0 or table.num_columns == 0:
        raise TableError(f"{source} is empty: it has {table.num_rows} rows and {table.num_columns} columns")

    def batches(names: list[str], n_rows: int) -> Iterator[Any]:
        chosen = table if names == table.column_names else table.select(names)
        return iter(chosen.to_batches(max_chunksize=n_rows))

    return ArrowTable(source, table.schema, batches, format=format, n_rows=table.num_rows)


def _named(table: ArrowTable, content: Content) -> ArrowTable:
    if not table.names:
        raise TableError(f"{content.source} is empty: it has no columns")
    table._stamp = content.stamp
    return table


# ---- files whose cells have types ---------------------------------------------------------------


def read_json(content: Content, reading: Reading) -> ArrowTable:
    """JSON: an object a line, an array of objects or of rows, or an object of columns."""
    source = content.source
    try:
        text = content.in_memory().decode(reading.encoding or "utf-8-sig")
        try:
            rows = json.loads(text)
        except json.JSONDecodeError as fault:
            if fault.msg != "Extra data":
                raise
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as fault:
        raise TableError(f"{source} is not JSON throughout: {fault}; correct it, or save the table as CSV") from None
    if isinstance(rows, dict) and all(isinstance(values, list) for values in rows.values()):
        names, columns = list(rows), list(rows.values())
        rows = [*zip(*columns, strict=True)] if len({len(values) for values in columns}) == 1 else None
    elif isinstance(rows, dict):
        rows = [rows]
        names = []
    else:
        names = []
    if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = [[row.get(name) for name in names] for row in rows]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, (list, tuple)) for row in rows):
        shapes = "an array of objects, an object a line, or an object of columns of equal length"
        raise TableError(f"{source} is JSON but no table; wanted is {shapes}")
    if len({len(row) for row in rows}) > 1:
        raise TableError(f"{source}: its rows have different lengths; save the table as CSV")
    return _typed_cells(source, names or [f"x{j + 1}" for j in range(len(rows[0]))], rows, reading)


def read_workbook(content: Content, reading: Reading) -> ArrowTable:
    """A sheet of a workbook of Excel or LibreOffice."""
    source = content.source
    try:
        import python_calamine as calamine
    except ImportError as error:
        raise ImportError(f"{source}: workbooks need python-calamine: pip install 'tkmeans[io]'") from error
    try:
        import io

        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content.in_memory()))
        sheets = book.sheet_names
    except Exception as fault:
        raise TableError(f"{source} is a damaged workbook or a zip archive ({fault}); unpack it") from None
    if reading.table is not None and reading.table not in sheets:
        raise TableError(f"{source} has no sheet {reading.table!r}; it has {', '.join(map(repr, sheets))}")
    for name in [reading.table] if reading.table is not None else sheets:
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        first = next((i for i, row in enumerate(rows) if any(cell != "" for cell in row)), None)
        if first is not None:
            break
    else:
        raise TableError(f"{source} is empty: it has no filled sheet")
    filled = [[None if cell == "" else cell for cell in row] for row in rows[first:]]
    used = [j for j in range(len(filled[0])) if any(row[j] is not None for row in filled)]
    filled = [[row[j] for j in used] for row in filled if any(cell is not None for cell in row)]
    header = reading.header
    if header is None:
        header = has_header([[_word(cell) for cell in row] for row in filled[:500]], Numerals())
    names = [_word(cell).strip() for cell in filled[0]] if header else [f"x{j + 1}" for j in range(len(used))]
    if not filled[header:]:
        raise TableError(f"{source}: sheet {name!r} has the names of columns but no rows")
    table = _typed_cells(source, names, filled[header:], reading)
    table.first_place = first + 1 + header
    if len(sheets) > 1 and reading.table is None:
        table.notes.insert(0, f"sheet {name!r} of {len(sheets)} was read; add table='...' for another")
    return table


def read_duckdb(content: Content, reading: Reading) -> ArrowTable:
    """A table of a DuckDB database, or the answer to a query."""
    source = content.source
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(f"{source} is a DuckDB database, which needs duckdb: pip install duckdb") from error
    try:
        with duckdb.connect(str(content.path), read_only=True) as base:
            tables = [row[0] for row in base.execute("SELECT table_name FROM information_schema.tables").fetchall()]
            wanted = reading.table or (tables[0] if len(tables) == 1 else None)
            if wanted is None:
                raise TableError(f"{source} holds the tables {', '.join(tables) or '(none)'}; add table='...' for one")
            query = wanted if re.match(r"\s*(select|with|from)\s", wanted, re.IGNORECASE) else f'FROM "{wanted}"'
            return held_table(source, base.sql(query).to_arrow_table())
    except duckdb.Error as fault:
        raise TableError(f"{source} cannot be read: {str(fault).splitlines()[0]}") from None


def _typed_cells(source: str, names: Sequence[str], rows: Sequence[Sequence[Any]], reading: Reading) -> ArrowTable:
    """A table of Python's values; columns that hold more than one type are read like text."""
    arrow = pyarrow("to read this file")
    columns = {name: [*cells] for name, cells in zip(unique_names(names)[0], zip(*rows, strict=True), strict=True)}
    texts: dict[str, list[str]] = {}
    arrays = []
    for name, cells in columns.items():
        types = {type(cell) for cell in cells if cell is not None}
        if types <= {int, float}:
            arrays.append(arrow.array(cells, arrow.float64(), from_pandas=True))
        elif types <= {bool} or types <= {datetime} or types <= {date}:
            arrays.append(arrow.array(cells))
        else:
            texts[name] = ["" if cell is None else _word(cell) for cell in cells]
            arrays.append(arrow.array(texts[name], arrow.string()))
    table = held_table(source, arrow.Table.from_arrays(arrays, names=list(columns)))
    table.notes = unique_names(names)[1]
    table.read_text(guess_numerals([cell for cells in texts.values() for cell in cells[:1000]], reading, source), texts)
    return table


def _word(cell: Any) -> str:
    """A cell as text."""
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, (datetime, date, time, timedelta)):
        return str(cell)
    return json.dumps(cell) if isinstance(cell, (dict, list)) else str(cell)
