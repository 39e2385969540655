"""Databases and workbooks as tables: schemas, queries, and sheets beyond all memory."""

import pytest

from tkmeans.tables import Reading, TableError, read_table


def test_a_table_outside_the_main_schema_of_a_database_is_read(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute('CREATE SCHEMA s2; CREATE TABLE s2."q ""1""" AS SELECT 1.5 AS a, 2.5 AS b')
    assert read_table(tmp_path / "base.duckdb").cells("a") == ["1.5"]
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute('CREATE TABLE q AS SELECT 3.5 AS a; CREATE TABLE "s2.r" AS SELECT 4.5 AS a')
    with pytest.raises(TableError, match=r'holds the tables .*s2\.q "1"'):
        read_table(tmp_path / "base.duckdb")
    found = [read_table(tmp_path / "base.duckdb", Reading(table=name)) for name in ('s2.q "1"', "q", "s2.r")]
    assert [table.cells("a") for table in found] == [["1.5"], ["3.5"], ["4.5"]]


def test_queries_of_duckdb_show_no_progress_on_standard_output(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute("CREATE TABLE t AS SELECT 1.0 AS a, 2.0 AS b")
    query = "SELECT current_setting('enable_progress_bar')::INT AS shown, 1.0 AS b"
    assert read_table(tmp_path / "base.duckdb", Reading(table=query)).cells("shown") == ["0"]


def test_a_workbook_with_a_cell_in_the_last_corner_is_refused_before_it_takes_all_memory(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1000, 2], [3, 4.5]):
        book.active.append(row)
    book.save(tmp_path / "small.xlsx")
    assert read_table(tmp_path / "small.xlsx").cells("a") == ["1000", "3"]  # whole numbers stay whole
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(TableError, match="cells are strewn over 1048576 rows and 16384 columns"):
        read_table(tmp_path / "far.xlsx")
