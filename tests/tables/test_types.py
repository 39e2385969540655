"""Columns keep their types and all their digits from one format to another."""

import io
import json

import numpy as np
import pytest
from support.table_files import command, out, read_as, written

from tkmeans import DataFile, TKMeans
from tkmeans.tables import TableError, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


# ---- typed formats -------------------------------------------------------------------------------


@pytest.fixture
def typed():
    days, tags = pa.array([18262, None, 18264], pa.date32()), pa.array(["a", "b", None]).dictionary_encode()
    truth, prices = pa.array([True, False, None]), pa.array([1, 2, 3]).cast(pa.decimal128(30, 2))
    long, lists = pa.array([2**60 + 1, -(2**60) - 3, 7]), pa.array([[1, 2], [], None])
    return pa.table({"x": [1.0, 2, 9], "id": long, "day": days, "so": truth, "cost": prices, "l": lists, "tag": tags})


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


def test_a_type_that_parquet_does_not_have_is_an_error_in_one_sentence(tmp_path):
    interval = pa.array([pa.MonthDayNano([0, 3, 0])] * 2, pa.month_day_nano_interval())
    feather.write_feather(pa.table({"x": [1.0, 2.0], "iv": interval}), tmp_path / "t.feather")
    with pytest.raises(TableError, match=r"cannot be written as Parquet, try \.csv"):
        out(read_table(tmp_path / "t.feather"), "o.parquet")


def test_cells_of_a_folder_of_text_are_written_as_they_were(folder, tmp_path):
    text = "zip,day,n,x,y\n01234,2020-01-01,2020,1.5,2\n"
    for name in ("a.csv", "b.csv"):
        written(folder / name, text)
    wanted = (text + text.splitlines()[1]).split()
    assert out(read_table(folder), "-").decode().split() == wanted
    done = command("fit", folder, "-k", 1, "--keep", "x", "--out", tmp_path / "o.csv")
    assert done.exit_code == 0, done.stderr
    assert [line.rsplit(",", 3)[0] for line in (tmp_path / "o.csv").read_text().split()] == wanted


# ---- long numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_column_of_long_whole_numbers_with_gaps_does_not_refuse_its_file(suffix, tmp_path):
    path, long = tmp_path / f"n.{suffix}", pa.array([None, 10**16 + 1, 10**16 + 3])
    table = pa.table({"x": [1.0, 2, 9], "y": [1.0, 3, 8], "ref": long})
    (pq.write_table if suffix == "parquet" else feather.write_feather)(table, path)
    model = TKMeans(1).fit(DataFile(path, columns=["x", "y"]))
    same = TKMeans(1).fit(np.c_[table["x"], table["y"]])
    np.testing.assert_array_equal(model.cluster_centers_, same.cluster_centers_)
    assert read_table(path).cells("ref") == ["", "10000000000000001", "10000000000000003"]


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


def test_whole_numbers_of_one_file_lose_no_digit_to_floats_of_another(folder):
    ids = [2**53 + 1 + 2 * i for i in range(3)]
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": ids, "x": [0.5, 1.0, 2.0]}), folder / "a.parquet")
    pq.write_table(pa.table({"id": [None, 1.0, 2.0], "x": [0.5, 1.0, 2.0]}), folder / "b.parquet")
    for suffix in ("parquet", "feather"):
        found = read_as(suffix, out(read_table(folder), f"o.{suffix}"))["id"].to_pylist()
        assert found == [*ids, None, 1, 2]
