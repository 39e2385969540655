"""Tables in files of any common format: what the command reads, and writes again with more columns."""

from tkmeans.tables.reading import read_table
from tkmeans.tables.records import Added, BadCell, Column, Reading, Table, TableError
from tkmeans.tables.writing import check_format, write_table

__all__ = ["Added", "BadCell", "Column", "Reading", "Table", "TableError", "check_format", "read_table", "write_table"]
