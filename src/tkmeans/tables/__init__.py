"""Tables in files of any common format: what the command reads, and writes again with more columns."""

from tkmeans.tables.table import Added, BadCell, Column, Reading, Table, TableError
from tkmeans.tables.table_files import check_format, read_table, write_table

__all__ = ["Added", "BadCell", "Column", "Reading", "Table", "TableError", "check_format", "read_table", "write_table"]
