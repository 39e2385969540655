"""The command, from runs to tables, figures and the page."""

import csv
import math

import numpy as np
import pytest
from helpers import SHARED
from typer.testing import CliRunner

from tkmeans.cli import app
from tkmeans.paper import command, figures, protocol, tables
from tkmeans.paper.correct import COLUMNS, fitted
from tkmeans.paper.page import Page
from tkmeans.paper.protocol import Key
from tkmeans.paper.published import METHODS, Cell
from tkmeans.paper.published import tables as published
from tkmeans.paper.release import METHODS as RELEASED
from tkmeans.paper.tables import Mean, Row, z_score


@pytest.fixture(autouse=True)
def _data(monkeypatch):
    if not SHARED.exists():
        pytest.skip("needs the paper's data sets, which are not part of the project")
    monkeypatch.setenv("TKMEANS_DATA", str(SHARED))
    protocol.prepared.cache_clear()


def invented(value, reps=4):
    """Results of which the tables are known beforehand: `value` plus or minus 0.01."""
    return {
        Key(name, method, column, rep): dict.fromkeys(protocol.MEASURES, value + 0.01 * (-1) ** rep)
        for name in {*protocol.TABLES["table1"], *protocol.TABLES["table2"]}
        for column, methods in COLUMNS.items()
        for method in methods
        for rep in range(reps)
    }


# ---- runs ----------------------------------------------------------------------------


@pytest.mark.parametrize(("column", "method"), [(c, m) for c, methods in COLUMNS.items() for m in methods])
def test_every_method_of_every_column_finds_the_clusters_of_iris(column, method):
    row = protocol.run(Key("bezdekiris", method, column, 0))
    assert math.isnan(row["ARI"])  # the paper removed the labels
    assert 0.15 < row["MSE"] < 1.5
    assert row["W/B"] > 0
    assert row["iterations"] >= 1
    assert row["seconds"] > 0


def test_equal_keys_give_equal_runs_and_columns_share_their_start(monkeypatch):
    starts = []
    monkeypatch.setattr(protocol, "fitted", lambda *a: starts.append(a[3]) or fitted(*a))
    a, b = (protocol.run(Key("iris", "k-means", "released", 3)) for _ in range(2))
    protocol.run(Key("iris", "k-means", "correct", 3))
    assert [a[m] for m in ("MSE", "W/B", "iterations")] == [b[m] for m in ("MSE", "W/B", "iterations")]
    np.testing.assert_array_equal(starts[0], starts[2])


def test_a_stopped_experiment_goes_on_where_it_was(tmp_path, monkeypatch):
    keys = [key for key in protocol.wanted(["table3"], 2) if key.method == "k-means"]
    path = tmp_path / "runs.csv"
    first = protocol.perform(keys[:2], path, n_jobs=1)
    with path.open("a") as file:
        file.write("iris,k-means,correct")  # the line that was being written when the power went
    ticks = []
    done = []
    monkeypatch.setattr(protocol, "run", lambda key: done.append(key) or dict.fromkeys(protocol.MEASURES, 1.0))
    path.write_text(path.read_text() + "\n")
    results = protocol.perform(keys, path, n_jobs=1, tick=ticks.append)
    assert done == keys[2:]
    assert sum(ticks) == len(keys)
    assert all(results[key] == pytest.approx(first[key], nan_ok=True) for key in keys[:2])
    protocol.perform(keys, path, n_jobs=1)
    assert done == keys[2:]


def test_one_column_can_be_done_anew(tmp_path):
    keys = [key for key in protocol.wanted(["table3"], 1) if key.method == "k-means"]
    path = tmp_path / "runs.csv"
    protocol.perform(keys, path, n_jobs=1)
    protocol.forget(path, "correct")
    assert {key.column for key in protocol.read(path)} == {"released"}


def test_two_processes_give_the_same_runs_as_one(tmp_path):
    keys = [key for key in protocol.wanted(["table3"], 2) if key.method in ("k-means", "t-k-means")]
    one, two = (protocol.perform(keys, tmp_path / f"{n}.csv", n_jobs=n) for n in (1, 2))
    for key in keys:
        for measure in ("MSE", "W/B", "iterations"):
            assert one[key][measure] == pytest.approx(two[key][measure], rel=1e-9)


# ---- tables --------------------------------------------------------------------------


def test_z_is_the_difference_in_standard_errors_beyond_rounding():
    cell = Cell(0.8, 0.06)
    error = math.sqrt(0.0605**2 / 100 + 0.04**2 / 25)
    assert z_score(Mean(0.85, 0.04, 25), cell, 0.001) == pytest.approx((0.05 - 0.0005) / error)
    assert z_score(Mean(0.75, 0.04, 25), cell, 0.001) == pytest.approx(-(0.05 - 0.0005) / error)
    assert z_score(Mean(0.8004, 0.0, 100), Cell(0.8, 0.0), 0.001) == 0.0
    assert z_score(Mean(0.802, 0.0, 100), Cell(0.8, 0.0), 0.001) == pytest.approx(0.0015 / 0.00005)


def test_means_and_deviations_are_those_of_the_runs():
    rows = tables.rows("table1", invented(0.5))
    assert len(rows) == 90
    for row in rows:
        assert row.released == pytest.approx((0.5, 0.01 * math.sqrt(4 / 3), 4))
        assert row.published == published()["ARI"][row.dataset][row.method]
        assert (row.defaults is None) == (row.method not in COLUMNS["defaults"])
    assert len(tables.rows("table2", {})) == 72
    assert all(row.released is None and row.verdict == "" for row in tables.rows("table2", {}))


def test_agreement_is_coloured_and_marked():
    close, far = Row("A1", "ARI", "GMM", Cell(0.5, 0.1), Mean(0.5, 0.1, 9), None, None, 0.4), 9.0
    rows = [close, close._replace(method="TMM", z=-4.0), close._replace(method="k-means", z=far)]
    assert [row.verdict for row in rows] == ["agrees", "near", "differs"]
    page, text = tables.html(rows, "A title"), tables.markdown(rows)
    assert page.index("#c8e6c9") < page.index("#fff3c4") < page.index("#ffcdd2")
    assert "| GMM | 0.500 ± 0.100 | 0.500 ± 0.100 | +0.4 ✓ | - | - |" in text
    assert "-4.0 ~" in text
    assert "+9.0 ✗" in text


def test_the_csv_holds_every_cell_in_full():
    rows = tables.rows("table1", invented(1 / 3))
    lines = list(csv.DictReader(tables.as_csv(rows).splitlines()))
    assert len(lines) == 90
    assert float(lines[0]["released_mean"]) == pytest.approx(1 / 3, rel=1e-12)
    assert {line["method"] for line in lines} == set(METHODS)


def test_seconds_are_shown_but_not_judged():
    rows = [row for row in tables.rows("table3", invented(0.5)) if row.measure == "seconds"]
    assert all(row.verdict == "" for row in rows)


# ---- page and figures ----------------------------------------------------------------


def test_the_page_counts_lists_the_exceptions_and_compares_our_default():
    results = invented(0.5)
    text = Page(*(tables.rows(name, results) for name in protocol.TABLES), "figs").text()
    rows = tables.rows("table1", results)
    agree = sum(row.verdict == "agrees" for row in rows)
    assert f"in {agree} of 90 cells" in text
    assert "fast t-k-means on S1: 0.986 / 0.500" in text
    assert "| S1 | 0.986 | fast t-k-means | 0.500 ± 0.012 | -0.486 ✗ | ✗ |" in text
    assert "(figs/collapse.png)" in text
    assert "FIGURES" not in text


def test_the_literal_limit_puts_every_centre_onto_a_row_and_the_released_form_none():
    X, _, n_clusters = protocol.prepared("S1")
    start = RELEASED["fast t-k-means"].start(X, n_clusters, np.random.RandomState(0))
    assert np.all(figures.nearest_rows(X, start, power=1)[-1] < 1e-6)
    assert np.all(figures.nearest_rows(X, start, power=0)[-1] > 1e-6)


def test_figures_are_pictures(tmp_path):
    figures.loss(tmp_path / "loss.png")
    figures.table1(tables.rows("table1", invented(0.5)), tmp_path / "table1.png")
    figures.collapse(tmp_path / "collapse.png")
    figures.voronoi("unbalance", tmp_path / "voronoi.png")
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 300_000


# ---- the command ---------------------------------------------------------------------


def test_the_command_writes_a_table_in_three_formats(tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "table3", "--reps", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"runs.csv", "table3.md", "table3.csv", "table3.html"}


def test_all_of_it_ends_in_a_page_beside_the_folder(tmp_path, monkeypatch):
    results = invented(0.5)
    monkeypatch.setattr(protocol, "perform", lambda keys, *a, **k: {key: results[key] for key in keys})
    for name in ("voronoi", "collapse"):
        monkeypatch.setattr(figures, name, lambda *args: None)
    counted = []
    written = command.reproduce("all", tmp_path / "pages", reps=3, start=counted.append)
    assert counted == [14 * (9 + 9 + 2) * 3]
    assert tmp_path / "pages.md" in written
    assert "(pages/table1.png)" in (tmp_path / "pages.md").read_text()


def test_a_missing_data_set_ends_the_command_with_the_way_out(tmp_path, monkeypatch):
    def missing(*args, **options):
        raise OSError("the data set 'A1' could not be fetched")

    monkeypatch.setattr(command, "reproduce", missing)
    done = CliRunner().invoke(app, ["reproduce", "table1", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "could not be fetched" in done.output


# ---- the whole thing, in minutes -------------------------------------------------------


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    """All released runs at the paper's 100 repetitions."""
    folder = tmp_path_factory.mktemp("hundred")

    def results(table):
        keys = [key for key in protocol.wanted([table], 100) if key.column == "released"]
        return protocol.perform(keys, folder / "runs.csv")

    return results


@pytest.mark.slow
def test_the_released_code_gives_the_published_table_1(hundred):
    rows = tables.rows("table1", hundred("table1"))
    assert sum(row.verdict == "agrees" for row in rows) >= 85


@pytest.mark.slow
def test_the_released_code_gives_the_published_t_k_means_rows_of_table_2(hundred):
    rows = [row for row in tables.rows("table2", hundred("table2")) if "t-k-means" in row.method]
    assert len(rows) == 24
    assert sum(round(row.released.mean, 3) == row.published.mean for row in rows) >= 23


@pytest.mark.slow
def test_the_released_code_needs_the_published_iterations(hundred):
    rows = [row for row in tables.rows("table3", hundred("table3")) if row.measure == "iterations"]
    assert all(row.verdict == "agrees" for row in rows if row.method != "GMM")
