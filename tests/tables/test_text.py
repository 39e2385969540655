"""Text as a table: columns that begin late, numerals, encodings and names."""

import codecs
import gzip
import io
import json
import os
import sys
import time
import weakref

import numpy as np
import pytest
from support.table_files import command, out, written

from tkmeans import DataFile, TKMeans, describe
from tkmeans.tables import Reading, TableError, choose, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


# ---- columns that begin late ---------------------------------------------------------------------

MADE = np.random.default_rng(0)


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


# ---- numerals ------------------------------------------------------------------------------------


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


# ---- encodings and names -------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
def test_an_encoding_by_its_family_name_is_read_and_written_with_or_without_a_mark(order, tmp_path):
    data = "x,naïf\n1.5,é\n2.5,è\n".encode(order)
    path = written(tmp_path / "text.csv", data)
    family = order[:6] if order.startswith("utf-16") else order
    table = read_table(path, Reading(encoding=family))
    assert table.cells("naïf") == ["é", "è"]
    assert out(table, "-") == data


def test_a_reading_that_ends_leaves_nothing_of_pythons_to_the_threads_of_arrow(tmp_path):
    kept, latin = [], codecs.lookup("latin-1")

    class Watched(latin.incrementaldecoder):
        def __init__(self, errors="strict"):
            super().__init__(errors)
            kept.append(weakref.ref(self))

        def decode(self, data, final=False):
            time.sleep(0.2 * (len(data) > 1000))  # as if the processor were busy
            return super().decode(data, final)

    how = latin.encode, latin.decode, latin.streamreader, latin.streamwriter, latin.incrementalencoder, Watched
    search = {"watched": codecs.CodecInfo(*how, name="watched")}.get
    codecs.register(search)
    path = written(tmp_path / "long.csv", "x,é\n".encode("latin-1") + b"1.5,2.5\n2.5,9.5\n" * 200_000)
    try:
        rows = read_table(path, Reading(encoding="watched")).chunks(["x"])
        next(rows)
        rows.close()
        assert kept
        assert not [each for each in kept if each() is not None]
    finally:
        codecs.unregister(search)


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


def test_a_column_without_a_name_is_listed_by_two_quotation_marks(tmp_path):
    pq.write_table(pa.table({"": [1.0, 2.5, 9], "y": [1.0, 3, 8.5]}), tmp_path / "t.parquet")
    done = command("fit", tmp_path / "t.parquet", "-k", 1)
    assert done.exit_code == 0, done.stderr
    assert "2 columns: '', y" in " ".join(done.stderr.split())


def test_an_empty_line_among_comments_does_not_refuse_a_file(tmp_path):
    text = "# one\n\n# two\n\nx,y\n1,2.5\n3,4\n"
    table = read_table(written(tmp_path / "comments.csv", text))
    assert (table.names, table.places([0, 1])) == (["x", "y"], [6, 7])
    assert out(table, "-").decode() == text
