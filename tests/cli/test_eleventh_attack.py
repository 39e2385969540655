"""What an eleventh attack broke in the command and in files, each with a test that fails if it comes back."""

import json

import numpy as np
import openpyxl
import pytest

from tkmeans import ModelFileError, load
from tkmeans.persistence.encoding import checksum
from tkmeans.tables import read_table

N = 40
THOUSANDS = ["1.142", "4.078", "2.501", "6.025"]


def said(done):
    """What the command printed, in one line."""
    return " ".join(done.output.split())


def amounts(n=N):
    return np.random.default_rng(0).integers(1100, 9900, n).tolist()


def german(x):
    """A number with points between groups of three digits."""
    return f"{x:,}".replace(",", ".")


def workbook(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def role(run, file, name):
    columns = run("fit", file, "--dry-run", "--json").document["columns"]
    return next(column["role"] for column in columns if column["column"] == name)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- numbers that are written again ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", [" €", " kg", ""])
@pytest.mark.parametrize("form", ["csv", "xlsx", "json", "folder"])
def test_cells_with_a_unit_are_written_by_the_same_signs_as_other_numbers(run, table, tmp_path, unit, form):
    rows = [(f"{20 + i % 7},{i % 10}5", f"{german(x)}{unit}") for i, x in enumerate(amounts())]
    if form == "xlsx":
        file = workbook(tmp_path / "t.xlsx", [("x", "preis"), *rows])
    elif form == "json":
        file = tmp_path / "t.json"
        file.write_text(json.dumps([{"x": x, "preis": preis} for x, preis in rows]))
    else:
        file = table("x;preis", *(f"{x};{preis}" for x, preis in rows), name="f/1.csv")
    if form == "folder":
        points = (f'{20 + i % 7}.{i % 10}5,"{x:,}{unit}"' for i, x in enumerate(amounts()))
        table("x,preis", *points, name="f/2.csv")
        file = file.parent
    run("fit", file, "-k", 2, "--out", "o.tsv")
    first, again = read_table(file), read_table("o.tsv")
    for name in ("x", "preis"):
        assert again.column(name).values.tolist() == first.column(name).values.tolist()
    assert again.column("preis").values[: len(amounts())].tolist() == amounts()
    assert again.notation("preis") == f"1.5{unit}"


def test_per_cents_and_missing_cells_are_written_by_the_same_signs_too(run, table):
    file = table("x;share;note", *(f"{i},5;{'NA' if i == 3 else f'{i % 9},25 %'};1,5 l" for i in range(20)))
    run("fit", file, "-k", 2, "--out", "o.tsv")
    assert read_table("o.tsv").column("share").values[[1, 2]].tolist() == [1.25, 2.25]
    assert np.isnan(read_table("o.tsv").column("share").values[3])


# ---- points between groups of digits ---------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["\t", "|", " ", ";"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_points_that_may_part_thousands_are_mentioned_in_text_with_other_signs_than_commas(run, table, sign, n):
    file = table(f"a{sign}b", *(f"{x}{sign}{20 + i * i}" for i, x in enumerate(THOUSANDS[:n])), name="t.txt")
    note = "'1.142' in a is read as 1.142; add --thousands . if it is 1142"
    assert note in run("fit", file, "--dry-run", "--json").document["notes"]
    for option in ("--thousands", "--decimal"):
        notes = run("fit", file, "--dry-run", "--json", option, ".").document["notes"]
        assert not [note for note in notes if "1.142" in note]


@pytest.mark.parametrize("form", ["t.xlsx", "t.json"])
def test_points_that_may_part_thousands_are_mentioned_in_workbooks_and_json(run, tmp_path, form):
    rows = [(x, 20.5 + i * i) for i, x in enumerate(THOUSANDS)]
    if form == "t.xlsx":
        workbook(tmp_path / form, [("a", "b"), *rows])
    else:
        (tmp_path / form).write_text(json.dumps([{"a": a, "b": b} for a, b in rows]))
    note = "'1.142' in a is read as 1.142; add --thousands . if it is 1142"
    assert note in run("fit", form, "--dry-run", "--json").document["notes"]
    assert note not in run("fit", form, "--dry-run", "--json", "--thousands", ".").document["notes"]


@pytest.mark.parametrize("cells", [["1.142", "0.375"], ["1.142", "12.5"], ["1.142", "4078"]])
def test_points_before_decimals_in_json_are_not_mentioned(run, tmp_path, cells):
    (tmp_path / "t.json").write_text(json.dumps([{"a": x, "b": i} for i, x in enumerate(cells)]))
    assert not [x for x in run("fit", "t.json", "--dry-run", "--json").document["notes"] if "is read as" in x]


def test_predict_mentions_points_of_a_single_row(run, table):
    run("fit", table("h;w", *(f"{150 + i};{x}" for i, x in enumerate(amounts()))), "-k", 2, "--model", "m.json")
    table("h;w", "190;3.240", name="one.csv")
    assert "'3.240' in w is read as 3.240; add --thousands . if it is 3240" in said(run("predict", "m.json", "one.csv"))


# ---- more cells than names, and stray quotation marks ------------------------------------------------------

SHIFTED = {
    "decimals": ("height,weight", [f"{150.25 + i},{x}.31,0" for i, x in enumerate(amounts())]),
    "thousands without quotation marks": ("price,qty", [f"{12 + i % 5},{345 + i},{i}" for i in range(N)]),
    "one row": ("price,qty", ["12,345,49"]),
    "amounts": ("price,qty", ["$12,345,49", "$17,301,50", "$11,400,51"]),
    "whole numbers in no order": ("a\tb", [f"{i * 7 % 11}\t{i}\t{i % 3}" for i in range(N)]),
}


@pytest.mark.parametrize("case", SHIFTED)
def test_rows_with_a_cell_more_than_names_are_refused_if_they_begin_with_numbers(run, table, case):
    header, rows = SHIFTED[case]
    found = said(run("fit", table(header, *rows), "-k", 1, code=1))
    assert "line 1 has 2 cells divided by" in found
    assert "but line 2 has 3" in found
    assert "give every column a name" in found
    assert "put quotation marks around cells that contain the delimiter" in found


NAMED_ROWS = {
    "words": [f"r{i} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "numbers that count": [f"{i + 1} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "numbers that count from elsewhere": [f"{i + 101} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "some rows of R": [f'"{i * i}" {x} {i % 7}.5' for i, x in enumerate(amounts())],
    "dates": [f"2021-01-{i % 28 + 1:02} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "one row": ["1 1142 2.5"],
}


@pytest.mark.parametrize("case", NAMED_ROWS)
def test_names_of_rows_need_no_name_themselves(table, case):
    found = read_table(table("a b", *NAMED_ROWS[case]))
    assert found.names == ["x1", "a", "b"]
    assert found.column("a").values[0] == float(NAMED_ROWS[case][0].split()[1])


def stray(places, n=20, text="a"):
    return ["x,y,n", *(f"{i}.5,{i % 4},{chr(34) * (i in places)}{text}" for i in range(n))]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("places", [(5, 9), (5, 9, 12, 14), (1500, 1509)])
def test_two_stray_quotation_marks_do_not_swallow_rows(run, table, places, encoding):
    file = table(*stray(places, 2000), encoding=encoding)
    found = said(run("fit", file, "-k", 1, code=1))
    assert (
        f"line {places[0] + 2}: a quotation mark is opened there, and text stands behind the one that closes" in found
    )


@pytest.mark.parametrize(
    "cell",
    ['"a\nb"', '"a ""b"" c\nd""e"', '5"x', '5"x3"y', '"5"x disk"', '"a\nb" ', '"a\r\n""b"""'],
)
def test_quotation_marks_and_line_breaks_within_cells_are_read(table, cell):
    found = read_table(table("n,x,y", *(f"{cell},{i}.5,{i % 4}" for i in range(20))))
    assert found.n_rows == 20
    assert found.column("x").values.tolist() == [i + 0.5 for i in range(20)]


# ---- dates in numbers ------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
MOMENTS = {
    "seconds": (1_700_092_800 + rng.integers(0, 900, N) * 86_400).tolist(),
    "milliseconds": (1_700_134_893_000 + rng.integers(0, 10**6, N) * 1000).tolist(),
    "nanoseconds": (1_700_134_893_000_000_000 + rng.integers(0, 10**6, N) * 10**9).tolist(),
    "days": [f"{1950 + i * 7 % 60}{1 + i % 12:02}{1 + i * 5 % 28:02}" for i in range(N)],
    "short days": [f"{10 + i * 7 % 60}{1 + i % 12:02}{1 + i * 5 % 28:02}" for i in range(N)],
    "Excel's days": rng.integers(45_000, 45_900, N).tolist(),
}
CALLED = ["timestamp", "DATE", "Time Stamp", "timeStamp", "order_date", "dob", "birth", "dt", "ts", "created_at"]
CALLED += ["Fecha", "datum", "date_of_birth", "updatedAt"]


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("kind", MOMENTS)
def test_dates_in_numbers_are_not_clustered_by(run, table, name, kind):
    file = table(f"{name},x", *(f"{when},{i % 7}.5" for i, when in enumerate(MOMENTS[kind])))
    assert role(run, file, name) == "not used: a date, by its name and its values"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("time", rng.integers(0, 90_000, N)),
        ("duration", rng.integers(20_000, 60_000, N)),
        ("timestamp", rng.integers(0, 10_000, N)),
        ("birth", rng.integers(1940, 2010, N)),
        ("sales_to_date", rng.integers(20_000, 60_000, N)),
        ("candidate", rng.integers(20_000, 60_000, N)),
        ("births", rng.integers(20_000, 60_000, N)),
        ("amount", MOMENTS["Excel's days"]),
        ("update", rng.integers(20_000, 60_000, N)),
    ],
)
def test_measurements_with_similar_names_or_values_are_clustered_by(run, table, name, values):
    file = table(f"{name},x", *(f"{value},{i % 7}.5" for i, value in enumerate(values)))
    assert role(run, file, name) == "used for clustering"


# ---- what a model remembers ------------------------------------------------------------------------------


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


# ---- words -------------------------------------------------------------------------------------------------


def test_apostrophes_between_groups_of_digits_are_not_called_blanks(run, table):
    file = table("a,b", *(f"{10 + i}'345.60,{i % 7}.5" for i in range(20)))
    assert "with digits in groups of three. " in said(run("fit", file, "--dry-run"))


def test_an_npz_is_named(run, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.eye(3))
    assert "a zip archive such as .npz" in said(run("fit", "a.npz", code=1))


def test_two_equal_signs_are_named_as_they_were_typed(run, table):
    found = said(run("fit", table("a,b", "1,2"), "--thousands", ".", "--decimal", ".", code=2))
    assert "--decimal . and --thousands . must differ" in found


def test_a_file_whose_name_begins_with_a_hyphen_can_be_typed_as_suggested(run, table):
    table("a,b", *(f"{x},{i % 7}.5" for i, x in enumerate(amounts())), name="-x.csv")
    assert "tkmeans select-k ./-x.csv" in said(run("fit", "-k", 2, "--", "-x.csv"))
    run("select-k", "./-x.csv", "--max", 2)
