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


def rows_of_tables(path):
    """The rows of the tables of a page, as (heading above, names of the columns, cells)."""
    heading, names = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if line.startswith("#"):
            heading = line.strip("# ")
        if cells and not names:
            names = cells
        elif cells and set(line) - set("|- "):
            yield heading, names, cells
        elif not cells:
            names = []


def mean_and_deviation(cell):
    """The first two numbers of a cell: in README "**.998 ± .000**", in the pages "0.998 ± 0.000 (0.998)"."""
    return tuple(round(float(number), 3) for number in re.findall(r"\d?\.\d+", cell)[:2])


def test_the_results_in_readme_are_those_of_the_pages_they_link_to():
    pages = README.parent / "docs" / "benchmarks"
    published = {
        (cells[0], f"{name} {heading}"): mean_and_deviation(cell)
        for heading, names, cells in rows_of_tables(pages / "stability.md")
        for name, cell in zip(names[1:], cells[1:], strict=True)
    }
    for heading, names, cells in rows_of_tables(pages / "r-packages.md"):
        if heading == "README's row of trimmed k-means":
            published |= {
                ("trimmed k-means, given the share of outliers", name): mean_and_deviation(cell)
                for name, cell in zip(names[1:], cells[1:], strict=True)
            }
    tables = [(names, cells) for heading, names, cells in rows_of_tables(README) if heading == "Results"]
    shown = {
        (cells[0], name): mean_and_deviation(cell)
        for names, cells in tables
        if "A3 clean" in names
        for name, cell in zip(names[1:], cells[1:], strict=True)
    }
    assert len(shown) == 6 * 7
    assert {key: value for key, value in shown.items() if published.get(key) != value} == {}
