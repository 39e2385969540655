"""What a fifth attack broke in the command and in files, each with a test that fails if it comes back."""

import csv
import gzip
import json
import re
import shlex

import numpy as np
import pytest
from pyarrow import parquet

from tkmeans import DataFile, TKMeans


def column(path, name, delimiter=","):
    """The cells of a column, by Python's own reader."""
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file, delimiter=delimiter)]


def groups(n, apart=20.0):
    """Rows of two groups in turn, far apart."""
    return np.random.default_rng(0).normal(size=(n, 2)).round(3) + np.arange(n)[:, None] % 2 * apart


def lines(X, sign=".", delimiter=","):
    """The rows as lines of text, with this sign before the decimals."""
    return [delimiter.join(f"{x:.3f}".replace(".", sign) for x in row) for row in X]


# ---- the layout of text ------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Preis;Name, Vorname;Ort", "{};Muster{i};Ulm"),  # a comma in the header, as many as in the lines
        ("Preis;Name;Ort", "{};Muster{i};Ulm"),
        ("", "{};Muster{i};Ulm"),
        ("", "{};Muster, Hans{i};Ulm;x;y"),
        ("Wert 1 (x,y);Ort;Wert 2;a, b;b;c;d", "{};Bonn;5,0{i};x0;y;z;w"),
        ("x,y;d1;d2", "{};2021-07-25;2023-09-04"),
        ("ok;x,y", "TRUE;{}"),
    ],
)
def test_a_comma_within_numbers_divides_no_cells(run, table, delimiter, header, row):
    numbers = [f"{x:.2f}".replace(".", ",") for x in groups(60)[:, 0] / 40 + 12.25]  # only the decimals differ
    rows = [row.format(x, i=i % 7).replace(";", delimiter) for i, x in enumerate(numbers)]
    file = table(*[header.replace(";", delimiter)] * bool(header), *rows)
    found = run("fit", file, "-k", 2, "--json").document
    assert len({*found["labels"][::2]}) == len({*found["labels"][1::2]}) == 1
    assert found["labels"][0] != found["labels"][1]
    assert found["carried"]  # the other columns, cut where they should be


def test_dates_between_blanks_are_values_and_words_beside_a_comma_and_blanks_are_asked_about(run, table):
    rows = [f"{row} 2021-07-25 2023-09-04" for row in lines(groups(60)[:, :1], ",")]
    assert run("fit", table("x,y d1 d2", *rows), "-k", 2, "--json").document["columns"] == ["x,y"]
    message = run("fit", table(*("12,5 Main Street" for _ in range(9))), "-k", 2, code=1).output
    assert "--delimiter ," in message
    assert "--delimiter ' '" in message
    named = table("number,street", *(f"{row} Main Street" for row in lines(groups(60))))
    assert run("fit", named, "-k", 2, "--json").document["columns"] == ["number"]


@pytest.mark.parametrize("row", ["{},x;y;z;w", "{},Action|Comedy,3", "{}, x; y", "{}, x y, 3"])
def test_other_signs_within_text_divide_no_cells(run, table, row):
    file = table(*(row.format(x) for x in lines(groups(60)[:, :1])))
    assert "x1" in run("fit", file, "-k", 2, "--json").document["columns"]


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f", "'"])
def test_commas_are_decimal_where_blanks_stand_between_groups_of_digits(run, table, blank):
    sold = np.random.default_rng(1).integers(10_000, 40_000, 60)
    prices = 1.111 + np.arange(60) % 7 / 500 + np.arange(60) % 2 / 2
    pairs = [(f"{n:,}".replace(",", blank), f"{x:.3f}".replace(".", ",")) for n, x in zip(sold, prices, strict=True)]
    file = table("station;sold;price", *(f"s{i};{n};{x}" for i, (n, x) in enumerate(pairs)))
    found = run("fit", file, "-k", 2, "--columns", "price", "--json").document
    centres = sorted(each["center"]["price"] for each in found["clusters"])
    np.testing.assert_allclose(centres, [prices[::2].mean(), prices[1::2].mean()], atol=0.002)


@pytest.mark.parametrize(
    "row",
    [
        's{},12 345,"1,{:03}"',  # between commas, 1,234 is mostly English
        "s{};12 345;1,{:03};1.234",
        "s{};030 12 34 56;1,{:03}",  # blanks, but not between groups of three
        "s{};25.07.2021;1,{:03}",
    ],
)
def test_a_comma_before_three_digits_is_asked_about_whatever_stands_beside_it(run, table, row):
    message = run("fit", table(*(row.format(i, 400 + 7 * i) for i in range(60))), "-k", 2, code=1).output
    assert "'1,407' may be 1.407 or 1407" in message


@pytest.mark.parametrize("more", [(), ("--header",)])
@pytest.mark.parametrize(
    ("above", "delimiter", "names"),
    [
        (["#,Name,HP,Attack"], ",", ["#", "Name", "HP", "Attack"]),
        (["#CHROM\tPOS\tREF\tQUAL"], "\t", ["#CHROM", "POS", "REF", "QUAL"]),
        (["# n label Na y"], " ", ["n", "label", "Na", "y"]),  # as numpy.savetxt writes it
        (["# n,label,x,y"], ",", ["n", "label", "x", "y"]),
        (["# by us", "", "# n;label;x;y"], ";", ["n", "label", "x", "y"]),
    ],
)
def test_a_line_with_a_number_sign_directly_above_the_rows_names_their_columns(
    run, table, tmp_path, more, above, delimiter, names
):
    rows = [f"{7 + i * i},p{i},{row}" for i, row in enumerate(lines(groups(60)))]
    file = table(*above, *(row.replace(",", delimiter) for row in rows))
    found = run("fit", file, "-k", 2, "--columns", ",".join(names[2:]), *more, "--out", tmp_path / "o.csv", "--json")
    assert found.document["columns"] == names[2:]
    assert found.document["rows"] == 60
    written = (tmp_path / "o.csv").read_text().splitlines()
    assert written[: len(above)] == [
        *above[:-1],
        delimiter.join([above[-1], "cluster", "probability", "outlier_pvalue"]),
    ]
    assert [line.rsplit(delimiter, 3)[0] for line in written[len(above) :]] == file.read_text().splitlines()[
        len(above) :
    ]
    assert TKMeans(2).fit(DataFile(file, columns=names[2:])).feature_names_in_.tolist() == names[2:]
    below = table(*above, delimiter.join("abcd"), *(row.replace(",", delimiter) for row in rows))
    assert run("fit", below, "-k", 2, "--columns", "c,d", "--json").document["rows"] == 60  # names below are the names


@pytest.mark.parametrize(
    "above",
    [["#1,2.5,3", "#2,9.5,1"], ["# from Ulm, 2021,b"], ["# a,b,c", ""], ["# a,b"]],  # a row, a remark, not directly
)
def test_lines_taken_for_comments_are_mentioned_where_the_rows_have_no_names(run, table, above):
    rows = [f"z,{row}" for row in lines(groups(60))]
    found = run("fit", table(*above, *rows), "-k", 2, "--json").document
    assert found["rows"] == 60
    (note,) = (note for note in found["notes"] if "x1 to x3" in note)
    assert f"lines with # above the data ({sum(line.startswith('#') for line in above)}) are comments" in note
    assert "--header" not in note
    assert "lines with #" in run("fit", table(*above), "-k", 2, code=1).output  # and nothing else


# ---- what the first rows do not show ------------------------------------------------------------------


def test_a_cell_behind_the_last_delimiter_is_complained_of_wherever_it_stands(run, table, tmp_path):
    for at in (50, 650):
        rows = [f"{row},{'7' if i == at else ''}" for i, row in enumerate(lines(groups(700)))]
        message = run("fit", table("a,b", *rows), "-k", 2, "--out", tmp_path / "o.csv", code=1).output
        assert f"line {at + 2} has 3" in message
        assert not (tmp_path / "o.csv").exists()


def test_empty_cells_in_quotes_behind_the_last_column_leave_the_new_columns_their_places(run, table, tmp_path):
    rows = [f'{row},""' for row in lines(groups(60))]
    run("fit", table("a,b", *rows), "-k", 2, "--out", tmp_path / "o.csv")
    clusters = column(tmp_path / "o.csv", "cluster")
    assert len({*clusters[::2]}) == len({*clusters[1::2]}) == 1
    assert {*clusters} == {"0", "1"}


def test_codes_keep_their_zeros_wherever_the_first_stands(run, table, tmp_path):
    items = [*np.random.default_rng(1).integers(10_000, 99_999, 690).astype(str), *["00123"] * 10]
    file = table("a,b,item", *(f"{row},{item}" for row, item in zip(lines(groups(700)), items, strict=True)))
    out = tmp_path / "o.parquet"
    assert run("fit", file, "-k", 2, "--out", out, "--json").document["columns"] == ["a", "b"]
    assert parquet.read_table(out)["item"].to_pylist() == items
    with pytest.warns(UserWarning, match="item .a code with leading zeros"):
        assert TKMeans(2).fit(file).n_features_in_ == 2


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_codes_of_a_folder_keep_their_zeros_whichever_file_has_them(run, table, tmp_path, order):
    X, items = groups(80), [f"{i * 1237 % 99991:05}" for i in range(20, 100)]
    rows = [f"{row},{item}" for row, item in zip(lines(X), items, strict=True)]
    with_zeros = [item[0] == "0" for item in items]
    for name, wanted in zip(order, (False, True), strict=True):
        table("a,b,item", *(row for row, has in zip(rows, with_zeros, strict=True) if has is wanted), name=f"f/{name}")
    out = tmp_path / "o.parquet"
    assert run("fit", tmp_path / "f", "-k", 2, "--out", out, "--json").document["columns"] == ["a", "b"]
    assert sorted(parquet.read_table(out)["item"].to_pylist()) == sorted(items)


@pytest.mark.parametrize("first", ["", "1"])
def test_what_a_column_holds_does_not_depend_on_where_its_first_cell_stands(run, table, first):
    late = [f"{['true', 'false'][i % 2]},${i % 7}.50,2020-01-{10 + i % 9},1e{i % 3}" for i in range(150)]
    rows = [f"{row},{rest}" for row, rest in zip(lines(groups(700)), [",,,"] * 550 + late, strict=True)]
    rows = rows if not first else rows[::-1]
    plan = run("fit", table("a,b,c,d,e,f", *rows), "--dry-run", "--json").document["columns"]
    assert [each["holds"] for each in plan] == ["number", "number", "boolean", "number", "date", "number"]


@pytest.mark.parametrize("word", ["-999,5", "-999,50", "-999.5"])
@pytest.mark.parametrize("at", [5, 650])
def test_a_number_with_a_comma_is_missing_however_it_is_written(run, table, word, at):
    rows = lines(groups(700), ",", ";")
    rows[at] = "-999,50;1,5"
    found = run("fit", table("a;b", *rows), "-k", 2, "--missing", word, "--json").document
    assert any("1 missing value" in note for note in found["notes"])
    document = table(json.dumps([{"a": x, "b": y} for x, y in groups(60)] + [{"a": -999.5, "b": 1.0}]), name="t.json")
    found = run("fit", document, "-k", 2, "--missing", word, "--json").document
    assert any("1 missing value" in note for note in found["notes"])


# ---- formats and folders ------------------------------------------------------------------------------


def test_arrays_a_line_are_rows_of_json(run, table):
    X = groups(60)
    file = table(*(json.dumps([*row]) for row in X), name="t.jsonl")
    found = run("fit", file, "-k", 2, "--json").document
    assert found["columns"] == ["x1", "x2"]
    named = table(
        '["Name", "Score", "Level"]', *(json.dumps([f"n{i}", *row]) for i, row in enumerate(X)), name="n.jsonl"
    )
    again = run("fit", named, "-k", 2, "--json").document
    assert again["columns"] == ["Score", "Level"]
    assert again["labels"] == found["labels"]


@pytest.mark.parametrize("orient", ["columns", "index", "table", "split", "numbers"])
def test_json_that_is_no_table_is_refused_with_the_form_that_is_one(run, table, orient):
    X, names = groups(60), ["a", "b"]
    rows = {str(i): dict(zip(names, row, strict=True)) for i, row in enumerate(X)}
    forms = {"columns": {name: {i: row[name] for i, row in rows.items()} for name in names}, "index": rows}
    forms |= {"table": {"schema": {"fields": names}, "data": [*rows.values()]}, "numbers": [*X[:, 0]]}
    forms |= {"split": {"columns": names, "index": [*rows], "data": X.tolist()}}
    message = run("fit", table(json.dumps(forms[orient], indent=1), name="t.json"), "-k", 2, code=1).output
    assert "is JSON but no table" in message
    assert "orient='records'" in message


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_names_and_cells_may_begin_with_the_sign_of_markup(run, table, delimiter):
    rows = lines(groups(60), delimiter=delimiter)
    file = table(delimiter.join(["<OPEN>", "<CLOSE>"]), *rows)
    assert run("fit", file, "-k", 2, "--json").document["columns"] == ["<OPEN>", "<CLOSE>"]
    cells = table("<LOD,1,2", *lines(np.column_stack([groups(60), groups(60)[:, 0]])))
    assert "--missing '<LOD'" in run("fit", cells, "--no-header", "-k", 2, code=1).output
    for page in ("<!DOCTYPE html>", "<html><body>", "<html lang='en'>\n  <head>", "<?xml version='1.0'?>\n<table>"):
        assert "is a web page" in run("fit", table(page, "<p>1,2</p>", name="p.csv"), "-k", 2, code=1).output


def test_a_folder_names_what_it_does_not_read_and_passes_over_parts_without_rows(run, table, tmp_path):
    X = lines(groups(60))
    table("a,b", *X, name="f/a.csv")
    table("a,b", *X, name="f/_b.csv")
    table("a,b", name="f/z.csv")
    table(name="f/y.csv")
    table(name="f/_SUCCESS")
    table("a,b", *X, name="f/k=1/e.csv")
    document = run("fit", tmp_path / "f", "-k", 2, "--json").document
    assert document["rows"] == 120
    notes = " ".join(document["notes"])
    assert "_b.csv" in notes
    assert "without rows: y.csv, z.csv" in notes
    assert "those of folders: k" in notes
    assert "_SUCCESS" not in notes
    table("a,b", name="none/z.csv")
    assert "no file with rows" in run("fit", tmp_path / "none", "-k", 2, code=1).output


def test_no_result_becomes_a_part_of_the_folder_that_it_is_about(run, table, tmp_path):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    assert "another name" in run("fit", tmp_path / "f", "-k", 2, "--out", tmp_path / "f" / "o.csv", code=1).output
    run("fit", tmp_path / "f" / "a.csv", "-k", 2, "--model", tmp_path / "f" / "model.json")  # no table
    with pytest.warns(UserWarning, match=r"model\.json"):
        fitted = TKMeans(2).fit(str(tmp_path / "f"))
    with pytest.warns(UserWarning, match=r"model\.json"), pytest.raises(FileExistsError, match="another name"):
        fitted.predict(str(tmp_path / "f"), out=tmp_path / "f" / "o.parquet")
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["a.csv", "model.json"]


def test_the_result_about_the_current_folder_is_written_beside_it(table, tmp_path, monkeypatch):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    monkeypatch.chdir(tmp_path / "f")
    written = TKMeans(2).fit(".").predict(".")
    assert written == tmp_path / "f.cluster.parquet"
    assert written.exists()


# ---- usage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("outliers", "--level", 2),
        ("outliers", "--level", "nan"),
        ("outliers", "--level", -1),
        ("fit", "--delimiter", ";;"),
        ("fit", "--encoding", "nope"),
        ("fit", "--prefix", "=x"),
        ("fit", "--thousands", ".", "--decimal", "."),
    ],
)
def test_options_that_no_table_could_have_are_wrong_usage(run, table, words):
    run(words[0], table("a,b", *lines(groups(60))), *words[1:], "-k", 2, code=2)


def test_one_sign_cannot_stand_before_decimals_and_between_groups(table):
    file = table("a,b", *lines(groups(60)))
    with pytest.raises(ValueError, match=r"decimal='\.' and thousands='\.' must differ"):
        TKMeans(2).fit(DataFile(file, decimal=".", thousands="."))


# ---- cells, notes and sentences ------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["-nan", "+nan", "NaN"])
@pytest.mark.parametrize("more", [(), ("--missing", "x")])
def test_nan_is_missing_whatever_its_sign(run, table, word, more):
    file = table("a,b", *lines(groups(60)), f"{word},1", f"{word},21")
    assert any("2 missing" in note for note in run("fit", file, "-k", 2, *more, "--json").document["notes"])


def test_errors_in_cells_of_a_workbook_are_named(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["a", "b"], *groups(60).tolist()]:
        book.active.append(row)
    book.active["B7"] = "#DIV/0!"
    book.active["B7"].data_type = "e"
    book.save(tmp_path / "t.xlsx")
    found = run("fit", tmp_path / "t.xlsx", "-k", 2, "--json").document
    assert any("#DIV/0!" in note for note in found["notes"])


def test_whole_numbers_of_a_workbook_keep_all_digits(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, keys = openpyxl.Workbook(), [1_000_000_000_000_065 + i for i in range(59)] + [7]
    for row in [["a", "b", "k"], *([*row, key] for row, key in zip(groups(60).tolist(), keys, strict=True))]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    run("fit", tmp_path / "t.xlsx", "-k", 2, "--without", "k", "--out", tmp_path / "o.csv")
    assert column(tmp_path / "o.csv", "k") == [*map(str, keys)]


def test_whole_numbers_of_text_stay_whole_in_other_formats(run, table, tmp_path):
    ids = [str(1000 + 7 * i) for i in range(60)]
    counts = ["" if i == 3 else str(i % 5 - 2) for i in range(60)]
    rows = [",".join(cells) for cells in zip(lines(groups(60)), ids, counts, strict=True)]
    run("fit", table("a,b,id,n", *rows), "-k", 2, "--out", tmp_path / "o.parquet")
    written = parquet.read_table(tmp_path / "o.parquet")
    assert written["id"].to_pylist() == [*map(int, ids)]
    assert written["n"].to_pylist() == [int(n) if n else None for n in counts]
    assert [str(written.schema.field(name).type) for name in "ab"] == ["double", "double"]
    run("fit", table("a,b,id,n", *rows), "-k", 2, "--out", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy")["id"].tolist() == [*map(int, ids)]
    assert np.isnan(np.load(tmp_path / "o.npy")["n"][3])


def test_notes_name_rows_by_their_lines_and_only_options_that_there_are(run, table, tmp_path):
    X = np.vstack([groups(200), np.random.default_rng(1).normal(60, 0.1, size=(20, 2))])
    file, model = table("a,b", *lines(X)), tmp_path / "m.json"
    run("fit", table("a,b", *lines(X[:200]), name="near.csv"), "-k", 2, "--model", model, "--scale", "none")
    note = next(line for line in run("predict", model, file).stderr.splitlines() if "lie together" in line)
    assert "such as line 202, line 203, line 204" in note
    assert "-k" not in note
    assert "--min-cluster-size" not in note
    note = run("fit", file, "-k", 2, "--max-iter", 1).stderr
    assert "raise --max-iter" in note
    assert "tol" not in note


def test_sentences_about_encoded_numbers_name_their_column(run, table):
    rows = [f"{row},{2 + i % 2}" for i, row in enumerate(lines(groups(60)))]
    rows += [f"{row},4" for row in lines(groups(30) - 40)]
    found = run("fit", table("a,b,grade", *rows), "-k", 3, "--encode", "grade", "--json").document
    assert any("% grade 4" in each["sentence"] for each in found["clusters"])
    assert all("% 3" not in each["sentence"] and "% 4" not in each["sentence"] for each in found["clusters"])


def test_a_compressed_file_is_read_as_text(run, table, tmp_path):
    file = table("a,b", *lines(groups(60)))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert "Read as text compressed by gzip." in run("fit", tmp_path / "t.csv.gz", "-k", 2).stderr


@pytest.mark.parametrize("name", [".", "./", ".."])
def test_the_current_folder_and_the_one_above_it_are_inputs_like_others(run, table, tmp_path, monkeypatch, name):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    (tmp_path / "f" / "below").mkdir()
    monkeypatch.chdir(tmp_path / "f" / ("below" if name == ".." else "."))
    suggested = run("fit", name, "-k", 2, "--report", tmp_path / "r.html").stdout
    assert "f-clustered" in suggested
    run("fit", name, "-k", 2, "--out", tmp_path / "o.csv")
    assert len(column(tmp_path / "o.csv", "cluster")) == 60


def test_neither_models_nor_reports_are_written_to_the_folder_that_is_the_input(run, table, tmp_path, monkeypatch):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    monkeypatch.chdir(tmp_path / "f")
    for words in (("fit", ".", "--model", "m.json"), ("fit", ".", "--report", "r.html"), ("report", ".")):
        assert "choose another name" in run(*words, "-k", 2, code=1).output
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["a.csv"]
    suggested = run("fit", ".", "-k", 2).stdout
    typed = next(line for line in suggested.splitlines() if "tkmeans report" in line)
    assert shlex.split(typed)[: typed.split().index("--out") + 2][-1] == str(tmp_path / "report.html")
    run("report", ".", "-k", 2, "--out", tmp_path / "report.html")
    assert (tmp_path / "report.html").exists()


def test_a_column_that_a_file_of_a_folder_lacks_is_named_with_the_files_that_have_it(table, tmp_path):
    for name in "bc":
        table("a,b", *lines(groups(60)), name=f"f/{name}.csv")
    result = TKMeans(2).fit(tmp_path / "f").predict(tmp_path / "f" / "b.csv")
    with pytest.raises(
        ValueError, match=rf"b\.csv has no column 'cluster'; .*; 'cluster' is in {re.escape(str(result))}$"
    ):
        TKMeans(2).fit(tmp_path / "f")
