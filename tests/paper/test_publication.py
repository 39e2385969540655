"""The typed tables against the paper's own source."""

import re

from support.paper_data import paper_source

from tkmeans.datasets import REAL, SYNTHETIC
from tkmeans.paper.authors import methods
from tkmeans.paper.published_values import METHODS, publication, published

NUMBERS = re.compile(r"(\d+\.\d+)\s*\$\\pm\$\s*(\d+\.\d+)")


def printed():
    """Every row of numbers in the paper: the method's name, and its cells in order."""
    for line in paper_source().splitlines():
        if cells := NUMBERS.findall(line):
            before = line[: line.index(cells[0][0])].replace("$", "")
            name = next(m for m in sorted(METHODS, key=len, reverse=True) if m in before)
            yield name, [(float(mean), float(std)) for mean, std in cells]


def test_the_published_tables_are_those_of_the_papers_source():
    rows = list(printed())
    blocks = [dict(rows[start : start + 9]) for start in range(0, 45, 9)]
    assert [list(block) for block in blocks] == [list(METHODS)] * 5
    assert len(rows) == 45
    headings = [
        ("ARI", ["A1", "A2", "A3", "S1", "S2"]),
        ("ARI", ["S3", "S4", "unbalance", "dim032", "dim064"]),
        ("MSE", ["bezdekiris", "iris", "seed", "wine"]),
        ("W/B", ["bezdekiris", "iris", "seed", "wine"]),
    ]
    for (measure, names), block in zip(headings, blocks, strict=False):
        for method in METHODS:
            assert [tuple(published(measure, name, method)[:2]) for name in names] == block[method]
    for method, cells in blocks[4].items():
        assert [tuple(published(measure, "iris", method)[:2]) for measure in ("iterations", "seconds")] == cells


def test_the_published_tables_have_a_cell_for_every_method_and_data_set():
    typed = publication()["cells"]
    assert set(typed["ARI"]) == set(SYNTHETIC)
    assert set(typed["MSE"]) == set(typed["W/B"]) == set(REAL)
    assert all(tuple(column) == METHODS for sets in typed.values() for column in sets.values())
    assert tuple(methods.METHODS) == METHODS


def test_published_cells_are_found_by_measure_data_set_and_method():
    assert published("ARI", "unbalance", "k-means")[:2] == (0.589, 0.306)
    assert published("W/B", "wine", "GMM")[:2] == (3.280, 2.102)
    assert published("iterations", "iris", "t-k-means")[:2] == (29.76, 5.82)
