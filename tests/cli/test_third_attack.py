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


@pytest.fixture
def table(tmp_path):
    """Write a small table of these lines."""

    def write(*lines, name="table.csv"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    return write


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
    assert "standard output is closed" in shell("fit table.csv -k 1 --out - >&-", code=1).stderr
    assert "standard output is closed" in shell("fit table.csv -k 1 --json >&-", code=1).stderr
    assert "standard input is empty" in shell("fit - -k 1 <&-", code=1).stderr
    shell("fit table.csv -k 1 --out out.csv >&- <&-")
    assert column(file.with_name("out.csv"), "cluster") == ["0", "0", "0"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
@pytest.mark.parametrize("line", ["--help", "fit --help", "--version", "select-k table.csv --max 1 --json"])
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


@pytest.mark.parametrize("source", ["table.csv", "- < table.csv", "."])
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


@pytest.mark.parametrize("target", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_the_device_of_standard_output_takes_the_table_into_a_pipe(shell, table, target):
    table(*TWO)
    if not os.path.exists(target):
        pytest.skip(f"this system has no {target}")
    assert shell(f"fit table.csv -k 1 --out {target} | cat").stdout.startswith(
        "x,y,cluster,probability,outlier_pvalue\n1,2,0,"
    )
    assert (
        shell("fit table.csv -k 1 --out - | cat").stdout == shell("fit table.csv -k 1 --out /dev/stdout | cat").stdout
    )


def test_a_pipe_of_another_number_takes_the_table_alone(shell, table):
    table(*TWO)
    shell("fit table.csv -k 1 --out /dev/fd/3 3>&1 >/dev/null | cat >piped.csv")
    assert column(table(*TWO).with_name("piped.csv"), "cluster") == ["0", "0", "0"]


def test_a_file_beyond_the_size_that_is_allowed_is_named(shell, table):
    table("x,y", *(f"{i % 7},{i % 5}.5" for i in range(3000)))
    said = shell("--version; ulimit -f 8; ./tkmeans fit table.csv -k 1 --out out.csv", code=1).stderr
    assert "out.csv: File too large" in said
