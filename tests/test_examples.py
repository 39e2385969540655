"""The examples of the gallery run, quietly, and draw something."""

import contextlib
import io
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("plot_*.py"))


def test_there_are_a_tour_and_at_least_twelve_examples():
    assert len(EXAMPLES) >= 1 + 12
    assert EXAMPLES[0].stem == "plot_0_tour"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_without_a_warning_and_draws(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(example))
    drawn = plt.get_fignums()
    plt.close("all")
    assert drawn
    assert printed.getvalue()
    assert not list(tmp_path.iterdir())
