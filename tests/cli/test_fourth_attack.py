"""What a fourth attack broke in the command and in files, each with a test that fails if it comes back."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tkmeans import DataFile, TKMeans


def column(path, name, delimiter=","):
    """The cells of a column, by Python's own reader."""
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file, delimiter=delimiter)]


def groups(n=60, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, 2)) + np.arange(n)[:, None] % 2 * apart


def lines(X, delimiter=","):
    """The rows as lines of text."""
    return [delimiter.join(f"{x:.3f}" for x in row) for row in X]


def in_turn(labels):
    """Whether labels alternate between two."""
    return len(labels) == 60 and len({*labels[::2]}) == len({*labels[1::2]}) == 1 and labels[0] != labels[1]


# ---- rows and cells of text ------------------------------------------------------------------------


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_row_of_empty_cells_stays_a_row_without_a_cluster(run, table, tmp_path, quote):
    rows = lines(groups(), "\t")
    rows[5] = quote + rows[5].replace("\t", f"{quote}\t")
    file = table("a\tb", *rows[:3], "\t", *rows[3:], "999\t999", name="t.tsv")
    found = run("fit", file, "-k", 2, "--out", tmp_path / "o.tsv", "--json").document
    assert found["outliers"]["lines"] == [63]
    clusters = column(tmp_path / "o.tsv", "cluster", "\t")
    assert clusters[3] == ""
    assert in_turn(clusters[:3] + clusters[4:-1])
    assert [label is None for label in found["labels"]] == [i == 3 for i in range(62)]
    assert "63" in run("outliers", file, "-k", 2).stdout


def test_a_line_of_blanks_is_a_row_in_a_single_column_and_none_elsewhere(run, table, tmp_path):
    values = [f"{x:.3f}" for x in groups()[:, 0]]
    one = table("a", *values[:3], "   ", *values[3:])
    run("fit", one, "-k", 2, "--out", tmp_path / "o.csv")
    clusters = column(tmp_path / "o.csv", "cluster")
    assert clusters[3] == ""
    assert in_turn(clusters[:3] + clusters[4:])
    assert [*map(str.strip, column(tmp_path / "o.csv", "a"))] == [*values[:3], "", *values[3:]]
    two = table("a,b", *lines(groups()), "   ")
    assert run("fit", two, "-k", 2, "--json").document["rows"] == 60


def test_a_missing_last_cell_before_a_trailing_tab_keeps_its_place(run, table, tmp_path):
    rows = [f"{row}\t{i % 7}\t" for i, row in enumerate(lines(groups(), "\t"))]
    rows[4] = rows[4].rstrip("\t")[:-1] + "\t"
    run("fit", table("a\tb\tc", *rows, name="t.tsv"), "-k", 2, "--out", tmp_path / "o.tsv")
    assert column(tmp_path / "o.tsv", "c", "\t") == [str(i % 7) if i != 4 else "" for i in range(60)]
    assert in_turn(column(tmp_path / "o.tsv", "cluster", "\t"))


# ---- categories ------------------------------------------------------------------------------------


def test_a_category_may_have_an_equals_sign_in_its_name(run, table):
    rows = [f"{row},q,{'xyz'[i % 3]}" for i, row in enumerate(lines(groups()))]
    for names in ("a,b,s,s=t", "a,b,r,s=t"):
        found = run("fit", table(names, *rows), "-k", 2, "--encode", "s=t", "--json").document
        assert found["columns"] == ["a", "b", "s=t=x", "s=t=y", "s=t=z"]
        for center in (cluster["center"] for cluster in found["clusters"]):
            assert sum(center[f"s=t={value}"] for value in "xyz") == pytest.approx(1)


def test_a_category_that_could_be_of_two_columns_is_refused(run, table):
    rows = [f"{row},{['u', 't=x', 'v'][i % 3]},{'xyz'[i % 3]}" for i, row in enumerate(lines(groups()))]
    assert "'s=t=x' could be" in run("fit", table("a,b,s,s=t", *rows), "-k", 2, "--encode", "s", code=1).stderr
    clash = table("a,b,s,s=u", *(f"{row},{'tu'[i % 2]},{i % 3}" for i, row in enumerate(lines(groups()))))
    assert "'s=u' could be" in run("fit", clash, "-k", 2, "--encode", "s", code=1).stderr


DAYS = ("2020-01-01", "2020-01-02", "2020-05-01")
SAME = {
    "year": (["2007", "2008", "2009"], ["2007.0", "2008.0", "2009.00"], np.array([2007.0, 2008.0, 2009.0])),
    "f": (["true", "false", "true"], ["True", "False", "TRUE"], np.array([True, False, True])),
    "day": ([*DAYS], [f"{day} 00:00" for day in DAYS], np.array(DAYS, "M8[D]")),
}


@pytest.mark.parametrize("name", SAME)
def test_a_model_knows_the_values_of_a_category_however_a_file_writes_them(run, table, tmp_path, name):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, model, out = groups(), tmp_path / "m.json", tmp_path / "o.csv"
    first, second, typed = SAME[name]
    file, other = (
        table(f"a,b,{name}", *(f"{row},{words[i % 3]}" for i, row in enumerate(lines(X))), name=f"{words[0]}.csv")
        for words in (first, second)
    )
    stored = {"a": np.round(X[:, 0], 3), "b": np.round(X[:, 1], 3), name: typed[np.arange(60) % 3]}
    pq.write_table(pa.table(stored), tmp_path / "t.parquet")
    document = run("fit", file, "-k", 3, "--encode", name, "--model", model, "--out", out, "--json").document
    expected, sizes = column(out, "outlier_pvalue"), [cluster["rows"] for cluster in document["clusters"]]
    for each in (other, tmp_path / "t.parquet"):
        assert "no row has" not in run("predict", model, each, "--out", out).stderr
        assert column(out, "outlier_pvalue") == expected
        again = run("fit", each, "-k", 3, "--encode", name, "--json").document
        assert [cluster["rows"] for cluster in again["clusters"]] == sizes


def test_values_of_a_category_that_no_row_has_are_named_in_predict(run, table, tmp_path):
    file = table("a,b,s", *(f"{row},{'uvw'[i % 3]}" for i, row in enumerate(lines(groups()))))
    run("fit", file, "-k", 2, "--encode", "s", "--model", tmp_path / "m.json")
    other = table("a,b,s", *(f"{row},{'uxy'[i % 3]}" for i, row in enumerate(lines(groups()))), name="other.csv")
    assert "No row has s=v, s=w." in run("predict", tmp_path / "m.json", other).stderr


# ---- numbers of files with types -------------------------------------------------------------------


def written(path, columns):
    """Write columns, in the format that the suffix of the path names, by its own library."""
    pa = pytest.importorskip("pyarrow")
    frame = {name: [None if x != x else x for x in cells] for name, cells in columns.items()}
    if path.suffix == ".csv":
        rows = [",".join(f"{x:.1f}" for x in row) for row in zip(*columns.values(), strict=True)]
        path.write_text("".join(f"{line}\n" for line in [",".join(columns), *rows]))
    elif path.suffix == ".json":
        path.write_text(json.dumps([dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)]))
    elif path.suffix == ".npy":
        np.save(path, np.column_stack([*columns.values()]))
    elif path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [[*columns], *zip(*frame.values(), strict=True)]:
            book.active.append(row)
        book.save(path)
    elif path.suffix == ".feather":
        pytest.importorskip("pyarrow.feather").write_feather(pa.table(frame), path)
    elif path.suffix == ".duckdb":
        with pytest.importorskip("duckdb").connect(str(path)) as base:
            base.register("given", pa.table(frame))
            base.execute("CREATE TABLE t AS FROM given")
    else:
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(frame), path)
    return path


@pytest.mark.parametrize("suffix", ["json", "xlsx"])
@pytest.mark.parametrize("digits", [2, 3])
def test_numbers_of_typed_cells_do_not_depend_on_how_the_text_beside_them_is_written(run, tmp_path, suffix, digits):
    X = np.round(groups(), digits)
    columns = {"a": [*X[:, 0].tolist()], "b": [f"{x:.1f}".replace(".", ",") for x in X[:, 1]]}
    columns["a"][7] = "NA"
    file, out = written(tmp_path / f"t.{suffix}", columns), tmp_path / "o.csv"
    found = run("fit", file, "-k", 2, "--scale", "none", "--json", "--out", out).document
    centers = sorted(cluster["center"]["a"] for cluster in found["clusters"])
    assert centers == pytest.approx([0, 20], abs=1)
    assert column(out, "a")[8:10] == [str(x) for x in X[8:10, 0]]


@pytest.mark.parametrize("suffix", ["csv", "json", "npy", "xlsx", "feather", "duckdb", "parquet"])
def test_a_number_that_stands_for_a_missing_value_does_so_in_every_format(run, tmp_path, suffix):
    X = np.round(groups(), 1)
    X[::5, 1] = -999
    file = written(tmp_path / f"t.{suffix}", {"x1": X[:, 0], "x2": X[:, 1]})
    told = run("fit", file, "-k", 2, "--missing", "-999", "--json").document
    assert any("12 missing values in 12 rows" in note for note in told["notes"])
    assert min(cluster["center"]["x2"] for cluster in told["clusters"]) > -1
    model = TKMeans(2, random_state=0).fit(DataFile(file, missing=["-999"]))
    assert np.min(model.cluster_centers_) > -1


def test_a_word_that_stands_for_a_missing_value_does_so_in_text_with_a_type(run, tmp_path):
    X = groups()
    words = ["u", "v", "unknown"] * 20
    file = written(tmp_path / "t.parquet", {"a": X[:, 0], "b": X[:, 1], "s": words})
    options = ("-k", 2, "--encode", "s", "--missing", "unknown", "--json")
    assert run("fit", file, *options).document["columns"] == ["a", "b", "s=v"]
    infinite = written(tmp_path / "i.parquet", {"a": [np.inf, *X[1:, 0]], "b": X[:, 1]})
    assert "1 missing value" in run("fit", infinite, "-k", 2, "--missing", "inf").stderr


def test_dates_and_truth_are_not_taken_for_a_missing_number(run, tmp_path):
    X, days = groups(), np.arange(60) // 2
    file = written(tmp_path / "t.parquet", {"a": X[:, 0], "f": days % 2 == 0, "n": days % 2})
    notes = run("fit", file, "-k", 2, "--missing", "true", "--missing", "1970-01-02", "--json").document["notes"]
    assert not any("missing" in note for note in notes)


# ---- folders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [20, 40])
@pytest.mark.parametrize(
    ("first", "second"),
    [("12.3 %", "0.123"), ("12 EUR", "12 USD"), ("12.5", "2020-01-02"), ("true", "12.5"), ("12.5", "true")],
)
def test_a_folder_does_not_mix_units_and_kinds_in_one_column(run, table, first, second, most):
    rows = lines(groups())
    file = table("a,b,p", *(f"{row},{first}" for row in rows[:most]), name="f/1.csv")
    table("a,b,p", *(f"{row},{second}" for row in rows[most:]), name="f/2.csv")
    assert "column 'p'" in run("fit", file.parent, "-k", 2, "--columns", "a,p", code=1).stderr
    whole = table("a,b,p", *(f"{row},{[first, second][i >= most]}" for i, row in enumerate(rows)))
    assert "column 'p'" in run("fit", whole, "-k", 2, "--columns", "a,p", code=1).stderr


def test_a_column_that_is_empty_in_one_file_of_a_folder_is_what_it_is_in_the_others(run, table):
    for name, cells in {"1": ("", ""), "2": ("2020-01-02", "7 %"), "3": ("", "")}.items():
        rows = (f"{row},{cells[0]},{cells[1] and f'{i} %'}" for i, row in enumerate(lines(groups())))
        file = table("a,b,d,p", *rows, name=f"f/{name}.csv")
    plan = run("fit", file.parent, "-k", 2, "--columns", "a,p", "--dry-run", "--json").document
    holds = {column["column"]: column["holds"] for column in plan["columns"]}
    assert (holds["d"], holds["p"]) == ("date", "number")


def test_a_file_of_a_folder_without_a_column_is_named_even_if_columns_are_called_by_numbers(run, table):
    file = table("1,2", *lines(groups()), name="f/1.csv")
    table("x,y", *lines(groups()), name="f/2.csv")
    assert "2.csv has no column '1'" in run("fit", file.parent, "-k", 2, "--header", code=1).stderr


def test_a_folder_of_several_decimal_signs_is_written_with_one(run, table, tmp_path):
    X, out = np.round(groups(), 3), tmp_path / "o.csv"
    file = table("a,b,s", *(f"{row},u" for row in lines(X[:30])), name="f/1.csv")
    rows = (f"{b:.3f};{a:.3f};1,5 kg".replace(".", ",") for a, b in X[30:])
    table("b;a;s", *rows, name="f/2.csv")
    run("fit", file.parent, "-k", 2, "--out", out)
    assert [*map(float, column(out, "a"))] == X[:, 0].tolist()
    assert column(out, "a")[:30] == [f"{x:.3f}" for x in X[:30, 0]]
    assert column(out, "s") == ["u"] * 30 + ["1,5 kg"] * 30


# ---- numbers at the ends of their range, and columns without any -----------------------------------


@pytest.mark.parametrize("scale", ["robust", "standard", "minmax", "none"])
@pytest.mark.parametrize("values", [(-1.7e308, 1.7e308, 1.7e308), (1e300, 3e300, 5e300), (1e-310, 4e-310, 9e-310)])
def test_a_column_of_a_spread_beyond_all_bounds_is_refused_by_its_name(run, table, tmp_path, scale, values):
    file = table("a,b,wide", *(f"{row},{values[i % 3]}" for i, row in enumerate(lines(groups()))))
    tiny = scale == "standard" and max(values) < 1  # which scikit-learn takes for a constant
    options = ("--columns", "a,wide", "--scale", scale, "--model", tmp_path / "m.json")
    said = run("fit", file, "-k", 3, *options, code=0 if tiny else 1).stderr
    assert tiny or "the spread of column 'wide'" in said
    assert ("add --scale robust" in said) == (not tiny and scale in ("standard", "minmax"))
    assert "Warning" not in said


def test_a_column_without_values_is_refused_by_its_name_however_it_was_chosen(run, table, tmp_path):
    file = table("a,b,c", *(f"{row}," for row in lines(groups())))
    assert "column 'c' is empty; leave it out" in run("fit", file, "-k", 2, "--keep", "c", code=1).stderr
    np.save(tmp_path / "nan.npy", np.full((9, 2), np.nan))
    assert "column 'x1' is empty; leave it out" in run("fit", tmp_path / "nan.npy", "-k", 2, code=1).stderr


def test_a_column_that_begins_with_missing_values_is_scaled_in_silence(run, table):
    rows = lines(groups())
    file = table("a,b", *(f"{row.split(',')[0]}," for row in rows[:2]), *rows[2:])
    assert "2 missing values" in run("fit", file, "-k", 2).stderr


# ---- what was typed, and what is suggested ---------------------------------------------------------


@pytest.mark.parametrize("sign", ["é", "§", "¦"])
def test_a_delimiter_may_be_any_sign(run, table, sign):
    file = table(f"a{sign}b", *lines(groups(), sign))
    assert run("fit", file, "-k", 2, "--delimiter", sign, "--json").document["columns"] == ["a", "b"]
    assert "is not one sign" in run("fit", file, "-k", 2, "--delimiter", "\0", code=2).stderr


def test_a_prefix_that_the_table_cannot_take_is_refused_before_the_work(run, table, tmp_path):
    file = table("a,é", *lines(groups()), encoding="latin-1")
    for prefix in ("α_", "a\nb", "\t"):
        said = run("fit", file, "-k", 2, "--out", tmp_path / "o.csv", "--prefix", prefix, code=1).stderr
        assert "choose another --prefix" in said
    run("fit", file, "-k", 2, "--out", tmp_path / "o.csv", "--prefix", "ü_")


def test_columns_with_line_breaks_in_their_names_can_be_asked_for(run, table):
    file = table('"x\ny","b\r\nc",d', *(f"{row},{i % 7}" for i, row in enumerate(lines(groups()))))
    found = run("fit", file, "-k", 2, "--columns", "x\ny,b\r\nc", "--json").document
    assert found["columns"] == ["x\ny", "b\r\nc"]


def test_what_is_suggested_next_can_be_typed_and_gives_the_same_clusters(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = groups()
    written(tmp_path / "t.json", {"a": X[:, 0], "b": X[:, 1]})
    options = ("--shape", "elliptical", "--seed", "3", "--max-iter", "50", "--scale", "standard")
    said = run("fit", "t.json", "-k", 2, *options).stdout
    commands = [line.split()[1:] for line in said.splitlines() if line.startswith("  tkmeans")]
    assert [words[0] for words in commands] == ["fit", "report", "outliers", "select-k"]
    for words in commands[:3]:
        assert all(option in words for option in options)
        run(*words)
    assert len(column(tmp_path / "t-clustered.csv", "cluster")) == 60


def test_a_picture_of_an_unknown_format_is_refused_before_the_work(run, tmp_path):
    assert ".webp" in run("demo", "--picture", tmp_path / "d.xyz", "--report", tmp_path / "d.html", code=2).output
    assert not [*tmp_path.iterdir()]


def test_a_table_that_was_no_text_is_written_with_tabs_where_the_name_says_so(run, tmp_path):
    X = groups()
    file = written(tmp_path / "t.parquet", {"a": X[:, 0], "b": X[:, 1]})
    run("fit", file, "-k", 2, "--out", tmp_path / "o.tsv")
    assert in_turn(column(tmp_path / "o.tsv", "cluster", "\t"))


def test_a_smallest_number_of_clusters_beyond_the_rows_is_refused_in_words_of_the_command(run, table):
    file = table("a,b", *lines(groups()))
    assert "--min 200 is more than the 60 rows" in run("select-k", file, "--min", 200, "--max", 300, code=1).stderr


def test_a_width_of_zero_hides_nothing(table):
    file = table("a,b", *lines(groups()))
    code = "import sys; from tkmeans.cli import main; sys.argv[0] = 'tkmeans'; main()"
    call = [sys.executable, "-c", code, "fit", str(file), "-k", "2"]
    done = subprocess.run(call, capture_output=True, env=os.environ | {"COLUMNS": "0"}, check=True, encoding="utf-8")
    assert "No row is an outlier" in done.stdout
    assert "60 rows" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_closed_terminal_leaves_no_half_written_file(tmp_path):
    code = (
        "import os, signal, sys, typer; from tkmeans.atomic import replacing; from tkmeans.cli import commands\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # also under nohup, which has it ignored
        "def app():\n"
        "    with replacing('o.csv') as file:\n"
        "        file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGHUP); signal.sigtimedwait([], 5)\n"
        "commands.app = app; commands.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, [*tmp_path.iterdir()]) == (129, [])


# ---- other formats ---------------------------------------------------------------------------------


def test_times_beyond_those_of_python_are_refused_with_the_name_of_the_file(run, tmp_path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    for kind in (pa.timestamp("s"), pa.duration("s")):
        stored = {"a": groups()[:, 0], "b": groups()[:, 1], "t": pa.array([2**62] * 60, kind)}
        feather.write_feather(pa.table(stored), tmp_path / "t.feather")
        for out in ("o.csv", "o.parquet"):
            said = run("fit", tmp_path / "t.feather", "-k", 2, "--out", tmp_path / out, code=1).stderr
            assert "t.feather cannot be" in said


def test_a_name_of_half_a_character_in_json_is_refused(run, table):
    file = table('[{"\\ud800": 1.5, "b": 2}, {"\\ud800": 2.5, "b": 3}]', name="t.json")
    assert "t.json cannot be read" in run("fit", file, "-k", 1, code=1).stderr


def test_numbers_in_the_first_line_of_a_workbook_are_questioned(run, tmp_path):
    X = groups()
    file = written(tmp_path / "t.xlsx", {2019: X[:, 0], 7: X[:, 1]})
    assert "the first line looks like data" in run("fit", file, "-k", 2).stderr.replace("The", "the")
    file = written(tmp_path / "t.xlsx", {2019: X[:, 0], 2020: X[:, 1]})
    assert "he first line (2019 to 2020) is read as the names" in run("fit", file, "-k", 2).stderr
    assert run("fit", file, "-k", 2, "--header", "--json").document["columns"] == ["2019", "2020"]


def test_fields_of_the_other_byte_order_are_read(run, tmp_path):
    X = groups()
    np.save(tmp_path / "t.npy", np.rec.fromarrays([X[:, 0].astype(">f8"), X[:, 1].astype(">f4")], names="a,b"))
    assert in_turn(run("fit", tmp_path / "t.npy", "-k", 2, "--json").document["labels"])


def test_a_table_whose_name_begins_like_a_query_can_be_read(run, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as base:
        base.execute('CREATE TABLE "from here" AS SELECT range AS n, range * 1.5 AS a FROM range(30)')
        base.execute("CREATE TABLE other AS SELECT 1 AS a")
    assert run("fit", tmp_path / "t.duckdb", "-k", 1, "--table", "from here", "--json").document["rows"] == 30


def test_the_index_of_a_frame_is_no_measurement(run, tmp_path):
    X, order = groups(), np.random.default_rng(1).permutation(100)[:60]
    file = written(tmp_path / "t.parquet", {"a": X[:, 0], "b": X[:, 1], "__index_level_0__": order})
    assert run("fit", file, "-k", 2, "--json").document["columns"] == ["a", "b"]
