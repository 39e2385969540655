"""JSON as a table: its encodings, forms and numbers, and what is refused."""

import csv
import io
import json

import numpy as np
import pytest
from support.table_files import out, written

from tkmeans.tables import TableError, read_table

# ---- encodings and forms -------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_json_is_read_in_every_encoding_it_may_have(encoding, tmp_path):
    path = written(tmp_path / "rows.json", '[{"é": 1.5, "b": "\u2028"}, {"é": 2, "b": "x"}]'.encode(encoding))
    assert read_table(path).cells("é") == ["1.5", "2.0"]
    lines = written(tmp_path / "lines.json", '{"é": 1.5, "b": "a\u2028b"}\n{"é": 2, "b": "x"}\n'.encode(encoding))
    assert read_table(lines).cells("b") == ["a\u2028b", "x"]


@pytest.mark.parametrize("start", ['{"a"', '{ "a"', '{\n"a"'])
def test_an_object_of_columns_is_json_however_it_is_laid_out(start, tmp_path):
    assert read_table(written(tmp_path / "columns.json", start + ": [1, 2]}")).cells("a") == ["1", "2"]


def test_a_table_whose_first_name_begins_like_json_is_a_table(tmp_path):
    assert read_table(written(tmp_path / "braces.csv", "{a},b\n1,2\n3,4\n")).names == ["{a}", "b"]


# ---- values --------------------------------------------------------------------------------------


def test_whole_numbers_in_json_stay_whole_and_large_ones_keep_their_digits(tmp_path):
    ids = [2**53 + 1, 2**60, 10**30]
    rows = [{"id": big, "n": 1000 + i, "x": i / 2} for i, big in enumerate(ids)]
    table = read_table(written(tmp_path / "ids.json", json.dumps(rows)))
    assert table.cells("id") == [*map(str, ids)]
    assert table.cells("n") == ["1000", "1001", "1002"]
    assert np.array_equal(np.concatenate([*table.batches(["n", "x"], 10)]), [[1000, 0], [1001, 0.5], [1002, 1]])


def test_truth_and_nested_values_are_written_in_the_words_of_json(tmp_path):
    rows = [{"x": 0.5, "so": True, "in": {"a": None, "b": [1, "é"]}}, {"x": 1.5, "so": False, "in": 2.0}]
    lines = [*csv.reader(io.StringIO(out(read_table(written(tmp_path / "r.json", json.dumps(rows))), "-").decode()))]
    assert lines[1][:2] + lines[2] == ["0.5", "true", "1.5", "false", "2.0"]
    assert json.loads(lines[1][2]) == rows[0]["in"]


# ---- refusals ------------------------------------------------------------------------------------


def test_json_nested_without_end_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"deep\.json is not JSON throughout"):
        read_table(written(tmp_path / "deep.json", "[[" * 50_000))


def test_half_a_character_in_json_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"half\.json cannot be read: .*surrogates not allowed"):
        read_table(written(tmp_path / "half.json", '[{"a": 1, "b": "\\ud800"}]'))


def test_an_empty_array_is_json_but_no_table(tmp_path):
    with pytest.raises(TableError, match="is JSON but no table"):
        read_table(written(tmp_path / "none.json", "[ ]"))
