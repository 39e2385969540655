"""Files as people have them: each is read as expected or refused in one sentence, by `fit(path)` and by the command."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import warnings
import zipfile
from contextlib import closing

import numpy as np
import pytest

from tkmeans import DataFile, TKMeans
from tkmeans.cli import screen

pytest.importorskip("pyarrow", reason="needs the extra io")
pandas = pytest.importorskip("pandas")

N = 40
RNG = np.random.default_rng(0)
XY = np.round(RNG.normal(np.repeat([[1, 20], [9, 40]], N // 2, axis=0), [0.5, 2]), 2)
SPECIES = np.repeat(["Adélie", "Gentoo"], N // 2)
FRAME = pandas.DataFrame({"x": XY[:, 0], "species": SPECIES, "y": XY[:, 1]})
HOLES = XY.copy()
HOLES[3, 0] = HOLES[8, 1] = HOLES[21, 0] = np.nan


def text(rows=None, *, names=("x", "species", "y"), delimiter=",", decimal=".", end="\n"):
    """A CSV file: by default x, species and y."""
    rows = zip(XY[:, 0], SPECIES, XY[:, 1], strict=True) if rows is None else rows
    cells = [[c if isinstance(c, str) else f"{c!s}".replace(".", decimal) for c in row] for row in rows]
    return end.join(delimiter.join(row) for row in [*([names] if names else []), *cells]) + end


def beside(*columns, **options):
    """x and y with further columns of text before them."""
    return text(zip(*columns, XY[:, 0], XY[:, 1], strict=True), **options)


def written(write):
    """The bytes that a function writes to a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def sqlite_database():
    with closing(sqlite3.connect(":memory:")) as base:
        return base.execute("CREATE TABLE t (x)").connection.serialize()


def with_arrow(stream):
    import pyarrow as pa

    table, file = pa.Table.from_pandas(FRAME), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def zstd(data):
    import pyarrow as pa

    return pa.compress(data, codec="zstd", asbytes=True)


def workbook(engine="openpyxl", **sheets):
    def write(file):
        with pandas.ExcelWriter(file, engine=engine) as book:
            for name, (frame, options) in sheets.items():
                frame.to_excel(book, sheet_name=name, index=False, **options)

    pytest.importorskip({"openpyxl": "openpyxl", "odf": "odf"}[engine])
    return written(write)


def database(folder, **tables):
    duckdb = pytest.importorskip("duckdb")
    path = folder / "made.duckdb"
    with duckdb.connect(str(path)) as base:
        for name, frame in tables.items():
            base.register("frame", frame)
            base.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    return path.read_bytes()


def lost(cells, marks):
    return [mark if np.isnan(c) else str(c) for c, mark in zip(cells, marks * N, strict=False)]


def money(values):
    return [f'"${1000 * value:,.2f}"' for value in values]


# What stands in the file, the columns that are clustered by, and their values.
READ = {
    "plain.csv": text,
    "semicolons.csv": lambda: text(delimiter=";", decimal=","),
    "tabs.tsv": lambda: text(delimiter="\t"),
    "bars.txt": lambda: text(delimiter="|"),
    "bars and decimal commas.txt": lambda: text(delimiter="|", decimal=","),
    "blanks.dat": lambda: "\n".join(f"{x:8} {s:>9}   {y}" for x, s, y in [("x", "species", "y"), *FRAME.to_numpy()]),
    "windows.csv": lambda: text(end="\r\n"),
    "macintosh.csv": lambda: text(end="\r"),
    "gzip.csv.gz": lambda: gzip.compress(text().encode()),
    "bzip2.csv.bz2": lambda: bz2.compress(text().encode()),
    "zstandard.csv.zst": lambda: zstd(text().encode()),
    "xz.csv.xz": lambda: lzma.compress(text().encode()),
    "gzip without its suffix.csv": lambda: gzip.compress(text(delimiter=";", decimal=",").encode()),
    "latin1.csv": lambda: text(delimiter=";").encode("latin-1"),
    "utf16.txt": lambda: text(delimiter="\t").encode("utf-16"),
    "byte-order mark.csv": lambda: text().encode("utf-8-sig"),
    "no header.csv": lambda: text(names=None),
    "excel's line.csv": lambda: "sep=;\n" + text(delimiter=";", decimal=","),
    "comments.csv": lambda: "# a probe\n# in Kiel\n" + text(),
    "empty lines.csv": lambda: text().replace("\n", "\n\n"),
    "line breaks in quotes.csv": lambda: text().replace("Gentoo", '"Gen\ntoo, ""big"""'),
    "R's row names.txt": lambda: text(
        [(f'"r{i}"', *row) for i, row in enumerate(FRAME.to_numpy())], names=["x", "species", "y"], delimiter="\t"
    ),
    "trailing delimiters.csv": lambda: text(delimiter=";").replace("\n", ";\n").replace("y;\n", "y\n"),
    "thousands.csv": lambda: text(
        ([f'"{1000 * x:,.2f}"', s, y] for x, s, y in FRAME.to_numpy()), names=["x", "species", "y"]
    ),
    "currency.csv": lambda: text(zip(money(XY[:, 0]), SPECIES, XY[:, 1], strict=True)),
    "euros.csv": lambda: text(
        zip([f"{1000 * x:.2f} €".replace(".", ",") for x in XY[:, 0]], SPECIES, XY[:, 1], strict=True),
        delimiter=";",
        decimal=",",
    ),
    "per cent.csv": lambda: text(zip([f"{x} %" for x in XY[:, 0]], SPECIES, XY[:, 1], strict=True)),
    "missing values.csv": lambda: text(
        zip(lost(HOLES[:, 0], ["NA", "?", "-", ""]), SPECIES, lost(HOLES[:, 1], ["n/a"]), strict=True)
    ),
    "typographers' minus.csv": lambda: text(zip([f"−{x}" for x in np.abs(XY[:, 0])], SPECIES, XY[:, 1], strict=True)),
    "dates.csv": lambda: beside(
        [f"2024-01-{1 + i % 28:02}" for i in range(N)], SPECIES, names=["when", "species", "x", "y"]
    ),
    "a row number, an id, a zip code and a constant.csv": lambda: beside(
        [str(i) for i in range(1, N + 1)],
        [str(i * 7919 % 1009) for i in range(N)],
        [f"{10001 + i * 37 % 90:05}" for i in range(N)],
        [f"{i * 31 % 97:04}" for i in range(N)],
        ["7"] * N,
        SPECIES,
        names=["", "customer_id", "zip", "branch", "version", "species", "x", "y"],
    ),
    "json lines.jsonl": lambda: FRAME.to_json(orient="records", lines=True, force_ascii=False),
    "json array.json": lambda: FRAME.to_json(orient="records", indent=1),
    "json columns.json": lambda: json.dumps(FRAME.to_dict(orient="list")),
    "json rows.json": lambda: json.dumps(FRAME.to_numpy().tolist()),
    "table.parquet": lambda: written(FRAME.to_parquet),
    "parquet by another name.csv": lambda: written(FRAME.to_parquet),
    "table.feather": lambda: with_arrow(stream=False),
    "stream.arrows": lambda: with_arrow(stream=True),
    "workbook.xlsx": lambda: workbook(Birds=(FRAME, {})),
    "workbook with a first empty sheet and a margin.xlsx": lambda: workbook(
        Empty=(pandas.DataFrame(), {}), Birds=(FRAME, {"startrow": 3, "startcol": 2})
    ),
    "workbook.ods": lambda: workbook("odf", Birds=(FRAME, {})),
    "matrix.npy": lambda: written(lambda file: np.save(file, XY)),
    "matrix by columns.npy": lambda: written(lambda file: np.save(file, np.asfortranarray(XY))),
    "records.npy": lambda: written(lambda file: np.save(file, FRAME[["x", "y"]].to_records(index=False))),
    "matrix.npy.gz": lambda: gzip.compress(written(lambda file: np.save(file, XY))),
}
SCALED = {"thousands.csv": 1000, "currency.csv": 1000, "euros.csv": 1000, "typographers' minus.csv": -1}


def expected(name):
    X = HOLES.copy() if name == "missing values.csv" else XY.copy()
    X[:, 0] = np.abs(X[:, 0]) * -1 if SCALED.get(name) == -1 else X[:, 0] * SCALED.get(name, 1)
    return np.round(X, 2)


def fitted(file):
    """A fit that does not mind what is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return TKMeans(2, random_state=0).fit(file)


def content(make, folder):
    made = make(folder) if make.__code__.co_argcount and make is not text else make()
    return made.encode() if isinstance(made, str) else made


@pytest.mark.parametrize("name", READ)
def test_a_file_of_the_zoo_is_read_as_expected_by_fit_and_by_the_command(name, tmp_path, run):
    path = tmp_path / name
    path.write_bytes(content(READ[name], tmp_path))
    theirs = TKMeans(2, random_state=0).fit(expected(name))
    ours = fitted(path)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-12)
    document = run("fit", path, "-k", 2, "--shape", "round", "--scale", "none", "--json").document
    centers = [[*cluster["center"].values()] for cluster in document["clusters"]]
    np.testing.assert_array_equal(centers, ours.cluster_centers_)
    assert document["labels"] == ours.labels_.tolist()
    if hasattr(ours, "feature_names_in_"):
        assert document["columns"] == ours.feature_names_in_.tolist()


REFUSED = {
    "empty.csv": (lambda: "", "is empty"),
    "names only.csv": (lambda: "x,y\n", "has the names of columns but no rows; add header=False"),
    "ragged.csv": (lambda: text() + "1,2\n", rf"line {N + 2} has 2; put quotation marks"),
    "stray word.csv": (lambda: text().replace(str(XY[5, 0]), "broken"), r"line 7: 'broken'; add missing=\['broken'\]"),
    "stray word deep in a long file.csv": (
        lambda: beside(SPECIES, names=["s", "x", "y"]) + text(names=None, rows=[["a", 1.5, 2.5]] * 70_000) + "a,?!,2\n",
        rf"line {70_000 + N + 2}: '\?!'; add missing",
    ),
    "infinity.csv": (lambda: text() + "inf,Gentoo,3\n", rf"line {N + 2}: 'inf'"),
    "one number or another.csv": (
        lambda: text([(f'"{i},234"', f'"{i},{100 + i}"') for i in range(1, N)], names=["x", "y"]),
        "may be 1.234 or 1234; add decimal=',' or thousands=','",
    ),
    "mixed currencies.csv": (lambda: text([("$5", 1.5)] * 9 + [("€5", 1.5)], names=["x", "y"]), r"line 11: '€5'"),
    "open quote.csv": (lambda: text() + '1,"Gen\n2,y,3\n', "a quotation mark is opened there and never closed"),
    "text only.csv": (lambda: text(zip(SPECIES, SPECIES, strict=True), names=["a", "b"]), "no column of numbers"),
    "page.html": (lambda: "<!DOCTYPE html><table></table>", "is a web page or other markup; download the table"),
    "object.pkl": (lambda: pickle.dumps(FRAME, protocol=4), "is a pickle, which could run any code; save the table"),
    "archive.zip": (
        lambda: written(lambda file: zipfile.ZipFile(file, "w").writestr("a.csv", text())),
        "is a damaged workbook or a zip archive .*; unpack it",
    ),
    "document.pdf": (lambda: "%PDF-1.7", "is a PDF document; copy the table"),
    "picture.png": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "is not a table that tkmeans can read"),
    "damaged.csv.gz": (lambda: gzip.compress(text().encode())[:-30], "cannot be unpacked: it is damaged"),
    "damaged.parquet": (lambda: written(FRAME.to_parquet)[:-10], "cannot be read"),
    "no parquet.parquet": (text, "does not begin like a .parquet file; it is damaged or misnamed"),
    "nested.json": (lambda: json.dumps({"meta": {"a": 1}, "rows": "none"}), "no column of numbers|no table"),
    "half.jsonl": (lambda: FRAME.to_json(orient="records", lines=True)[:-9], "is not JSON throughout"),
    "two tables.duckdb": (lambda folder: database(folder, birds=FRAME, fish=FRAME), "add table='...' for one"),
    "sqlite.db": (
        sqlite_database,
        "is an SQLite database; export a table",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_of_the_zoo_is_refused_in_the_same_sentence_by_fit_and_by_the_command(name, tmp_path, run):
    make, complaint = REFUSED[name]
    path = tmp_path / name
    path.write_bytes(content(make, tmp_path))
    with pytest.raises(ValueError, match=complaint) as caught:
        fitted(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    done = run("fit", path, "-k", 2, code=1)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == f"Error: {screen.as_options(sentence)}"


def test_a_database_is_read_by_table_and_by_query(tmp_path, run):
    path = tmp_path / "birds.duckdb"
    path.write_bytes(database(tmp_path, birds=FRAME, fish=FRAME[:5]))
    for table, rows in (("birds", XY), ("SELECT x, y FROM birds WHERE species = 'Gentoo'", XY[N // 2 :])):
        theirs = TKMeans(2, random_state=0).fit(rows)
        ours = fitted(DataFile(path, table=table))
        np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
        document = run("fit", path, "-k", 2, "--shape", "round", "--scale", "none", "--json", "--table", table).document
        assert document["rows"] == len(rows)


def test_a_sheet_of_a_workbook_is_chosen_by_name(tmp_path, run):
    path = tmp_path / "birds.xlsx"
    path.write_bytes(workbook(Notes=(pandas.DataFrame({"a": [1, 2]}), {}), Birds=(FRAME, {})))
    said = run("fit", path, "-k", 2, "--table", "birds", code=1).stderr
    assert "has no sheet 'birds'; it has 'Notes', 'Birds'" in said
    assert run("fit", path, "-k", 2, "--table", "Birds", "--json").document["rows"] == N


def test_a_folder_of_files_is_one_table(tmp_path, run):
    (tmp_path / "a.csv").write_text(text(FRAME[:15].to_numpy()))
    (tmp_path / "b.csv").write_text(text(FRAME[15:].to_numpy(), delimiter=";", decimal=","))
    theirs = TKMeans(2, random_state=0).fit(XY)
    with pytest.warns(UserWarning, match=r"species \(text\)"):
        ours = TKMeans(2, random_state=0).fit(tmp_path)
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert run("fit", tmp_path, "-k", 2, "--shape", "round", "--json").document["labels"] == ours.labels_.tolist()


def test_the_same_name_two_thousand_times_is_numbered_in_a_moment(tmp_path):
    from tkmeans.tables import read_table

    (tmp_path / "wide.csv").write_text(",".join(["a"] * 2000) + "\n" + ",".join(["1.5"] * 2000) + "\n")
    names = read_table(tmp_path / "wide.csv").names
    assert names == ["a", *(f"a_{i}" for i in range(2, 2001))]


def test_rows_of_a_workbook_are_counted_as_its_sheet_counts_them(tmp_path, run):
    frame = FRAME.astype({"x": object})
    frame.loc[7, "x"] = "broken"
    gap = pandas.concat([frame[:4], pandas.DataFrame(index=[0], columns=frame.columns), frame[4:]])
    path = tmp_path / "gap.xlsx"
    path.write_bytes(workbook(Birds=(gap, {"startrow": 2})))
    assert "row 12: 'broken'; add --missing broken" in run("fit", path, "-k", 2, code=1).stderr
