"""Tables in files as people have them: read for what they are, and written back unchanged."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tkmeans.tables import Added, Reading, TableError, read_table, write_table

pandas = pytest.importorskip("pandas")


@pytest.fixture
def file(tmp_path):
    """Write a file and read it as a table."""

    def read(content, **said):
        path = tmp_path / "table"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(path, Reading(**said))

    return read


def numbers(table):
    return {name: table.column(name).values.tolist() for name in table.names}


def written(table, **options):
    """The table with a cluster for each row but the first."""
    out = io.BytesIO()
    known = np.arange(table.n_rows) > 0
    added = {"cluster": Added(np.arange(table.n_rows), known), "p": Added(np.full(table.n_rows, 0.5), known)}
    write_table(table, out, added, **options)
    return out.getvalue()


# ---- what is found out -----------------------------------------------------------

CLEAR = {
    "commas": ("a,b\n1.5,2\n-3e2,4\n", {"a": [1.5, -300.0], "b": [2.0, 4.0]}),
    "semicolons": ("a;b\n1.5;2\n3;4\n", {"a": [1.5, 3.0], "b": [2.0, 4.0]}),
    "tabs": ("a\tb\n1.5\t2\n3\t4\n", {"a": [1.5, 3.0], "b": [2.0, 4.0]}),
    "bars": ("a|b\n1.5|2\n3|4\n", {"a": [1.5, 3.0], "b": [2.0, 4.0]}),
    "blanks": ("  a   b\n  1.5  2\n -3    4\n", {"a": [1.5, -3.0], "b": [2.0, 4.0]}),
    "decimal commas": ("a;b\n1,5;2\n3;,25\n", {"a": [1.5, 3.0], "b": [2.0, 0.25]}),
    "decimal commas among commas": ('a,b\n"1,5",2\n"3,25",4\n', {"a": [1.5, 3.25], "b": [2.0, 4.0]}),
    "thousands by points": ("a;b\n1.234,5;2\n12;4\n", {"a": [1234.5, 12.0], "b": [2.0, 4.0]}),
    "thousands by commas": ('a,b\n"1,234,567.5",2\n12,4\n', {"a": [1234567.5, 12.0], "b": [2.0, 4.0]}),
    "thousands by narrow blanks": ("a;b\n1\u202f234,5;2\n12;4\n", {"a": [1234.5, 12.0], "b": [2.0, 4.0]}),
    "typographers' minus": ("a,b\n\u22121.5,2\n3,4\n", {"a": [-1.5, 3.0], "b": [2.0, 4.0]}),
    "quoted fields": ('"a, b";c\n"1";2\n"3";4\n', {"a, b": [1.0, 3.0], "c": [2.0, 4.0]}),
    "blanks after commas": ('a, "b, c"\n1, 2\n3, 4\n', {"a": [1.0, 3.0], "b, c": [2.0, 4.0]}),
    "old Macintosh": ("a,b\r1,2\r3,4\r", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    "no last newline": ("a,b\r\n1,2\r\n3,4", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    "empty lines": ("a,b\n\n1,2\n\n3,4\n\n", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    "one column": ("a\n1.5\n3\n", {"a": [1.5, 3.0]}),
    "no header": ("1,2\n3,4\n", {"x1": [1.0, 3.0], "x2": [2.0, 4.0]}),
    "Excel's own line": ("sep=;\na;b\n1;2\n3;4\n", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    "comments before": ("# made by a probe\n# in Kiel\na,b\n1,2\n3,4\n", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    "R's row names": ("a b\n1 1.5 2\n2 3 4\n", {"x1": [1.0, 2.0], "a": [1.5, 3.0], "b": [2.0, 4.0]}),
    "delimiters at the end": ("a;b\n1;2;\n3;4;\n", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    "the same name twice": ("a,a\n1,2\n3,4\n", {"a": [1.0, 3.0], "a_2": [2.0, 4.0]}),
    "the same name twice, and the way out taken": (
        "a,a,a_2\n1,2,5\n3,4,6\n",
        {"a": [1.0, 3.0], "a_3": [2.0, 4.0], "a_2": [5.0, 6.0]},
    ),
}


@pytest.mark.parametrize("content", [*CLEAR.values()], ids=[*CLEAR])
def test_the_delimiter_decimal_sign_and_header_of_a_clear_text_file_are_recognised(file, content):
    text, expected = content
    assert numbers(file(text)) == expected


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
)
def test_the_encoding_of_a_text_table_is_recognised_and_kept(file, encoding):
    text = "größe;name\n1,5;Köln\n3,5;Åbo\n"
    table = file(text.encode(encoding))
    assert table.names == ["größe", "name"]
    assert table.cells("name") == ["Köln", "Åbo"]
    assert written(table).decode(encoding) == "größe;name;cluster;p\n1,5;Köln;;\n3,5;Åbo;1;0,5\n"
    assert written(table)[:4] == text.encode(encoding)[:4]  # the byte-order mark


def test_the_encoding_of_a_text_table_can_be_given_and_a_wrong_one_is_refused(file):
    data = "ж;1\nя;2\n".encode("koi8-r")
    assert file(data, encoding="koi8-r", header=False).cells("x1") == ["ж", "я"]
    with pytest.raises(TableError, match="is not utf-8: byte 0 does not fit"):
        file(data, encoding="utf-8")
    with pytest.raises(TableError, match="no encoding is called 'klingon'"):
        file(data, encoding="klingon")


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "n/a", "N/A", "#N/A", "?", "-", ".", "NULL", "None", "  "])
def test_usual_words_for_missing_values_are_missing_values_of_a_table(file, word):
    column = file(f"a,b\n1,x\n{word},y\n3,z\n").column("a")
    np.testing.assert_array_equal(column.values, [1, np.nan, 3])
    assert column.n_bad == 0


def test_further_words_for_missing_values_of_a_table_can_be_given(file):
    column = file("a\n1\n<LOD\n-999\n", missing=("<LOD", "-999")).column("a")
    np.testing.assert_array_equal(column.values, [1, np.nan, np.nan])


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1_000", "1e999", "0x10", "1,5", "12.5.2024", "5 kg", "--5"])
def test_a_cell_that_is_no_finite_number_is_a_bad_cell(file, cell):
    column = file(f"a;b\n1.5;x\n{cell};y\n3.25;z\n").column("a")
    assert (column.n_bad, column.n_numbers) == (1, 2)
    assert column.bad[0] == ("line 3", cell)
    assert not column.is_text


def test_one_bad_cell_among_thousands_is_found_behind_empty_and_broken_lines(file):
    lines = [f'{i},"two\nlines"' for i in range(5000)]
    lines[4000] = 'oops,"two\nlines"'
    column = file("\n".join(["# a comment", "a,b", "", *lines])).column("a")
    assert column.n_bad == 1
    assert column.bad[0] == (f"line {3 + 2 * 4000 + 1}", "oops")


def test_a_column_of_a_table_is_text_if_most_of_its_cells_are(file):
    table = file("a,b,c\nx,1,\ny,z,NA\n7,2,?\nz,3,n/a\n")
    assert [table.column(name).is_text for name in "abc"] == [True, False, False]
    assert [table.column(name).is_empty for name in "abc"] == [False, False, True]


# ---- what is asked or refused ----------------------------------------------------

UNCLEAR = {
    "one of two numbers": (
        'a,b\n"1,234",2\n"5,678",4\n',
        "'1,234' may be 1.234 or 1234; add decimal=',' or thousands=','",
    ),
    "one column of decimal commas": ("a\n1,5\n2,5\n", "add decimal=',' if these are decimal commas"),
    "ragged": ("a,b\n1,2\n3,4,5\n6,7\n", "line 1 has 2 cells divided by commas, but line 3 has 3; put quotation marks"),
    "very ragged": ("a,b\n" + "1,2,3\n4,5\n" * 9, "; and 6 more lines"),
    "header only": ("a,b\n", "has the names of columns but no rows"),
    "open quotation mark": ('a,b\n1,"x\n3,4\n', "line 2: a quotation mark is opened there and never closed"),
    "endless quotation mark": ('a,b\n1,"x\n' + "3,4\n" * 50_000, "line 2: .*quotation mark"),
    "nothing": ("", "is empty"),
    "only newlines": ("\n\n", "is empty"),
    "web page": ("\n<!DOCTYPE html>", "is a web page"),
    "JSON that is no table": ('{"a": [1], "b": [2, 3]}', "is JSON but no table; wanted is an array of objects"),
    "broken JSON": ('{"a": 1}\n{"a": ', "is not JSON throughout: .*; correct it, or save the table as CSV"),
    "bytes": (b"\x00\x01\x02" * 40, "is not a table that tkmeans can read"),
    "Excel": (b"PK\x03\x04....", "is a damaged workbook or a zip archive .*; unpack it"),
    "damaged gzip": (b"\x1f\x8b....", "cannot be unpacked: it is damaged"),
    "pickle": (b"\x80\x04\x95....", "is a pickle, which could run any code"),
}


@pytest.mark.parametrize(("content", "complaint"), [*UNCLEAR.values()], ids=[*UNCLEAR])
def test_an_ambiguous_or_unreadable_table_is_refused_in_one_sentence(file, content, complaint):
    with pytest.raises(TableError, match=complaint) as caught:
        file(content).load()
    assert "\n" not in str(caught.value)


def test_an_ambiguous_table_is_read_with_its_layout_given(file):
    text = 'a,b\n"1,234",2\n"5,678",4\n'
    assert numbers(file(text, decimal=","))["a"] == [1.234, 5.678]
    assert numbers(file(text, thousands=","))["a"] == [1234.0, 5678.0]
    assert numbers(file("a\n1,5\n2,5\n", decimal=",")) == {"a": [1.5, 2.5]}
    assert numbers(file("a!b\n1!2\n", delimiter="!")) == {"a": [1.0], "b": [2.0]}
    assert numbers(file("2001,2002\n1,2\n", header=True)) == {"2001": [1.0], "2002": [2.0]}
    assert np.isnan(numbers(file("a,b\n1,2\n", header=False))["x1"][0])


def test_a_table_that_does_not_exist_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*none\.csv"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="holds no file of the kinds"):
        read_table(tmp_path)


# ---- what is written -------------------------------------------------------------

KEPT = {
    "commas": ("a,b\n1,2\n3,4\n", "a,b,cluster,p\n1,2,,\n3,4,1,0.5\n"),
    "decimal commas": ("a;b\r\n1,5;2\r\n3;4", "a;b;cluster;p\r\n1,5;2;;\r\n3;4;1;0,5\r\n"),
    "decimal commas among commas": ('a,b\n"1,5",2\n"3,25",4\n', 'a,b,cluster,p\n"1,5",2,,\n"3,25",4,1,"0,5"\n'),
    "quotes as they were": ('"a", b\n1,"x ""y""\nz"\n"3",w\n', '"a", b,cluster,p\n1,"x ""y""\nz",,\n"3",w,1,0.5\n'),
    "comments": ("# Kiel\na,b\n1,2\n3,4\n", "# Kiel\na,b,cluster,p\n1,2,,\n3,4,1,0.5\n"),
    "blanks": ("a  b\n1  2\n3  4\n", "a  b cluster p\n1  2 NA NA\n3  4 1 0.5\n"),
    "no header": ("1,2\n3,4\n", "1,2,,\n3,4,1,0.5\n"),
    "delimiters at the end": ("a;b\n1;2;\n3;4;\n", "a;b;cluster;p\n1;2;;\n3;4;1;0.5\n"),
    "the same name twice": ("a,a\n1,2\n3,4\n", "a,a,cluster,p\n1,2,,\n3,4,1,0.5\n"),
}


@pytest.mark.parametrize(("before", "after"), [*KEPT.values()], ids=[*KEPT])
def test_a_text_table_is_written_back_with_every_character_it_had(file, before, after):
    assert written(file(before)).decode() == after


def test_chosen_rows_of_a_table_are_written(file):
    assert written(file("a\n1\n2\n3\n"), rows=np.array([2])).decode() == "a,cluster,p\n3,2,0.5\n"


def test_writing_a_column_that_a_table_already_has_is_refused(file):
    with pytest.raises(TableError, match="already has a column 'cluster'"):
        written(file("cluster\n1\n2\n"))


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    rows=st.lists(st.tuples(finite, cells, finite), min_size=2, max_size=8),
    names=st.lists(cells.filter(str.strip), min_size=3, max_size=3),
    delimiter=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    newline=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
@settings(max_examples=60, deadline=None)
def test_any_csv_file_of_python_is_read_exactly_and_written_back_unchanged(
    tmp_path_factory, rows, names, delimiter, decimal, newline, encoding, quoting
):
    names = [f"n{name}" for name in names]  # a name may look like a comment or Excel's own line
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=newline, quoting=quoting)
        writer.writerow(names)
        writer.writerows([repr(a).replace(".", decimal), text, repr(b).replace(".", decimal)] for a, text, b in rows)
    table = read_table(path, Reading(delimiter=delimiter, decimal=decimal, thousands="", header=True))
    assert table.column(table.names[0]).values.tolist() == [a for a, _, _ in rows]
    assert table.column(table.names[2]).values.tolist() == [b for _, _, b in rows]
    before = list(csv.reader(io.StringIO(path.read_bytes().decode(encoding), newline=""), delimiter=delimiter))
    text = written(table).decode(encoding)
    after = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert [row[:3] for row in after] == before
    assert after[0][3:] == ["cluster", "p"]


@given(
    rows=st.lists(st.tuples(finite, st.integers(-999, 999)), min_size=2, max_size=8),
    layout=st.sampled_from([(",", "."), (";", ","), ("\t", "."), (";", "."), ("\t", ",")]),
)
@settings(max_examples=50, deadline=None)
def test_the_layout_of_a_table_of_numbers_is_guessed_correctly(tmp_path_factory, rows, layout):
    delimiter, decimal = layout
    path = tmp_path_factory.getbasetemp() / "guess.csv"
    lines = [f"{a:.17e}".replace(".", decimal) + f"{delimiter}{b}" for a, b in rows]
    path.write_text("\n".join([f"a{delimiter}b", *lines]))
    assert numbers(read_table(path)) == {"a": [a for a, _ in rows], "b": [float(b) for _, b in rows]}


# ---- other formats ---------------------------------------------------------------


@pytest.fixture
def frame():
    return pandas.DataFrame(
        {
            "x": np.array([1.5, np.nan, 3], dtype=np.float32),
            "n": pandas.array([1, None, 3], dtype="Int64"),
            "name": ["a", None, "c"],
            "when": pandas.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
            "yes": [True, False, True],
        }
    )


@pytest.mark.parametrize("format", ["parquet", "feather"])
def test_arrow_files_are_read_by_content_and_keep_every_column(file, frame, tmp_path, format):
    pytest.importorskip("pyarrow")
    getattr(frame, f"to_{format}")(tmp_path / "frame")
    table = file((tmp_path / "frame").read_bytes())
    assert table.column("x").values.dtype == np.float32
    np.testing.assert_array_equal(table.column("n").values, [1, np.nan, 3])
    assert [table.column(name).kind for name in ("name", "when", "yes")] == ["text", "date", "boolean"]
    assert table.column("yes").values.tolist() == [1, 0, 1]
    assert table.column("when").values.tolist() == [19723, 19724, 19725]  # days since 1970
    again = getattr(pandas, f"read_{format}")(io.BytesIO(written(table)))
    pandas.testing.assert_frame_equal(again[list(frame)], frame)
    assert again["cluster"].isna().tolist() == [True, False, False]


def test_an_arrow_stream_is_read_as_a_table(file, frame):
    arrow = pytest.importorskip("pyarrow")
    sink, table = io.BytesIO(), arrow.Table.from_pandas(frame)
    with arrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    assert file(sink.getvalue()).names == list(frame)


def test_reading_a_parquet_file_without_pyarrow_says_what_to_install(file, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow is needed .*: pip install 'tkmeans\[io\]'"):
        file(b"PAR1....")


def test_a_damaged_parquet_file_is_refused_as_a_table(file):
    pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match="cannot be read"):
        file(b"PAR1" + b"\0" * 50)


def as_npy(array, **options):
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def test_npy_files_are_read_as_tables_and_written_with_names(file):
    table = file(as_npy(np.array([[1, 2], [3, 4]], dtype=np.float32)))
    assert numbers(table) == {"x1": [1.0, 3.0], "x2": [2.0, 4.0]}
    again = np.load(io.BytesIO(written(table)))
    assert again.dtype.names == ("x1", "x2", "cluster", "p")
    assert again["x1"].dtype == np.float32
    assert file(written(table)).names == ["x1", "x2", "cluster", "p"]


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros((2, 2, 2)), "shape \\(2, 2, 2\\)"),
        (np.array([["a", "b"]]), "holds <U1"),
        (np.zeros((0, 2)), "is empty"),
        (np.array([{"a": 1}], dtype=object), "holds object"),
    ],
)
def test_npy_files_that_are_no_tables_of_numbers_are_refused(file, array, complaint):
    with pytest.raises(TableError, match=complaint):
        file(as_npy(array, allow_pickle=True))


def test_infinity_in_an_npy_file_is_a_bad_cell(file):
    column = file(as_npy(np.array([[1.0], [np.inf], [2.0]]))).column("x1")
    assert column.bad == (("row 2", "inf"),)


@pytest.mark.parametrize("like", ["out.csv", "out.parquet", "out.feather", "out.npy"])
@pytest.mark.parametrize("origin", ["out.csv", "out.parquet", "out.npy"])
def test_a_table_of_any_format_can_be_written_in_any_other(file, origin, like):
    out = io.BytesIO()
    write_table(file("x;name\n1,5;a\n;b\n3,5;\n"), out, {}, like=origin)
    again = file(written(file(out.getvalue()), like=like))
    np.testing.assert_array_equal(again.column("x").values, [1.5, np.nan, 3.5])
    assert again.cells("name") == ["a", "b", ""]
    assert again.column("cluster").values[1:].tolist() == [1.0, 2.0]
