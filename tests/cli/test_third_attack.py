"""What a third attack broke in the command, each with a test that fails if it comes back."""

import csv
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest


def column(path, name):
    """The cells of a column, by Python's own reader."""
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_the_labels_in_json_are_marked_like_those_in_the_table(run, csv_file, tmp_path):
    file, model, out = csv_file(), tmp_path / "model.json", tmp_path / "out.csv"
    fit = run("fit", file, "-k", 3, "--model", model, "--out", out, "--mark-outliers", "--json").document
    for document in (fit, run("predict", model, file, "--out", out, "--mark-outliers", "--json").document):
        assert ["" if label is None else str(label) for label in document["labels"]] == column(out, "cluster")
        marked = [i for i, label in enumerate(document["labels"]) if label == -1]
        assert [i + 2 for i in marked] == document["outliers"]["lines"] == [22]
    assert -1 not in run("predict", model, file, "--json").document["labels"]


@pytest.mark.parametrize("scale", ["robust", "standard", "minmax", "none"])
def test_weights_that_are_all_zero_are_refused_by_the_name_of_their_column(run, table, scale):
    file = table("x,y,w", "1,2,0", "3,5,0", "4,9,0")
    said = run("fit", file, "-k", 1, "--weights", "w", "--scale", scale, code=1).stderr
    assert "all weights in 'w' are 0" in said


# ---- standard streams ------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path):
    """Type a line into a shell in the test's own folder; the exit code must be as said."""
    if sys.platform == "win32":
        pytest.skip("the shell of POSIX")
    (tmp_path / "tkmeans").write_text(f"#!{sys.executable}\nfrom tkmeans.cli import main\nmain()\n")
    (tmp_path / "tkmeans").chmod(0o755)

    def typed(line, code=0, **environment):
        here = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | environment
        with (tmp_path / "said").open("w") as said:
            done = subprocess.run(
                ["/bin/sh", "-c", f"./tkmeans {line}"], cwd=tmp_path, env=here, check=False, stdout=-1, stderr=said
            )
        said = (tmp_path / "said").read_text()
        assert done.returncode == code, said
        assert "Traceback" not in said
        return SimpleNamespace(stdout=done.stdout.decode("utf-8"), stderr=said)

    return typed


TWO = ("x,y", "1,2", "3,5", "4,9")


def test_a_standard_stream_that_is_closed_is_reported_where_it_is_needed(shell, table):
    file = table(*TWO)
    assert "standard output is closed" in shell("fit table.csv -k 1 --json >&-", code=1).stderr
    assert "standard input is empty" in shell("fit - -k 1 <&-", code=1).stderr
    shell("fit table.csv -k 1 --out out.csv >&- <&-")
    assert column(file.with_name("out.csv"), "cluster") == ["0", "0", "0"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
@pytest.mark.parametrize("line", ["--help", "select-k table.csv --max 1 --json"])
def test_help_and_results_that_do_not_fit_on_the_disk_are_an_error_in_one_sentence(shell, table, line):
    table(*TWO)
    said = shell(f"{line} >/dev/full", code=1).stderr
    assert said.splitlines()[-1] == "Error: No space left on device"


def test_a_standard_output_that_is_not_unicode_gets_every_name_in_ascii(shell, table):
    table("café,😀", *TWO[1:], name="é.csv")
    printed = shell("fit é.csv -k 1 --json", PYTHONIOENCODING="ascii").stdout
    assert printed.isascii()
    document = json.loads(printed)
    assert document["columns"] == ["café", "😀"]
    assert document["file"] == "é.csv"
    assert "é.csv" in shell("fit é.csv -k 1 --json").stdout
    assert "caf\\xe9" in shell("fit é.csv -k 1", PYTHONIOENCODING="ascii").stdout


@pytest.mark.parametrize("source", ["- < table.csv", "."])
def test_a_table_is_not_written_into_its_own_input_through_standard_output(shell, table, source):
    file = table(*TWO)
    before = file.read_text()
    said = shell(f"fit {source} -k 1 --out - >> table.csv", code=1).stderr
    assert "is the input or in it, which is not overwritten" in said
    assert file.read_text() == before


# ---- names of files --------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_links_that_lead_in_a_circle_are_no_file_to_write_to(run, table, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for option in ("--out", "--model", "--report"):
        said = run("fit", table(*TWO), "-k", 1, option, tmp_path / "a", code=1).stderr
        assert "is a link that leads back to itself" in said
    assert (tmp_path / "a").is_symlink()


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.ndjson", "a.XZ", "a.csv.lz4", "a.csv.br", "a.duckdb", "a.db", "a.xlsm", "a.xlsb", "a.csv.gz"]
)
def test_a_name_that_promises_another_format_than_is_written_is_refused(run, table, tmp_path, name):
    said = run("fit", table(*TWO), "-k", 1, "--out", tmp_path / name, code=1).stderr
    assert f"not {os.path.splitext(name)[1].lower()} as in" in said
    assert not (tmp_path / name).exists()


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no such device")
def test_the_device_of_standard_output_takes_the_table_into_a_pipe(shell, table):
    table(*TWO)
    piped = shell("fit table.csv -k 1 --out /dev/stdout | cat").stdout
    assert piped.startswith("x,y,cluster,probability,outlier_pvalue\n1,2,0,")


def test_a_pipe_of_another_number_takes_the_table_alone(shell, table):
    table(*TWO)
    shell("fit table.csv -k 1 --out /dev/fd/3 3>&1 >/dev/null | cat >piped.csv")
    assert column(table(*TWO).with_name("piped.csv"), "cluster") == ["0", "0", "0"]


def test_a_file_beyond_the_size_that_is_allowed_is_named(shell, table):
    table("x,y", *(f"{i % 7},{i % 5}.5" for i in range(3000)))
    said = shell(
        "--version; ulimit -f 8; ./tkmeans fit table.csv -k 1 --out out.csv", code=1, PYTHONDONTWRITEBYTECODE="1"
    ).stderr
    assert "out.csv: File too large" in said


# ---- options ---------------------------------------------------------------------------------------

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


def test_a_category_that_is_encoded_and_named_counts_once(run, table):
    words = ("fit", table(*PEOPLE), "-k", 1, "--columns", "x,name=bob", "--encode", "name", "--json")
    assert sorted(run(*words).document["columns"]) == ["name=ann", "name=bob", "name=cy", "name=di", "x"]


@pytest.mark.parametrize(
    "options", [("--jobs", 0), ("--thousands", "xx"), ("--seed", 2**40), ("--seed", 2**32), ("--seed", -1)]
)
def test_a_value_that_an_option_cannot_have_is_wrong_usage(run, table, options):
    said = run("fit", table(*TWO), "-k", 1, *options, code=2).stderr
    assert options[0] in said
    assert "n_jobs" not in said


def test_the_largest_seed_is_one(run, table):
    run("fit", table(*TWO), "-k", 1, "--seed", 2**32 - 1)


def test_the_report_that_is_sent_to_standard_output_is_refused_without_options_of_other_commands(run, table):
    said = run("report", table(*TWO), "--out", "-", code=2).stderr
    assert "only tables can go to -" in said
    assert "--model" not in said


@pytest.mark.parametrize("cells", ["abc abd abe", "1 oops 3", "1 a b c d e 7 8 9 8 7 6 5 4 3"])
def test_predict_advises_no_option_that_it_lacks(run, table, tmp_path, cells):
    model = tmp_path / "model.json"
    run("fit", table(*TWO), "-k", 1, "--model", model)
    other = table("x,y", *(f"{cell},2" for cell in cells.split()), name="other.csv")
    said = run("predict", model, other, code=1).stderr
    assert "column 'x'" in said
    assert "--without" not in said
    assert "--columns" not in said
    assert "--missing" in said or cells != "1 oops 3"
    fit = run("fit", other, "-k", 1, "--columns", "x", code=1).stderr
    assert "--without" in fit or "--columns" in fit


def test_the_demonstration_checks_its_seed_and_its_files_before_its_work(run, tmp_path):
    same = ("--picture", tmp_path / "same", "--report", tmp_path / "same")
    for options in (("--seed", -1), same, ("--picture", "-"), ("--report", "-")):
        assert run("demo", *options, code=2).stdout == ""
    assert not list(tmp_path.iterdir())


def test_one_row_is_no_choice_among_numbers_of_clusters(run, table):
    for command in ("select-k", "fit"):
        said = run(command, table("x,y", "1,2"), code=1).stderr
        assert "table.csv has only one row" in said
        assert "StudentTMixture" not in said
