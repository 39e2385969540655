"""README says what is so: its example prints what it says it prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_of_readme_prints_what_readme_shows():
    code, output = re.findall(r"```(?:python)?\n(.*?)```", README.read_text(), flags=re.DOTALL)[:2]
    assert len(code.strip().splitlines()) <= 11
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == output


@pytest.mark.parametrize("command", ["pip install '.[cli,plots]' && tkmeans demo", "pip install '.[test]' && pytest"])
def test_the_demo_and_test_commands_stand_on_lines_of_their_own_in_readme(command):
    assert f"\n{command}\n" in README.read_text()


def test_every_file_that_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert links
    assert not [link for link in links if "://" not in link and not (README.parent / link).exists()]
