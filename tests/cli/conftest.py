"""A table as people have them, and the command as people type it."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from tkmeans.cli import app

HEADER = ["species", "island", "bill_length_mm", "flipper_length_mm", "body_mass_g", "sex"]
KINDS = {"Adelie": (38.8, 190, 3700), "Gentoo": (47.5, 217, 5076), "Chinstrap": (48.8, 196, 3733)}


@pytest.fixture(scope="session")
def run():
    """Type a command; the exit code must be as said."""

    def typed(*words, code=0, given=None):
        done = CliRunner().invoke(app, [*map(str, words)], input=given)
        assert done.exit_code == code, done.output
        if code == 0 and "--json" in words:
            done.document = json.loads(done.stdout)
        return done

    return typed


@pytest.fixture(scope="session")
def penguins():
    """Rows of text: three species of 20, in turn, with gaps, and one bird of ten times its weight."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        species = list(KINDS)[i % 3]
        length, flipper, mass = rng.normal(KINDS[species], (1.5, 4, 200))
        cells = [f"{length:.1f}", f"{flipper:.0f}", f"{mass:.0f}"]
        rows.append([species, "Torgersen", *cells, ["male", "female"][i % 2]])
    rows[4][2:5] = ["NA", "NA", "NA"]
    rows[7][3] = ""
    rows[9][2] = "n/a"
    rows[10][4] = "?"
    rows[11][5] = "NA"
    rows[20][4] = "37000"
    return rows


@pytest.fixture(scope="session")
def write_penguins(penguins):
    """Write the penguins to a file in the manner of somebody's program."""

    def write(path, *, delimiter=",", decimal=".", encoding="utf-8", newline="\n", change=list):
        lines = []
        for row in [HEADER, *penguins]:
            cells = [cell.replace(".", decimal) if cell[:1].isdigit() else cell for cell in row]
            lines.append(delimiter.join(change(cells)) + newline)
        path.write_bytes("".join(lines).encode(encoding))
        return path

    return write


@pytest.fixture
def csv_file(tmp_path, write_penguins):
    """A file of penguins in the test's own folder."""
    return lambda name="penguins.csv", **layout: write_penguins(tmp_path / name, **layout)


@pytest.fixture(scope="session")
def are_species(penguins):
    """Whether clusters are species, for birds that were measured and are not monstrous."""

    def compare(labels):
        assert len(labels) == len(penguins)
        ordinary = [i for i in range(len(penguins)) if i not in (4, 7, 9, 10, 20)]
        pairs = {(labels[i], penguins[i][0]) for i in ordinary}
        return len(pairs) == len({label for label, _ in pairs}) == 3

    return compare


@pytest.fixture
def reports(monkeypatch):
    """Calls of `write_report`, which here writes nothing."""
    calls = []
    stub = SimpleNamespace(write_report=lambda *words, **options: calls.append((words, options)))
    monkeypatch.setitem(sys.modules, "tkmeans.report", stub)
    return calls


@pytest.fixture
def table(tmp_path):
    """Write a table of these lines."""

    def write(*lines, name="table.csv", encoding="utf-8"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
        return tmp_path / name

    return write


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The test's own folder as the current one."""
    monkeypatch.chdir(tmp_path)
