"""Tables in files of any common format: what the library and the command read, and write with more columns."""

from tkmeans.tables.roles import choose
from tkmeans.tables.table import CHUNK, Added, Reading, Table, TableError
from tkmeans.tables.table_files import check_format, read_table, write_table

__all__ = ["CHUNK", "Added", "Reading", "Table", "TableError", "check_format", "choose", "read_table", "write_table"]
