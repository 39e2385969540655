"""What the command writes: names of files, formats, columns, and nothing into its own input."""

import os
import shlex
import sys

import numpy as np
import pytest
from pyarrow import parquet
from support.command_tables import TWO_COLUMNS, are_parted, column, groups, lines, positive_groups, said, write_columns

from tkmeans import TKMeans
from tkmeans.tables import Reading, read_table

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- names of files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.ndjson", "a.XZ", "a.csv.lz4", "a.csv.br", "a.duckdb", "a.db", "a.xlsm", "a.xlsb", "a.csv.gz"]
)
def test_a_name_that_promises_another_format_than_is_written_is_refused(run, table, tmp_path, name):
    said = run("fit", table(*TWO_COLUMNS), "-k", 1, "--out", tmp_path / name, code=1).stderr
    assert f"not {os.path.splitext(name)[1].lower()} as in" in said
    assert not (tmp_path / name).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_links_that_lead_in_a_circle_are_no_file_to_write_to(run, table, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for option in ("--out", "--model", "--report"):
        said = run("fit", table(*TWO_COLUMNS), "-k", 1, option, tmp_path / "a", code=1).stderr
        assert "is a link that leads back to itself" in said
    assert (tmp_path / "a").is_symlink()


def test_a_picture_of_an_unknown_format_is_refused_before_the_work(run, tmp_path):
    assert ".webp" in run("demo", "--picture", tmp_path / "d.xyz", "--report", tmp_path / "d.html", code=2).output
    assert not [*tmp_path.iterdir()]


# ---- nothing into the input ----------------------------------------------------------------------


def test_no_result_becomes_a_part_of_the_folder_that_it_is_about(run, table, tmp_path):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    assert "another name" in run("fit", tmp_path / "f", "-k", 2, "--out", tmp_path / "f" / "o.csv", code=1).output
    run("fit", tmp_path / "f" / "a.csv", "-k", 2, "--model", tmp_path / "f" / "model.json")  # no table
    with pytest.warns(UserWarning, match=r"model\.json"):
        fitted = TKMeans(2).fit(str(tmp_path / "f"))
    with pytest.warns(UserWarning, match=r"model\.json"), pytest.raises(FileExistsError, match="another name"):
        fitted.predict(str(tmp_path / "f"), out=tmp_path / "f" / "o.parquet")
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["a.csv", "model.json"]


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


def test_the_result_about_the_current_folder_is_written_beside_it(table, tmp_path, monkeypatch):
    table("a,b", *lines(groups(60)), name="f/a.csv")
    monkeypatch.chdir(tmp_path / "f")
    written = TKMeans(2).fit(".").predict(".")
    assert written == tmp_path / "f.cluster.parquet"
    assert written.exists()


# ---- columns and cells ---------------------------------------------------------------------------


def test_the_labels_in_json_are_marked_like_those_in_the_table(run, csv_file, tmp_path):
    file, model, out = csv_file(), tmp_path / "model.json", tmp_path / "out.csv"
    fit = run("fit", file, "-k", 3, "--model", model, "--out", out, "--mark-outliers", "--json").document
    for document in (fit, run("predict", model, file, "--out", out, "--mark-outliers", "--json").document):
        assert ["" if label is None else str(label) for label in document["labels"]] == column(out, "cluster")
        marked = [i for i, label in enumerate(document["labels"]) if label == -1]
        assert [i + 2 for i in marked] == document["outliers"]["lines"] == [22]
    assert -1 not in run("predict", model, file, "--json").document["labels"]


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


def test_a_table_that_was_no_text_is_written_with_tabs_where_the_name_says_so(run, tmp_path):
    X = groups()
    file = write_columns(tmp_path / "t.parquet", {"a": X[:, 0], "b": X[:, 1]})
    run("fit", file, "-k", 2, "--out", tmp_path / "o.tsv")
    assert are_parted(column(tmp_path / "o.tsv", "cluster", "\t"))


@pytest.mark.parametrize("sign", [",", ";", "|", "\t"])
@pytest.mark.parametrize("name", ["o.tsv", "o.TAB"])
def test_tabs_part_the_cells_of_files_called_so(run, table, sign, name):
    rows = [sign.join([f'"n{sign}{i}"', str(a), str(b)]) for i, (a, b) in enumerate(positive_groups().tolist())]
    run("fit", table(sign.join(["name", "a", "b"]), *rows), "-k", 2, "--out", name)
    found = read_table(name, Reading(delimiter="\t"))
    assert found.names == ["name", "a", "b", "cluster", "probability", "outlier_pvalue"]
    np.testing.assert_array_equal(
        np.column_stack([found.column("a").values, found.column("b").values]), positive_groups()
    )
    assert found.cells("name")[7] == f"n{sign}7"


def test_a_prefix_that_the_table_cannot_take_is_refused_before_the_work(run, table, tmp_path):
    file = table("a,é", *lines(groups()), encoding="latin-1")
    for prefix in ("α_", "a\nb", "\t"):
        said = run("fit", file, "-k", 2, "--out", tmp_path / "o.csv", "--prefix", prefix, code=1).stderr
        assert "choose another --prefix" in said
    run("fit", file, "-k", 2, "--out", tmp_path / "o.csv", "--prefix", "ü_")


@pytest.mark.parametrize(
    ("prefix", "encoding", "reason"),
    [("a\nb", "utf-8", "cannot be part of a name"), ("Ω", "latin-1", "cannot be written in cp1252")],
)
def test_a_prefix_is_refused_with_the_right_reason(run, table, prefix, encoding, reason):
    file = table("ä,b", *(f"{a},{b}" for a, b in positive_groups()), encoding=encoding)
    assert reason in said(run("fit", file, "-k", 2, "--prefix", prefix, "--out", "o.csv", code=1))
