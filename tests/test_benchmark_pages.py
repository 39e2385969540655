"""Pages that benchmarks wrote keep their promises: the comparison with R sets in bold whoever is better than we are."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "r-packages.md").read_text(encoding="utf-8")
CELL = re.compile(r"(\*\*)?(-?\d\.\d{3})(?:\*\*)?")


def tables():
    """The header and the lines of cases of every table that has our methods as columns."""
    for block in re.findall(r"(?:^\|.*\n){3,}", PAGE, flags=re.MULTILINE):
        header, _, *lines = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines())
        if "TKMeans" in header:
            yield header, [line for line in lines if not line[0].startswith(("mean", "CPU"))]


def test_the_comparison_with_r_has_the_paper_s_sets_and_a_simulation():
    sizes = [len(lines) for _, lines in tables()]
    assert len(sizes) == 2
    assert min(sizes) >= 15


@pytest.mark.parametrize("number", [0, 1])
def test_every_cell_where_somebody_else_is_better_than_both_of_ours_is_bold_and_no_other(number):
    header, lines = list(tables())[number]
    ours = [header.index(name) for name in ("TKMeans", "StudentTMixture")]
    for line in lines:
        best = max(float(line[i]) for i in ours)
        for i, text in enumerate(line[1:], start=1):
            if (found := CELL.fullmatch(text)) is not None:
                assert bool(found[1]) == (i not in ours and float(found[2]) > best), (line[0], header[i])
            else:
                assert text == "over limit"


def test_the_comparison_with_r_says_what_every_method_was_told():
    for header, _ in tables():
        for name in header[3:]:
            assert re.search(rf"^\| {re.escape(name)} \| (K|least size)", PAGE, flags=re.MULTILINE), name
