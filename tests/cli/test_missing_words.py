"""What counts as missing: words, numbers and signs for it, in every format, in the fit and in predict."""

import json

import numpy as np
import pytest
from pyarrow import feather, parquet
from support.command_tables import amounts, groups, lines, positive_groups, write_columns

from tkmeans import DataFile, ModelFileError, TKMeans, load
from tkmeans.persistence.encoding import checksum

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- what a person calls missing -----------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "json", "npy", "xlsx", "feather", "duckdb", "parquet"])
def test_a_number_that_stands_for_a_missing_value_does_so_in_every_format(run, tmp_path, suffix):
    X = np.round(groups(), 1)
    X[::5, 1] = -999
    file = write_columns(tmp_path / f"t.{suffix}", {"x1": X[:, 0], "x2": X[:, 1]})
    told = run("fit", file, "-k", 2, "--missing", "-999", "--json").document
    assert any("12 missing values in 12 rows" in note for note in told["notes"])
    assert min(cluster["center"]["x2"] for cluster in told["clusters"]) > -1
    model = TKMeans(2, random_state=0).fit(DataFile(file, missing=["-999"]))
    assert np.min(model.cluster_centers_) > -1


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


def test_a_word_that_stands_for_a_missing_value_does_so_in_text_with_a_type(run, tmp_path):
    X = groups()
    words = ["u", "v", "unknown"] * 20
    file = write_columns(tmp_path / "t.parquet", {"a": X[:, 0], "b": X[:, 1], "s": words})
    options = ("-k", 2, "--encode", "s", "--missing", "unknown", "--json")
    assert run("fit", file, *options).document["columns"] == ["a", "b", "s=v"]
    infinite = write_columns(tmp_path / "i.parquet", {"a": [np.inf, *X[1:, 0]], "b": X[:, 1]})
    assert "1 missing value" in run("fit", infinite, "-k", 2, "--missing", "inf").stderr


def test_dates_and_truth_are_not_taken_for_a_missing_number(run, tmp_path):
    X, days = groups(), np.arange(60) // 2
    file = write_columns(tmp_path / "t.parquet", {"a": X[:, 0], "f": days % 2 == 0, "n": days % 2})
    notes = run("fit", file, "-k", 2, "--missing", "true", "--missing", "1970-01-02", "--json").document["notes"]
    assert not any("missing" in note for note in notes)


@pytest.mark.parametrize("word", ["-nan", "+nan", "NaN"])
@pytest.mark.parametrize("more", [(), ("--missing", "x")])
def test_nan_is_missing_whatever_its_sign(run, table, word, more):
    file = table("a,b", *lines(groups(60)), f"{word},1", f"{word},21")
    assert any("2 missing" in note for note in run("fit", file, "-k", 2, *more, "--json").document["notes"])


# ---- columns of text -----------------------------------------------------------------------------

N = 60
WORDS = ["NA", "None", "-", "--", "?", "null", "n/a", ".", "NaN"]  # which are missing values among numbers


def countries(n=N):
    """Cells of text, some of which are words for a missing value elsewhere."""
    return [WORDS[i // 2 % len(WORDS)] if i % 2 else f"c{i}" for i in range(n)]


@pytest.mark.parametrize("form", ["parquet", "feather", "npy", "tsv", "csv"])
@pytest.mark.parametrize("folder", [False, True])
def test_words_for_missing_values_stay_in_columns_of_text(run, table, form, folder):
    rows = [f"{word},{a},{b}" for word, (a, b) in zip(countries(), positive_groups(), strict=True)]
    file = table("iso,a,b", *rows, name="f/1.csv")
    run("fit", file.parent if folder else file, "-k", 2, "--out", f"o.{form}")
    if form in ("csv", "tsv"):
        with open(f"o.{form}") as lines:
            found = [line.split("\t" if form == "tsv" else ",")[0] for line in lines][1:]
    elif form == "npy":
        found = np.load("o.npy")["iso"].tolist()
    else:
        reader = parquet.read_table if form == "parquet" else feather.read_table
        found = reader(f"o.{form}").column("iso").to_pylist()
    assert found == countries()


def test_what_a_person_calls_missing_and_gaps_among_numbers_are_missing_in_parquet(run, table):
    rows = (f"{'x' if i % 2 else 'unknown'},{'NA' if i == 3 else a},{b}" for i, (a, b) in enumerate(positive_groups()))
    run("fit", table("who,a,b", *rows), "-k", 2, "--missing", "Unknown", "--out", "o.parquet")
    found = parquet.read_table("o.parquet")
    assert found.column("who").to_pylist() == [None, "x"] * (N // 2)
    assert found.column("a")[3].as_py() is None


# ---- columns without values ----------------------------------------------------------------------


def test_a_column_without_values_is_refused_by_its_name_however_it_was_chosen(run, table, tmp_path):
    file = table("a,b,c", *(f"{row}," for row in lines(groups())))
    assert "column 'c' is empty; leave it out" in run("fit", file, "-k", 2, "--keep", "c", code=1).stderr
    np.save(tmp_path / "nan.npy", np.full((9, 2), np.nan))
    assert "column 'x1' is empty; leave it out" in run("fit", tmp_path / "nan.npy", "-k", 2, code=1).stderr


def test_a_column_that_begins_with_missing_values_is_scaled_in_silence(run, table):
    rows = lines(groups())
    file = table("a,b", *(f"{row.split(',')[0]}," for row in rows[:2]), *rows[2:])
    assert "2 missing values" in run("fit", file, "-k", 2).stderr


# ---- what a model remembers ----------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["robust", "none"])
def test_predict_reads_as_missing_what_the_fit_read_as_missing(run, table, scale):
    file = table("a,b", *(f"{-999 if i % 6 == 0 else x},{i % 9}.5" for i, x in enumerate(amounts())))
    options = ("--missing", "-999", "--scale", scale)
    fitted = run("fit", file, "-k", 2, *options, "--missing", "<LOD", "--model", "m.json", "--json").document
    found = run("predict", "m.json", file, "--json").document
    assert found["labels"] == fitted["labels"]
    assert "missing, as in the fit, are also the values -999, <LOD" in found["notes"]
    given = run("predict", "m.json", file, "--json", "--missing", "-999", "--missing", "<LOD").document
    assert given["labels"] == fitted["labels"]
    assert not [note for note in given["notes"] if "as in the fit" in note]


@pytest.mark.parametrize("words", [[], [1], "NA", [None], [["NA"]]])
def test_a_model_file_with_other_things_than_words_for_missing_values_is_refused(run, table, words):
    file = table("a,b", *(f"{x},{i % 9}.5" for i, x in enumerate(amounts())))
    run("fit", file, "-k", 2, "--missing", "-999", "--model", "m.json")
    with open("m.json") as written:
        document = json.load(written)
    assert document["scaler"]["fitted"]["_missing"] == ["-999"]
    document["scaler"]["fitted"]["_missing"] = words
    document["checksum"] = checksum(document)
    with open("m.json", "w") as forged:
        json.dump(document, forged)
    with pytest.raises(ModelFileError, match="_missing"):
        load("m.json")


# ---- what is not called missing ------------------------------------------------------------------


def test_a_boolean_in_a_column_of_numbers_is_not_called_a_missing_value(run, table):
    run("fit", table("a,b", *(f"{a},{b}" for a, b in positive_groups(60))), "-k", 2, "--model", "m.json")
    file = table("a,b", *["1,2"] * 9, "true,2", name="new.csv")
    said = " ".join(run("predict", "m.json", file, code=1).output.split())
    assert "line 11: 'true'" in said
    assert "--missing" not in said


@pytest.mark.filterwarnings("error")
def test_numbers_whose_sum_is_beyond_all_floats_are_not_called_missing(run, table, tmp_path):
    run(
        "fit",
        table("a,b", *(f"{a},{b}" for a, b in positive_groups(60, digits=3))),
        "-k",
        2,
        "--model",
        tmp_path / "m.json",
    )
    rows = table("a,b", "1e308,1e308", "1.5e308,1.7e308", "-1e308,-1e308", "-1.5e308,-1.7e308", name="new.csv")
    assert "missing" not in run("predict", tmp_path / "m.json", rows).output
