"""Options that cannot be followed are refused by name: columns, weights, numbers of clusters, seeds."""

import pytest
from support.command_tables import TWO_COLUMNS, groups, lines, positive_groups, said

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- columns and weights -------------------------------------------------------------------------

PEOPLE = ("name,x,y,w,id", "ann,1,2,1,10", "bob,3,5,2,20", "cy,4,9,1,15", "di,5,1,2,17")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--keep", "name"], "'name': text"),
        (["--columns", "x", "--keep", "id"], "'id': it is not in --columns"),
        (["--columns", "x,w", "--weights", "w"], "'w': it names or weighs the rows"),
        (["--columns", "x,name", "--id", "name"], "'name': it names or weighs the rows"),
        (["--columns", "x,y", "--without", "y"], "'y': left out"),
        (["--columns", "x,name=zz"], "'name=zz': no row has it"),
    ],
)
def test_a_column_that_is_asked_for_is_clustered_by_or_the_reason_is_an_error(run, table, options, reason):
    said = run("fit", table(*PEOPLE), "-k", 1, *options, "--dry-run", code=1).stderr
    assert f"table.csv cannot be clustered by {reason}" in said


def test_a_column_that_is_asked_for_and_has_the_value_is_clustered_by(run, table):
    words = ("fit", table(*PEOPLE), "-k", 1, "--columns", "x,name=bob,id", "--keep", "id", "--weights", "w", "--json")
    assert run(*words).document["columns"] == ["x", "name=bob", "id"]


@pytest.mark.parametrize("twice", ["x,x,y", "2,x,y", "x,y,3"])
def test_a_column_that_is_named_twice_counts_once(run, table, twice):
    document = run("fit", table(*PEOPLE), "-k", 2, "--columns", twice, "--json").document
    assert document["columns"] == ["x", "y"]
    assert (
        document["clusters"] == run("fit", table(*PEOPLE), "-k", 2, "--columns", "x,y", "--json").document["clusters"]
    )


def test_columns_with_line_breaks_in_their_names_can_be_asked_for(run, table):
    file = table('"x\ny","b\r\nc",d', *(f"{row},{i % 7}" for i, row in enumerate(lines(groups()))))
    found = run("fit", file, "-k", 2, "--columns", "x\ny,b\r\nc", "--json").document
    assert found["columns"] == ["x\ny", "b\r\nc"]


@pytest.mark.parametrize("scale", ["robust", "standard", "minmax", "none"])
def test_weights_that_are_all_zero_are_refused_by_the_name_of_their_column(run, table, scale):
    file = table("x,y,w", "1,2,0", "3,5,0", "4,9,0")
    said = run("fit", file, "-k", 1, "--weights", "w", "--scale", scale, code=1).stderr
    assert "all weights in 'w' are 0" in said


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


def test_weights_of_text_are_refused_as_such(run, table):
    file = table("x,region", "1.5,South", "2.25,North", "3.1,South")
    said = run("fit", file, "-k", 1, "--weights", "region", code=1).stderr
    assert "weights are numbers, but 'region' holds text; choose another column" in said


# ---- numbers of clusters -------------------------------------------------------------------------


def test_one_row_is_no_choice_among_numbers_of_clusters(run, table):
    for command in ("select-k", "fit"):
        said = run(command, table("x,y", "1,2"), code=1).stderr
        assert "table.csv has only one row" in said
        assert "StudentTMixture" not in said


def test_a_smallest_number_of_clusters_beyond_the_rows_is_refused_in_words_of_the_command(run, table):
    file = table("a,b", *lines(groups()))
    assert "--min 200 is more than the 60 rows" in run("select-k", file, "--min", 200, "--max", 300, code=1).stderr


@pytest.mark.parametrize("n", [2, 3])
def test_more_clusters_than_rows_are_refused_in_plain_words(run, table, n):
    file = table("a,b", *(f"{a},{b}" for a, b in positive_groups(n)))
    found = said(run("fit", file, "-k", 5, code=1))
    assert f"table.csv: too few rows ({n}) for 5 clusters; choose at most {n} clusters" in found
    assert "rows each" not in found


# ---- wrong usage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [("--jobs", 0), ("--thousands", "xx"), ("--seed", 2**40), ("--seed", 2**32), ("--seed", -1)]
)
def test_a_value_that_an_option_cannot_have_is_wrong_usage(run, table, options):
    said = run("fit", table(*TWO_COLUMNS), "-k", 1, *options, code=2).stderr
    assert options[0] in said
    assert "n_jobs" not in said


def test_the_largest_seed_is_one(run, table):
    run("fit", table(*TWO_COLUMNS), "-k", 1, "--seed", 2**32 - 1)


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


def test_the_report_that_is_sent_to_standard_output_is_refused_without_options_of_other_commands(run, table):
    said = run("report", table(*TWO_COLUMNS), "--out", "-", code=2).stderr
    assert "only tables can go to -" in said
    assert "--model" not in said


def test_the_demonstration_checks_its_seed_and_its_files_before_its_work(run, tmp_path):
    same = ("--picture", tmp_path / "same", "--report", tmp_path / "same")
    for options in (("--seed", -1), same, ("--picture", "-"), ("--report", "-")):
        assert run("demo", *options, code=2).stdout == ""
    assert not list(tmp_path.iterdir())
