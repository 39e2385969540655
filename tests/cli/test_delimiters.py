"""Where a line of text is cut into cells: delimiters, empty cells, cells without a name, and quotation marks."""

import pytest
from support.command_tables import amounts, are_parted, column, groups, lines, said

from tkmeans.tables import read_table

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- signs that may part cells -------------------------------------------------------------------


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


@pytest.mark.parametrize("sign", ["é", "§", "¦"])
def test_a_delimiter_may_be_any_sign(run, table, sign):
    file = table(f"a{sign}b", *lines(groups(), delimiter=sign))
    assert run("fit", file, "-k", 2, "--delimiter", sign, "--json").document["columns"] == ["a", "b"]
    assert "is not one sign" in run("fit", file, "-k", 2, "--delimiter", "\0", code=2).stderr


# ---- empty cells ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_row_of_empty_cells_stays_a_row_without_a_cluster(run, table, tmp_path, quote):
    rows = lines(groups(), delimiter="\t")
    rows[5] = quote + rows[5].replace("\t", f"{quote}\t")
    file = table("a\tb", *rows[:3], "\t", *rows[3:], "999\t999", name="t.tsv")
    found = run("fit", file, "-k", 2, "--out", tmp_path / "o.tsv", "--json").document
    assert found["outliers"]["lines"] == [63]
    clusters = column(tmp_path / "o.tsv", "cluster", "\t")
    assert clusters[3] == ""
    assert are_parted(clusters[:3] + clusters[4:-1])
    assert [label is None for label in found["labels"]] == [i == 3 for i in range(62)]
    assert "63" in run("outliers", file, "-k", 2).stdout


def test_a_line_of_blanks_is_a_row_in_a_single_column_and_none_elsewhere(run, table, tmp_path):
    values = [f"{x:.3f}" for x in groups()[:, 0]]
    one = table("a", *values[:3], "   ", *values[3:])
    run("fit", one, "-k", 2, "--out", tmp_path / "o.csv")
    clusters = column(tmp_path / "o.csv", "cluster")
    assert clusters[3] == ""
    assert are_parted(clusters[:3] + clusters[4:])
    assert [*map(str.strip, column(tmp_path / "o.csv", "a"))] == [*values[:3], "", *values[3:]]
    two = table("a,b", *lines(groups()), "   ")
    assert run("fit", two, "-k", 2, "--json").document["rows"] == 60


def test_a_missing_last_cell_before_a_trailing_tab_keeps_its_place(run, table, tmp_path):
    rows = [f"{row}\t{i % 7}\t" for i, row in enumerate(lines(groups(), delimiter="\t"))]
    rows[4] = rows[4].rstrip("\t")[:-1] + "\t"
    run("fit", table("a\tb\tc", *rows, name="t.tsv"), "-k", 2, "--out", tmp_path / "o.tsv")
    assert column(tmp_path / "o.tsv", "c", "\t") == [str(i % 7) if i != 4 else "" for i in range(60)]
    assert are_parted(column(tmp_path / "o.tsv", "cluster", "\t"))


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


# ---- more cells than names -----------------------------------------------------------------------

N = 40
SHIFTED = {
    "decimals": ("height,weight", [f"{150.25 + i},{x}.31,0" for i, x in enumerate(amounts())]),
    "thousands without quotation marks": ("price,qty", [f"{12 + i % 5},{345 + i},{i}" for i in range(N)]),
    "one row": ("price,qty", ["12,345,49"]),
    "amounts": ("price,qty", ["$12,345,49", "$17,301,50", "$11,400,51"]),
    "whole numbers in no order": ("a\tb", [f"{i * 7 % 11}\t{i}\t{i % 3}" for i in range(N)]),
}
NAMED_ROWS = {
    "words": [f"r{i} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "numbers that count": [f"{i + 1} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "numbers that count from elsewhere": [f"{i + 101} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "some rows of R": [f'"{i * i}" {x} {i % 7}.5' for i, x in enumerate(amounts())],
    "dates": [f"2021-01-{i % 28 + 1:02} {x} {i % 7}.5" for i, x in enumerate(amounts())],
    "one row": ["1 1142 2.5"],
}


@pytest.mark.parametrize("case", SHIFTED)
def test_rows_with_a_cell_more_than_names_are_refused_if_they_begin_with_numbers(run, table, case):
    header, rows = SHIFTED[case]
    found = said(run("fit", table(header, *rows), "-k", 1, code=1))
    assert "line 1 has 2 cells divided by" in found
    assert "but line 2 has 3" in found
    assert "give every column a name" in found
    assert "put quotation marks around cells that contain the delimiter" in found


@pytest.mark.parametrize("case", NAMED_ROWS)
def test_names_of_rows_need_no_name_themselves(table, case):
    found = read_table(table("a b", *NAMED_ROWS[case]))
    assert found.names == ["x1", "a", "b"]
    assert found.column("a").values[0] == float(NAMED_ROWS[case][0].split()[1])


# ---- quotation marks -----------------------------------------------------------------------------


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
