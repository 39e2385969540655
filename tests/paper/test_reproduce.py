"""The command, from runs to tables, figures and the page."""

import csv
import math
import re

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from support.paper_data import data_folder
from typer.testing import CliRunner

from benchmarks import reproduction_page
from benchmarks.reproduction_page import equal_to_the_third_decimal, standings
from tkmeans.cli import app
from tkmeans.em import em
from tkmeans.paper import experiment_runs, published_values, reproduction
from tkmeans.paper.authors.methods import METHODS as RELEASED
from tkmeans.paper.experiment_runs import COLUMNS, UNSCALED, Key, fitted
from tkmeans.paper.published_values import METHODS, Mean, Row, published, z_score


@pytest.fixture(autouse=True)
def _data(monkeypatch):
    monkeypatch.setenv("TKMEANS_DATA", str(data_folder()))
    experiment_runs.prepared.cache_clear()


def invented(value, reps=10):
    """Runs of which the tables are known beforehand: `value` plus or minus 0.01."""
    return {
        Key(name, method, column, rep): dict.fromkeys(experiment_runs.MEASURES, value + 0.01 * (-1) ** rep)
        for name in {*experiment_runs.TABLES["table1"], *experiment_runs.TABLES["table2"]}
        for column, methods in COLUMNS.items()
        if name in experiment_runs.TABLES["table1"] or column not in UNSCALED
        for method in methods
        for rep in range(reps)
    }


def table(name, results):
    return published_values.rows(name, published_values.summarised(results))


def mean(value, std, n):
    return Mean(value, std, n, value, value)


# ---- runs ----------------------------------------------------------------------------


@pytest.mark.parametrize(("column", "method"), [(c, m) for c, methods in COLUMNS.items() for m in methods])
def test_every_method_of_every_column_of_the_reproduction_clusters_iris(column, method):
    row = experiment_runs.run(Key("bezdekiris", method, column, 0))
    assert math.isnan(row["ARI"])  # the paper removed the labels
    assert 0.15 < row["MSE"] < 1.5
    assert row["W/B"] > 0
    assert row["iterations"] >= 1
    assert row["seconds"] > 0


def test_a_run_of_the_reproduction_has_the_measures_that_a_table_shows_of_its_data_set():
    row = experiment_runs.run(Key("dim032", "k-means", "correct", 0))
    assert 0 < row["ARI"] <= 1
    assert math.isnan(row["MSE"])
    assert math.isnan(row["W/B"])


def test_equal_keys_of_the_reproduction_give_equal_runs_and_columns_share_their_start(monkeypatch):
    starts = []
    monkeypatch.setattr(experiment_runs, "fitted", lambda *a: starts.append(a[3]) or fitted(*a))
    a, b = (experiment_runs.run(Key("iris", "k-means", "released", 3)) for _ in range(2))
    experiment_runs.run(Key("iris", "k-means", "correct", 3))
    assert [a[m] for m in ("MSE", "W/B", "iterations")] == [b[m] for m in ("MSE", "W/B", "iterations")]
    np.testing.assert_array_equal(starts[0], starts[2])


def test_methods_that_start_alike_in_the_paper_start_at_the_same_points(monkeypatch):
    starts = {}
    monkeypatch.setattr(experiment_runs, "fitted", lambda *a: starts.update({a[1]: a[3]}) or fitted(*a))
    for method in METHODS:
        experiment_runs.run(Key("iris", method, "released", 0))
    for method in ("GMM", "TMM", "t-k-means", "fast t-k-means"):
        np.testing.assert_array_equal(starts[method], starts["k-means"])
    np.testing.assert_array_equal(starts["k-medians"], starts["k-medoids"])
    np.testing.assert_allclose(starts["fast t-k-means++"], starts["k-means++"] + 0.01)


def test_the_gmm_with_correct_equations_is_that_of_scikit_learn_from_the_papers_start():
    X, _, n_clusters = experiment_runs.prepared("bezdekiris")
    start = RELEASED["GMM"].start(X, n_clusters, np.random.RandomState(1))
    unit = np.tile(np.eye(4), (3, 1, 1))
    theirs = GaussianMixture(3, means_init=start, weights_init=np.full(3, 1 / 3), precisions_init=unit, tol=1e-6)
    labels = theirs.set_params(max_iter=500).fit_predict(X)
    ours = fitted("correct", "GMM", X, start, 0)
    np.testing.assert_array_equal(ours.labels, labels)
    np.testing.assert_allclose(ours.centers, theirs.means_, atol=1e-3)


def test_t_k_means_with_correct_equations_begins_with_the_released_scale_and_dof(monkeypatch):
    begun = []
    monkeypatch.setattr(experiment_runs, "em", lambda *a, **k: begun.append(a[2]) or em(*a, **k))
    X, _, n_clusters = experiment_runs.prepared("bezdekiris")
    start = RELEASED["t-k-means"].start(X, n_clusters, np.random.RandomState(1))
    for column in ("correct", "better start"):
        fitted(column, "t-k-means", X, start, 0)
    assert [(params.scale, params.dof) for params in begun] == [
        (0.01, 15.0),
        (pytest.approx(np.var(X, 0).mean()), 15.0),
    ]
    for params in begun:
        np.testing.assert_array_equal(params.centers, start)


def test_a_stopped_reproduction_continues_where_it_was(tmp_path, monkeypatch):
    keys = [key for key in experiment_runs.wanted(["table3"], 2) if key.method == "k-means"]
    path = tmp_path / "runs.csv"
    first = experiment_runs.perform(keys[:2], path, n_jobs=1)
    with path.open("a") as file:
        file.write("iris,k-means,correct")  # the line that was being written when the power went
    ticks = []
    done = []
    monkeypatch.setattr(
        experiment_runs, "run", lambda key: done.append(key) or dict.fromkeys(experiment_runs.MEASURES, 1.0)
    )
    results = experiment_runs.perform(keys, path, n_jobs=1, tick=ticks.append)
    assert done == keys[2:]
    assert sum(ticks) == len(keys)
    assert all(results[key] == pytest.approx(first[key], nan_ok=True) for key in keys[:2])
    experiment_runs.perform(keys, path, n_jobs=1)
    assert done == keys[2:]


def test_two_processes_give_the_same_runs_of_the_reproduction_as_one(tmp_path):
    keys = [key for key in experiment_runs.wanted(["table3"], 2) if key.method in ("k-means", "t-k-means")]
    one, two = (experiment_runs.perform(keys, tmp_path / f"{n}.csv", n_jobs=n) for n in (1, 2))
    for key in keys:
        for measure in ("MSE", "W/B", "iterations"):
            assert one[key][measure] == pytest.approx(two[key][measure], rel=1e-9)


# ---- tables --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ours", [mean(0.85, 0.04, 25), mean(0.75, 0.04, 25), mean(0.8003, 0.0, 100), mean(0.802, 0, 9)]
)
@pytest.mark.parametrize("cell", [Mean(0.8, 0.06), Mean(0.8, 0.0)])
def test_the_z_score_is_the_least_over_all_figures_that_round_to_the_published_ones(ours, cell):
    zs = [
        (ours.mean - m) / math.sqrt(s**2 / 100 + ours.std**2 / ours.n)
        for m in np.linspace(cell.mean - 0.0005, cell.mean + 0.0005, 101)
        for s in np.linspace(max(cell.std - 0.0005, 1e-9), cell.std + 0.0005, 11)
    ]
    crosses = min(zs) <= 0 <= max(zs)
    assert z_score(ours, cell, 0.001) == pytest.approx(0 if crosses else min(zs, key=abs))


def test_the_z_score_of_different_exact_figures_without_variance_is_infinite():
    assert z_score(mean(0.8003, 0.0, 100), Mean(0.8, 0.0), 0.0) == math.inf
    assert z_score(mean(0.8, 0.0, 100), Mean(0.8, 0.0), 0.0) == 0.0
    assert z_score(mean(0.85, 0.04, 25), Mean(0.8, 0.06), 0.0) == pytest.approx(0.05 / math.sqrt(0.006**2 + 0.008**2))


def test_means_and_deviations_in_the_reproduced_tables_are_those_of_the_runs():
    rows = table("table1", invented(0.5))
    assert len(rows) == 90
    for row in rows:
        assert row.means["released"] == pytest.approx((0.5, 0.01 * math.sqrt(10 / 9), 10, 0.49, 0.51))
        assert row.published == published("ARI", row.dataset, row.method)
        assert set(row.means) == {column for column, methods in COLUMNS.items() if row.method in methods}
    assert len(table("table2", {})) == 72
    assert all(not row.means and row.rating() == "" for row in table("table2", {}))


def test_agreement_with_the_published_figures_is_marked():
    cell = Mean(0.5, 0.0995)  # with the half unit of rounding a standard error of 0.01
    at = {"GMM": 0.5, "TMM": 0.4595, "k-means": 0.5905}  # 0, 4 and 9 of them from the end of the rounding interval
    rows = [Row("A1", "ARI", method, cell, {"released": mean(value, 0.0, 10)}) for method, value in at.items()]
    assert [row.rating() for row in rows] == ["agrees", "near", "differs"]
    text = published_values.markdown(rows)
    assert "| GMM | 0.500 ± 0.100 | 0.500 ± 0.000 | +0.0 ✓ | - | - | - |" in text
    assert "-4.0 ~" in text
    assert "+9.0 ✗" in text


def test_the_csv_of_a_reproduced_table_holds_every_cell_in_full_precision():
    rows = table("table1", invented(1 / 3))
    lines = list(csv.DictReader(published_values.as_csv(rows).splitlines()))
    assert len(lines) == 90
    assert float(lines[0]["released_mean"]) == pytest.approx(1 / 3, rel=1e-12)
    assert {line["method"] for line in lines} == set(METHODS)


def test_seconds_in_a_reproduced_table_are_not_compared_with_the_published_ones():
    rows = [row for row in table("table3", invented(0.5)) if row.measure == "seconds"]
    assert all(row.rating() == "" for row in rows)


# ---- page and figures ----------------------------------------------------------------


def test_the_written_page_counts_agreement_and_shows_all_tables_and_figures():
    results = invented(0.5)
    text = reproduction.page(published_values.summarised(results), "figs")
    for name, compared in (("table1", 90), ("table2", 72), ("table3", 9)):
        rows = table(name, results)
        agree = sum(row.rating() == "agrees" for row in rows)
        assert f"within 3 standard errors in {agree} of {compared} cells" in text
        assert published_values.markdown(rows) in text
    assert "(figs/loss.png)" in text
    assert "$" not in text


@pytest.mark.parametrize(("reps", "compared"), [(2, False), (9, False), (10, True)])
def test_few_repetitions_give_no_z_and_the_table_says_that_it_is_a_quick_look(reps, compared):
    rows = table("table1", invented(0.5, reps))
    assert all(math.isnan(row.z()) != compared for row in rows)
    text = reproduction.agreement(rows)
    assert ("quick look" in text) == (not compared)
    assert (f"{reps} repetitions" in text) == (not compared)
    assert ("✗" in published_values.markdown(rows)) == compared


def test_our_default_is_compared_with_the_best_published_method_of_every_cell():
    results = invented(0.5)
    held = {cell.dataset: cell for cell in standings(table("table1", results))}
    assert held["unbalance"].method == "fast t-k-means++"
    assert held["unbalance"].short == pytest.approx(0.931 - 0.5)
    assert not any(cell.holds for cell in held.values())
    steady = {key: dict.fromkeys(row, 0.9305) for key, row in results.items()}
    assert [c.dataset for c in standings(table("table1", steady)) if c.holds] == [
        "S3",
        "S4",
        "unbalance",
    ]
    table2 = {(cell.dataset, cell.measure): cell for cell in standings(table("table2", results))}
    assert table2["wine", "W/B"].best.mean == 0.966
    assert {cell for cell, standing in table2.items() if standing.holds} == {("wine", "MSE"), ("wine", "W/B")}


def test_the_literal_limit_puts_every_centre_onto_a_row_and_the_released_form_none():
    X, _, n_clusters = experiment_runs.prepared("S1")
    start = RELEASED["fast t-k-means"].start(X, n_clusters, np.random.RandomState(0))
    assert np.all(reproduction_page.nearest_rows(X, start, power=1)[-1] < 1e-6)
    assert np.all(reproduction_page.nearest_rows(X, start, power=0)[-1] > 1e-6)


@pytest.mark.thorough
def test_the_figures_of_the_reproduction_are_small_png_files(tmp_path):
    reproduction.loss(tmp_path / "loss.png")
    reproduction.table1(table("table1", invented(0.5)), tmp_path / "table1.png")
    reproduction_page.collapse(tmp_path / "collapse.png")
    reproduction.voronoi("unbalance", tmp_path / "voronoi.png")
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 100_000


# ---- the command ---------------------------------------------------------------------


def test_the_reproduce_command_writes_a_table_in_three_formats(tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "table3", "--reps", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"runs.csv", "table3.md", "table3.csv"}


def test_reproducing_everything_writes_a_page_beside_the_folder(tmp_path, monkeypatch):
    results = invented(0.5)
    monkeypatch.setattr(experiment_runs, "perform", lambda keys, *a, **k: {key: results[key] for key in keys})
    monkeypatch.setattr(reproduction, "voronoi", lambda *args: None)
    counted, told = [], []
    written = reproduction.reproduce("all", tmp_path / "pages", reps=10, start=counted.append, finish=told.append)
    assert counted == [(14 * (9 + 7 + 1 + 2) + 10 * 2) * 10 + 14 * (2 + 2 + 1) * 3]  # of mixtures a quarter
    seconds = sum(results[key]["seconds"] for key in experiment_runs.wanted(experiment_runs.TABLES, 10))
    assert f"the {counted[0]} runs, earlier ones included, took {seconds:.0f} s of one core" in told[0]
    assert tmp_path / "pages.md" in written
    text = (tmp_path / "pages.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert "pages/table1.png" in links
    assert all((tmp_path / link).exists() for link in links if "voronoi" not in link)  # which are left out above
    made = {key: results[key] for key in experiment_runs.wanted(experiment_runs.TABLES, 10)}
    assert reproduction_page.read_results(tmp_path / "pages" / "results.json") == published_values.summarised(made)


def test_the_reproduce_command_without_a_data_set_exits_with_1_and_the_reason(tmp_path, monkeypatch):
    def missing(*args, **options):
        raise OSError("the data set 'A1' could not be fetched")

    monkeypatch.setattr(reproduction, "reproduce", missing)
    done = CliRunner().invoke(app, ["reproduce", "table1", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "could not be fetched" in done.output


# ---- the whole thing, in minutes -------------------------------------------------------


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    """Some columns of a table at the paper's 100 repetitions."""
    folder = tmp_path_factory.mktemp("hundred")

    def rows(table, *columns):
        keys = [key for key in experiment_runs.wanted([table], 100) if key.column in columns]
        results = experiment_runs.perform(keys, folder / "runs.csv")
        return published_values.rows(table, published_values.summarised(results))

    return rows


@pytest.mark.slow
def test_the_released_code_gives_the_published_table_1(hundred):
    rows = hundred("table1", "released")
    assert sum(row.rating() == "agrees" for row in rows) >= 85


@pytest.mark.slow
def test_on_unscaled_rows_the_released_code_gives_the_whole_published_row_of_fast_plusplus(hundred):
    rows = [row for row in hundred("table1", "released unscaled") if row.method == "fast t-k-means++"]
    assert [row.rating("released unscaled") for row in rows] == ["agrees"] * 10


@pytest.mark.slow
def test_the_released_code_gives_the_published_t_k_means_rows_of_table_2(hundred):
    rows = [row for row in hundred("table2", "released") if "t-k-means" in row.method]
    assert len(rows) == 24
    assert sum(map(equal_to_the_third_decimal, rows)) >= 23


@pytest.mark.slow
def test_the_released_code_needs_the_published_numbers_of_iterations(hundred):
    rows = [row for row in hundred("table3", "released") if row.measure == "iterations"]
    assert all(row.rating() == "agrees" for row in rows if row.method != "GMM")


@pytest.mark.slow
def test_our_default_hardly_varies_and_is_not_below_the_best_published_method(hundred):
    cells = standings(hundred("table1", "defaults", "defaults unscaled"))
    assert max(cell.ours.std for cell in cells) <= 0.002
    # On A1 the best published figure was made from unscaled rows; scaling mixes some of its clusters.
    assert [cell.dataset for cell in cells if not cell.holds] in ([], ["A1"])
    assert all(cell.unscaled.mean >= cell.best.mean - 0.005 for cell in cells)
