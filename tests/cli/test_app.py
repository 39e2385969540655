"""What all commands have in common."""

import os
import signal
import subprocess
import sys

import pytest
from rich.console import Console

import tkmeans
from tkmeans.cli import screen

COMMANDS = ["demo", "fit", "predict", "select-k", "outliers", "report", "reproduce"]


def test_the_option_version_prints_the_version(run):
    assert run("--version").stdout == f"tkmeans {tkmeans.__version__}\n"


def test_help_names_every_command(run):
    shown = run("--help").stdout
    assert all(f"│ {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_has_a_help_text(name):
    import typer.main

    from tkmeans.cli import app

    command = typer.main.get_command(app).commands[name]
    assert command.help
    assert not [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]


def test_importing_the_command_line_loads_neither_sklearn_nor_scipy_nor_matplotlib():
    code = "import sys; import tkmeans.cli; print([m for m in ('sklearn', 'scipy', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_wrong_usage_of_the_command_exits_with_2(run, csv_file):
    file = csv_file()
    assert run("fit", file, "-k", "0", code=2).stdout == ""
    run("fit", file, "-k", "3", "--scale", "huge", code=2)
    run("fit", file, "-k", "3", "--out", "-", "--json", code=2)
    run("fit", file, "-k", "3", "--out", "a", "--model", "a", code=2)
    run("nonsense", code=2)


def test_a_command_with_an_unusable_file_exits_with_1_and_leaves_standard_output_empty(run, tmp_path, csv_file):
    empty = tmp_path / "empty.csv"
    empty.touch()
    for words, said in [
        ((tmp_path / "none.csv", "-k", 3), "there is no file"),
        ((tmp_path / "no", "-k", 3), "there is no file"),
        ((empty, "-k", 3), "is empty"),
        ((csv_file(), "-k", 300), "choose at most 60 clusters"),
        ((csv_file(), "-k", 3, "--out", tmp_path / "no" / "out.csv"), "there is no folder"),
        ((csv_file(), "-k", 3, "--out", tmp_path), "is a folder"),
        ((csv_file(), "-k", 3, "--out", tmp_path / "out.xlsx"), "not .xlsx"),
        ((csv_file(), "-k", 3, "--out", csv_file()), "is the input or in it, which is not overwritten"),
    ]:
        done = run("fit", *words, code=1)
        assert said in done.stderr
        assert done.stdout == ""


def test_ctrl_c_ends_a_command_with_130_and_leaves_no_file(run, csv_file, tmp_path, monkeypatch):
    from tkmeans.cli import output_files as outputs

    def interrupted(table, file, *words, **options):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs, "write_table", interrupted)
    done = run("fit", csv_file(), "-k", 3, "--out", tmp_path / "out.csv", code=130)
    assert "interrupted" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["penguins.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_command_killed_while_writing_leaves_the_old_file_unchanged(tmp_path, number):
    """The process is stopped where half of the new file is written."""
    target = tmp_path / "out.csv"
    target.write_text("old")
    code = f"""
import sys, time
from unittest import mock
from tkmeans.cli import commands
from tkmeans.atomic import replacing
def write():
    with replacing({str(target)!r}) as file:
        file.write(b"half")
        file.flush()
        print("writing", flush=True)
        time.sleep(60)
with mock.patch.object(commands, "app", write):
    commands.main()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout.readline() == "writing\n"
    os.kill(process.pid, number)
    assert process.wait(timeout=30) != 0
    process.stdout.close()
    assert target.read_text() == "old"
    if number != signal.SIGKILL:  # which leaves a hidden file of another name
        assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_without_typer_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import tkmeans.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'tkmeans[cli" in done.stderr


def test_on_a_terminal_the_command_shows_its_progress_on_standard_error(run, csv_file, monkeypatch):
    monkeypatch.setattr(screen, "err", Console(stderr=True, force_terminal=True))
    done = run("fit", csv_file(), "-k", 3, "--json")
    assert "clustering 60 rows" in done.stderr
    assert "\x1b" not in done.stdout


def test_without_a_terminal_the_command_shows_no_progress(run, csv_file):
    done = run("fit", csv_file(), "-k", 3)
    assert "\x1b" not in done.stdout + done.stderr
    assert "reading" not in done.stderr
