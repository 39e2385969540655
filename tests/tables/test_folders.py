"""A folder as one table: which files are read, cells in their rows, and errors with the name of their file."""

import csv
import io
import json
import lzma
import os
from unittest import mock

import numpy as np
import pytest
from support.table_files import command, out, written

from tkmeans import TKMeans
from tkmeans.tables import TableError, choose, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


# ---- which files are read ------------------------------------------------------------------------


def test_files_of_a_folder_that_are_not_read_are_named(folder):
    for name in ("a.csv", "b.txt", "c.json", "sub/d", "e.duckdb", "f.ods"):
        written(folder / name, "x,y\n1,2.5\n3,4\n8,9\n")
    with pytest.warns(UserWarning, match="not read, as their names are not those of tables: ") as warned:
        assert len(TKMeans(1).fit(folder).labels_) == 3
    assert all(name in str(warned[0].message) for name in ("b.txt", "c.json", os.path.join("sub", "d"), "e.duckdb"))


def test_compressed_and_shortened_names_of_formats_are_read_in_folders(folder):
    written(folder / "a.csv.xz", lzma.compress(b"x,y\n1,2.5\n"))
    written(folder / "b.ndjson", '{"x": 3, "y": 4.5}\n')
    written(folder / "c.psv", "x|y\n5|6.5\n")
    written(folder / "d.tab", "x\ty\n7\t8.5\n")
    pq.write_table(pa.table({"x": [9], "y": [10.5]}), folder / "e.pq")
    feather.write_feather(pa.table({"x": [11], "y": [12.5]}), folder / "f.ipc")
    table = read_table(folder)
    assert not table.notes
    assert np.concatenate([*table.batches(["x", "y"], 10)]).tolist() == [[x, x + 1.5] for x in range(1, 12, 2)]


def test_rows_of_a_folder_within_a_folder_are_read_once_and_hidden_ones_not_at_all(folder):
    written(folder / "all.csv" / "part.csv", "x,y\n1,2.5\n3,4\n")
    written(folder / ".checkpoints" / "part.csv", "x,y\n1,2.5\n3,4\n")
    assert read_table(folder).n_rows == 2


def test_a_column_that_the_first_file_of_a_folder_lacks_is_named(folder):
    written(folder / "a.csv", "x,y\n1,2.5\n3,4\n8,9\n")
    written(folder / "b.csv", "x,y,z\n1,2.5,7\n3,4,7.5\n8,9,2\n")
    with pytest.warns(UserWarning, match=r"columns that .*a\.csv does not have are not read: 'z' of .*b\.csv"):
        model = TKMeans(1).fit(folder)
    assert model.feature_names_in_.tolist() == ["x", "y"]


# ---- cells in their rows -------------------------------------------------------------------------


def test_rows_of_a_folder_keep_their_cells_where_a_file_has_none(folder):
    written(folder / "a.csv", "x,y,note\n" + "".join(f"{i}.5,{i % 3},\n" for i in range(6)))
    written(folder / "b.csv", "x,y,note\n" + "".join(f"{i}.5,{i % 3},B{i}\n" for i in range(6)))
    table = read_table(folder)
    assert table.cells("note") == [""] * 6 + [f"B{i}" for i in range(6)]
    lines = [*csv.reader(io.StringIO(out(table, "-", np.array([5, 7])).decode()))]
    assert lines == [["x", "y", "note"], ["5.5", "2", ""], ["1.5", "1", "B1"]]
    assert choose(table).names == ["x", "y"]


def test_text_numbers_and_dates_of_a_folder_stand_in_their_rows(folder):
    written(folder / "a.csv", "x,what\n1,red\n2,green\n")
    written(folder / "b.csv", "x,what\n3,007\n4,\n")
    pq.write_table(pa.table({"x": [5], "what": pa.array([18262], pa.date32())}), folder / "c.parquet")
    table = read_table(folder)
    table.load()
    assert table.cells("what") == ["red", "green", "007", "", "2020-01-01"]
    assert len(out(table, "o.csv").splitlines()) == 6


def test_a_bad_cell_of_a_folder_is_named_with_its_own_file_and_line(folder):
    written(folder / "a.csv", "x,y\n1,2.5\n3,4\n8,9\n")
    written(folder / "b.csv", "x,y\n1,2.5\n3,4\n8,oops\n5,6\n7,8\n")
    said = r"folder: .*cells of column 'y' are numbers, but 1 is not: .*b\.csv, line 4: 'oops'"
    with pytest.raises(TableError, match=said), mock.patch("tkmeans.tables.Table.load") as load:
        TKMeans(1).fit(folder)
    assert not load.called  # the files may be larger than memory
    done = command("fit", folder, "-k", 1)
    assert done.exit_code == 1
    assert "b.csv, line 4: 'oops'" in " ".join(done.stderr.split())
    written(folder / "b.csv", "x,y\n1,2.5\n3,4\n")
    assert json.loads(command("fit", folder, "-k", 1, "--json").stdout)["file"] == str(folder)
