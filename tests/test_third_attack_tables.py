"""What a third attack broke in tables, each with a test that fails if it comes back."""

import csv
import gzip
import io
import json
import lzma
import os
import sys
from unittest import mock

import numpy as np
import pytest

from tkmeans import DataFile, TKMeans, describe
from tkmeans.tables import Reading, TableError, choose, read_table, write_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
MADE = np.random.default_rng(0)


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def out(table, like, rows=None):
    """What a table is written as, in the format of this name."""
    file = io.BytesIO()
    write_table(table, file, {}, rows=rows, like=like)
    return file.getvalue()


def command(*words):
    """Type a command."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from tkmeans.cli import app

    return CliRunner().invoke(app, [*map(str, words)])


# ---- cells and their rows --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def late_text(tmp_path_factory):
    """Over a mebibyte of rows whose last column is empty at first and text at the end, and those rows."""
    numbers = MADE.normal([[0.0, 0], [9, 0]] * 50_000)
    rows = [[f"{x:.3f}", f"{y:.3f}", f"L{i}" if i >= 90_000 else ""] for i, (x, y) in enumerate(numbers)]
    rows[20_000] = ["400", "900", ""]
    text = "\n".join(map(",".join, [["x", "y", "comment"], *rows]))
    return written(tmp_path_factory.mktemp("late") / "big.csv", text + "\n"), rows


def test_a_column_of_text_that_is_empty_at_first_keeps_every_cell_in_its_row(late_text):
    path, rows = late_text
    table = read_table(path)
    table.load()
    assert table.cells("comment") == [row[2] for row in rows]
    kept = pq.read_table(io.BytesIO(out(table, "o.parquet", np.array([20_000, 95_000]))))
    assert kept["comment"].to_pylist() == [None, "L95000"]


def test_text_that_begins_late_describes_clusters_and_is_no_error(late_text):
    path, rows = late_text
    with pytest.warns(UserWarning, match=r"not used for clustering: comment \(text\)"):
        model = TKMeans(2, random_state=0).fit(path)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    assert sum(each.n_rows + each.n_outliers for each in describe(model, path)) == len(rows)


def test_an_outlier_of_the_command_is_called_by_its_own_cell(late_text):
    done = command("outliers", late_text[0], "-k", 2, "--id", "comment", "--json")
    assert done.exit_code == 0, done.stderr
    assert {row["line"]: row["name"] for row in json.loads(done.stdout)["outliers"]}[20_002] == ""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "folder"


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


# ---- the same columns everywhere -------------------------------------------------------------------


@pytest.mark.parametrize("third", [lambda i: i % 100_000, lambda i: i if i != 70_000 else 5], ids=["again", "once"])
def test_a_table_that_is_loaded_has_the_columns_of_one_that_is_not(third, tmp_path):
    lines = (f"{i % 7}.500,{i % 11}.250,{third(i)}\n" for i in range(200_000))  # of which two blocks are 110 000
    path = written(tmp_path / "rows.csv", "x,y,z\n" + "".join(lines))
    loaded = read_table(path)
    loaded.load()
    assert choose(read_table(path)) == choose(loaded)


def test_cells_that_are_no_numbers_decide_alike_in_a_table_that_is_loaded(tmp_path):
    lines = (f"{i % 7}.5,{'word' if i < 40_000 else i % 9}\n" for i in range(200_000))
    path = written(tmp_path / "rows.csv", "x,y\n" + "".join(lines))
    loaded = read_table(path)
    loaded.load()
    assert choose(read_table(path)).names == choose(loaded).names == ["x"]


# ---- files that are kept, and files that are read --------------------------------------------------


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_nothing_is_written_over_a_file_that_a_folder_of_the_input_links_to(link, folder, tmp_path):
    real = written(tmp_path / "real.csv", "x,y\n1.5,2\n3,4.5\n8,9\n")
    before, said = real.read_bytes(), "is the input or in it, which is not overwritten"
    folder.mkdir()
    getattr(folder / "a.csv", link)(real)
    (folder / ".lost").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match=said):
        TKMeans(1).fit([[1.0, 2.0]]).predict(folder, out=real)
    with pytest.raises(FileExistsError, match=said):
        TKMeans(1, checkpoint=real).fit(folder)
    for option in ("--out", "--model"):
        done = command("fit", folder, "-k", 1, option, real)
        assert done.exit_code == 1
        assert "which is not overwritten" in " ".join(done.stderr.split())
    assert real.read_bytes() == before


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_column_of_long_whole_numbers_with_gaps_does_not_refuse_its_file(suffix, tmp_path):
    path, long = tmp_path / f"n.{suffix}", pa.array([None, 10**16 + 1, 10**16 + 3])
    table = pa.table({"x": [1.0, 2, 9], "y": [1.0, 3, 8], "ref": long})
    (pq.write_table if suffix == "parquet" else feather.write_feather)(table, path)
    model = TKMeans(1).fit(DataFile(path, columns=["x", "y"]))
    same = TKMeans(1).fit(np.c_[table["x"], table["y"]])
    np.testing.assert_array_equal(model.cluster_centers_, same.cluster_centers_)
    assert read_table(path).cells("ref") == ["", "10000000000000001", "10000000000000003"]


# ---- what is written -------------------------------------------------------------------------------


def test_cells_of_a_folder_of_text_are_written_as_they_were(folder, tmp_path):
    text = "zip,day,n,x,y\n01234,2020-01-01,2020,1.5,2\n"
    for name in ("a.csv", "b.csv"):
        written(folder / name, text)
    wanted = (text + text.splitlines()[1]).split()
    assert out(read_table(folder), "-").decode().split() == wanted
    done = command("fit", folder, "-k", 1, "--keep", "x", "--out", tmp_path / "o.csv")
    assert done.exit_code == 0, done.stderr
    assert [line.rsplit(",", 3)[0] for line in (tmp_path / "o.csv").read_text().split()] == wanted


@pytest.fixture
def typed():
    days, tags = pa.array([18262, None, 18264], pa.date32()), pa.array(["a", "b", None]).dictionary_encode()
    truth, prices = pa.array([True, False, None]), pa.array([1, 2, 3]).cast(pa.decimal128(30, 2))
    long, lists = pa.array([2**60 + 1, -(2**60) - 3, 7]), pa.array([[1, 2], [], None])
    return pa.table({"x": [1.0, 2, 9], "id": long, "day": days, "so": truth, "cost": prices, "l": lists, "tag": tags})


def read_as(suffix, data):
    return pq.read_table(io.BytesIO(data)) if suffix == "parquet" else feather.read_table(io.BytesIO(data))


@pytest.mark.parametrize("before", ["parquet", "feather"])
@pytest.mark.parametrize("after", ["parquet", "feather"])
@pytest.mark.parametrize("n_files", [1, 2])
def test_columns_keep_their_types_from_one_typed_format_to_another(before, after, n_files, typed, folder):
    folder.mkdir()
    parts = [typed, typed.set_column(6, "tag", pa.array(["c", "a", "d"]).dictionary_encode())][:n_files]
    for i, part in enumerate(parts):
        (pq.write_table if before == "parquet" else feather.write_feather)(part, folder / f"{i}.{before}")
    found = read_as(after, out(read_table(folder if n_files > 1 else folder / f"0.{before}"), f"o.{after}"))
    assert found.to_pylist() == [row for part in parts for row in part.to_pylist()]
    assert found.schema.types == typed.schema.types


@pytest.mark.parametrize("suffix", ["csv", "json", "npy"])
def test_long_identifiers_lose_no_digit_when_the_format_changes(suffix, tmp_path):
    path, ids = tmp_path / f"ids.{suffix}", [2**60 + i for i in (1, 2, 3)]
    if suffix == "npy":
        np.save(path, np.rec.fromarrays([ids, [0.5, 1, 2]], names=["id", "x"]))
    elif suffix == "json":
        path.write_text(json.dumps([{"id": i, "x": 0.5} for i in ids]))
    else:
        path.write_text("id,x\n" + "".join(f"{i},0.5\n" for i in ids))
    for after in ("parquet", "feather"):
        assert read_as(after, out(read_table(path), f"o.{after}"))["id"].to_pylist() == ids
    assert np.load(io.BytesIO(out(read_table(path), "o.npy")))["id"].tolist() == ids


def test_long_identifiers_in_one_file_of_a_folder_lose_no_digit_to_short_ones_in_another(folder):
    written(folder / "a.csv", f"id,note,x\n{2**60 + 1},,1.5\n")
    written(folder / "b.csv", "id,note,x\n7,hello,2.5\n")
    found = read_as("parquet", out(read_table(folder), "o.parquet")).to_pylist()
    assert found == [{"id": 2**60 + 1, "note": None, "x": 1.5}, {"id": 7, "note": "hello", "x": 2.5}]


@pytest.mark.parametrize(("cells", "wanted"), [
    (["9007199254740993", ""], [9007199254740993, None]),
    (["123456789012345678901", "123456789012345678902"], ["123456789012345678901", "123456789012345678902"]),
    (["1e300", "2"], [1e300, 2.0]),
])  # fmt: skip
def test_numbers_too_long_for_a_float_are_whole_numbers_or_text(cells, wanted, tmp_path):
    path = written(tmp_path / "long.csv", "n,x\n" + "".join(f"{cell},0.5\n" for cell in cells))
    assert read_as("parquet", out(read_table(path), "o.parquet"))["n"].to_pylist() == wanted


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_whole_numbers_of_a_matrix_keep_all_their_digits(suffix, tmp_path):
    ids = [2**53 + 1 + 2 * i for i in range(4)]
    np.save(tmp_path / "m.npy", np.array([ids, [1, 2, 3, -4]]).T)
    text = out(read_table(tmp_path / "m.npy"), f"o.{suffix}")
    if suffix == "csv":
        assert text.decode().splitlines() == ["x1,x2", *(f"{i},{j}" for i, j in zip(ids, [1, 2, 3, -4], strict=True))]
    elif suffix == "npy":
        assert np.load(io.BytesIO(text))["x1"].tolist() == ids
    else:
        assert read_as("parquet", text)["x1"].to_pylist() == ids


def test_whole_numbers_of_one_file_lose_no_digit_to_floats_of_another(folder):
    ids = [2**53 + 1 + 2 * i for i in range(3)]
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": ids, "x": [0.5, 1.0, 2.0]}), folder / "a.parquet")
    pq.write_table(pa.table({"id": [None, 1.0, 2.0], "x": [0.5, 1.0, 2.0]}), folder / "b.parquet")
    for suffix in ("parquet", "feather"):
        found = read_as(suffix, out(read_table(folder), f"o.{suffix}"))["id"].to_pylist()
        assert found == [*ids, None, 1, 2]


def test_a_type_that_parquet_does_not_have_is_an_error_in_one_sentence(tmp_path):
    interval = pa.array([pa.MonthDayNano([0, 3, 0])] * 2, pa.month_day_nano_interval())
    feather.write_feather(pa.table({"x": [1.0, 2.0], "iv": interval}), tmp_path / "t.feather")
    with pytest.raises(TableError, match=r"cannot be written as Parquet, try \.csv"):
        out(read_table(tmp_path / "t.feather"), "o.parquet")


# ---- folders ---------------------------------------------------------------------------------------


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


# ---- numbers, encodings and names ------------------------------------------------------------------


def test_a_column_of_lists_does_not_make_thousands_of_decimals(tmp_path):
    text = 'x,y,tags\n39.787,7.125,"1,2"\n40.213,8.250,"2,3"\n10.341,6.500,"1,3"\n'
    path = written(tmp_path / "lists.csv", text)
    with pytest.raises(TableError, match=r"'39.787' may be 39.787 or 39787; add decimal='.' or thousands='.' to"):
        TKMeans(1).fit(DataFile(path, columns=["x", "y"]))
    known = read_table(path, Reading(decimal="."))
    assert known.column("x").values.tolist() == [39.787, 40.213, 10.341]
    assert read_table(path, Reading(thousands=".")).column("x").values.tolist() == [39787, 40213, 10341]


def test_commas_before_decimals_are_still_found_between_commas(tmp_path):
    path = written(tmp_path / "quoted.csv", 'x,y\n"1.234,5","2,5"\n"3,5","4,25"\n')
    assert read_table(path).column("x").values.tolist() == [1234.5, 3.5]


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
def test_an_encoding_by_its_family_name_is_read_and_written_with_or_without_a_mark(order, tmp_path):
    data = "x,naïf\n1.5,é\n2.5,è\n".encode(order)
    path = written(tmp_path / "text.csv", data)
    family = order[:6] if order.startswith("utf-16") else order
    table = read_table(path, Reading(encoding=family))
    assert table.cells("naïf") == ["é", "è"]
    assert out(table, "-") == data


@pytest.mark.parametrize("name", ["rot13", "hex", "undefined", "no such"])
def test_a_codec_that_is_not_of_text_is_no_encoding(name, tmp_path):
    with pytest.raises(TableError, match=f"no encoding is called '{name}'; try utf-8"):
        read_table(written(tmp_path / "text.csv", "x,y\n1,2.5\n"), Reading(encoding=name))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "feather", "npy"])
def test_a_file_whose_name_is_no_text_is_read(suffix, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"b\xff." + suffix.encode())
    rows = pa.table({"x1": [1.0, 2, 9], "x2": [1.5, 3, 8]})
    with open(path, "wb") as file:
        if suffix.startswith("csv"):
            text = b"x1,x2\n1,1.5\n2,3\n9,8\n"
            file.write(gzip.compress(text) if "gz" in suffix else text)
        elif suffix == "npy":
            np.save(file, np.c_[rows["x1"], rows["x2"]])
        else:
            (pq.write_table if suffix == "parquet" else feather.write_feather)(rows, file)
    table = read_table(os.fsdecode(path))
    assert np.concatenate([*table.batches(["x1", "x2"], 10)]).tolist() == [[1, 1.5], [2, 3], [9, 8]]
    table.source.encode()  # so that it can be printed


def test_rows_without_any_value_in_one_column_of_the_fit_are_assigned(tmp_path):
    pytest.importorskip("pandas")
    fitted = written(tmp_path / "fitted.csv", "x,y\n" + "".join(f"{i % 2 * 9}.5,{i % 2 * 7}.25\n" for i in range(9)))
    path = written(tmp_path / "new.csv", "x,y\n,0.3\n,7.1\n")
    model = TKMeans(2, random_state=0).fit(fitted)
    labels = pq.read_table(model.predict(path, out=tmp_path / "labels.parquet"))["cluster"].to_pylist()
    assert labels == model.predict(pa.table({"x": [np.nan] * 2, "y": [0.3, 7.1]}).to_pandas()).tolist()
    assert command("fit", fitted, "-k", 2, "--model", tmp_path / "model.json").exit_code == 0
    done = command("predict", tmp_path / "model.json", path, "--json")
    assert done.exit_code == 0, done.stderr
    assert len({*json.loads(done.stdout)["labels"]}) == 2
    with pytest.raises(TableError, match="column 'x' is empty; leave it out"):
        TKMeans(2).fit(DataFile(path, columns=["x", "y"]))
    assert command("fit", path, "-k", 1, "--columns", "x,y").exit_code == 1


# ---- databases, JSON and odd files -----------------------------------------------------------------


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_json_is_read_in_every_encoding_it_may_have(encoding, tmp_path):
    path = written(tmp_path / "rows.json", '[{"é": 1.5, "b": "\u2028"}, {"é": 2, "b": "x"}]'.encode(encoding))
    assert read_table(path).cells("é") == ["1.5", "2.0"]
    lines = written(tmp_path / "lines.json", '{"é": 1.5, "b": "a\u2028b"}\n{"é": 2, "b": "x"}\n'.encode(encoding))
    assert read_table(lines).cells("b") == ["a\u2028b", "x"]


def test_an_empty_array_is_json_but_no_table(tmp_path):
    with pytest.raises(TableError, match="is JSON but no table"):
        read_table(written(tmp_path / "none.json", "[ ]"))


def test_truth_and_nested_values_are_written_in_the_words_of_json(tmp_path):
    rows = [{"x": 0.5, "so": True, "in": {"a": None, "b": [1, "é"]}}, {"x": 1.5, "so": False, "in": 2.0}]
    lines = [*csv.reader(io.StringIO(out(read_table(written(tmp_path / "r.json", json.dumps(rows))), "-").decode()))]
    assert lines[1][:2] + lines[2] == ["0.5", "true", "1.5", "false", "2.0"]
    assert json.loads(lines[1][2]) == rows[0]["in"]


def test_an_empty_line_among_comments_does_not_refuse_a_file(tmp_path):
    text = "# one\n\n# two\n\nx,y\n1,2.5\n3,4\n"
    table = read_table(written(tmp_path / "comments.csv", text))
    assert (table.names, table.places([0, 1])) == (["x", "y"], [6, 7])
    assert out(table, "-").decode() == text


def test_a_column_without_a_name_is_listed_by_two_quotation_marks(tmp_path):
    pq.write_table(pa.table({"": [1.0, 2.5, 9], "y": [1.0, 3, 8.5]}), tmp_path / "t.parquet")
    done = command("fit", tmp_path / "t.parquet", "-k", 1)
    assert done.exit_code == 0, done.stderr
    assert "2 columns: '', y" in " ".join(done.stderr.split())
