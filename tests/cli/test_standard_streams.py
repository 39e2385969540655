"""Standard input and output as shells have them: closed, full, piped, in other encodings, or the input itself."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support.command_tables import TWO_COLUMNS, column, groups, lines


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


@pytest.mark.thorough
def test_a_standard_stream_that_is_closed_is_reported_where_it_is_needed(shell, table):
    file = table(*TWO_COLUMNS)
    assert "standard output is closed" in shell("fit table.csv -k 1 --json >&-", code=1).stderr
    assert "standard input is empty" in shell("fit - -k 1 <&-", code=1).stderr
    shell("fit table.csv -k 1 --out out.csv >&- <&-")
    assert column(file.with_name("out.csv"), "cluster") == ["0", "0", "0"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
@pytest.mark.parametrize("line", ["--help", "select-k table.csv --max 1 --json"])
def test_help_and_results_that_do_not_fit_on_the_disk_are_an_error_in_one_sentence(shell, table, line):
    table(*TWO_COLUMNS)
    said = shell(f"{line} >/dev/full", code=1).stderr
    assert said.splitlines()[-1] == "Error: No space left on device"


@pytest.mark.thorough
def test_a_file_beyond_the_size_that_is_allowed_is_named(shell, table):
    table("x,y", *(f"{i % 7},{i % 5}.5" for i in range(3000)))
    said = shell(
        "--version; ulimit -f 8; ./tkmeans fit table.csv -k 1 --out out.csv", code=1, PYTHONDONTWRITEBYTECODE="1"
    ).stderr
    assert "out.csv: File too large" in said


@pytest.mark.thorough
def test_a_standard_output_that_is_not_unicode_gets_every_name_in_ascii(shell, table):
    table("café,😀", *TWO_COLUMNS[1:], name="é.csv")
    printed = shell("fit é.csv -k 1 --json", PYTHONIOENCODING="ascii").stdout
    assert printed.isascii()
    document = json.loads(printed)
    assert document["columns"] == ["café", "😀"]
    assert document["file"] == "é.csv"
    assert "é.csv" in shell("fit é.csv -k 1 --json").stdout
    assert "caf\\xe9" in shell("fit é.csv -k 1", PYTHONIOENCODING="ascii").stdout


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no such device")
def test_the_device_of_standard_output_takes_the_table_into_a_pipe(shell, table):
    table(*TWO_COLUMNS)
    piped = shell("fit table.csv -k 1 --out /dev/stdout | cat").stdout
    assert piped.startswith("x,y,cluster,probability,outlier_pvalue\n1,2,0,")


@pytest.mark.thorough
def test_a_pipe_of_another_number_takes_the_table_alone(shell, table):
    table(*TWO_COLUMNS)
    shell("fit table.csv -k 1 --out /dev/fd/3 3>&1 >/dev/null | cat >piped.csv")
    assert column(table(*TWO_COLUMNS).with_name("piped.csv"), "cluster") == ["0", "0", "0"]


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["- < table.csv", "."])
def test_a_table_is_not_written_into_its_own_input_through_standard_output(shell, table, source):
    file = table(*TWO_COLUMNS)
    before = file.read_text()
    said = shell(f"fit {source} -k 1 --out - >> table.csv", code=1).stderr
    assert "is the input or in it, which is not overwritten" in said
    assert file.read_text() == before


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
