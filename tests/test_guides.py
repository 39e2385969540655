"""The guides and the pages beside them say what is so: their code runs, and prints what they say it prints."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
GUIDES = sorted([*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_code_of_every_guide_runs_and_prints_what_the_guide_shows(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files it writes
    text, names = guide.read_text(encoding="utf-8"), {}
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python")
    for code, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, str(guide), "exec"), names)
        assert printed.getvalue() == shown


def test_the_commands_of_the_guide_to_a_first_file_print_what_it_shows(tmp_path):
    text = (DOCS / "guides" / "first-file.md").read_text(encoding="utf-8")
    making = subprocess.run([sys.executable, "-c", BLOCK.findall(text)[0][0]], cwd=tmp_path, check=True)
    assert making.returncode == 0
    (console,) = re.findall(r"^```console\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    for command, shown in re.findall(r"^\$ tkmeans (.*)\n((?:(?!\$).*\n)*)", console, flags=re.MULTILINE):
        words = [sys.executable, "-c", "from tkmeans.cli import main; main()", *command.split()]
        environment = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, env=environment, encoding="utf-8")
        printed = done.stdout + done.stderr
        assert [line for line in shown.splitlines() if line not in printed] == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_page_that_a_guide_links_to_exists(guide):
    links = re.findall(r"\]\(([^)#]+)\)", guide.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (guide.parent / link).exists()]
