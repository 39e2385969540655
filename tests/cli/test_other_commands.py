"""`tkmeans outliers`, `select-k`, `report` and `reproduce`."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tkmeans import StudentTMixture, TKMeans
from tkmeans.fitting.selections import Selection
from tkmeans.tables import read_table


def test_the_outliers_command_lists_outliers_with_the_column_that_makes_them_so(run, csv_file, tmp_path):
    out = tmp_path / "outliers.csv"
    shown = run("outliers", csv_file(), "-k", 3, "--id", "species", "--out", out).stdout
    assert "1 of 60 rows is an outlier" in shown
    assert "│   22 │ Chinstrap │" in shown
    assert "body_mass_g = 37000" in shown
    assert read_table(out).cells("body_mass_g") == ["37000"]


def test_the_outliers_command_as_json_can_use_the_rule_of_tail_probabilities(run, csv_file):
    document = run("outliers", csv_file(), "-k", 3, "--rule", "tail", "--level", "0.2", "--json").document
    pvalues = [row["outlier_pvalue"] for row in document["outliers"]]
    assert pvalues == sorted(pvalues)
    assert max(pvalues) < 0.2
    assert document["outliers"][0]["line"] == 22
    assert document["outliers"][0]["column"] == "body_mass_g"


def test_where_no_row_is_an_outlier_the_outliers_command_shows_the_least_typical_rows(run, csv_file):
    file = csv_file(change=lambda row: [cell.replace("37000", "3700") for cell in row])
    shown = run("outliers", file, "-k", 3).stdout
    assert "No row is an outlier." in shown
    assert "The least typical rows" in shown


@pytest.fixture
def selections(monkeypatch):
    """Calls of `select_clusters`, which here always finds three."""
    calls = []

    def select(X, n_clusters, **options):
        options.pop("progress")(len(n_clusters), len(n_clusters))
        calls.append((X, n_clusters, options))
        k = np.array(list(n_clusters))
        return Selection(
            n_clusters=k,
            shapes=np.full(len(k), "full"),
            evidence=50.0 + 0.9 * np.abs(k - 3.1),
            icl=100.0 + (k - 3.1) ** 2,
            bic=90.0 + (k - 3.1) ** 2,
            outlier_fraction=np.full(len(k), 0.02),
            stability=0.9 - 0.05 * np.abs(k - 3.1) if options["criterion"] == "stability" else None,
            criterion=options["criterion"],
        )

    monkeypatch.setitem(sys.modules, "tkmeans.selection", SimpleNamespace(select_clusters=select))
    return calls


def test_select_k_suggests_a_number_of_clusters_and_the_command_to_fit_with_it(run, csv_file, selections):
    file = csv_file()
    shown = run("select-k", file, "--max", 6, "--without", "flipper_length_mm").stdout
    assert "3 clusters by evidence, hardly better than 4 (0.7 nats)." in shown
    assert f"tkmeans fit {file} -k 3 --without flipper_length_mm" in shown
    X, numbers, options = selections[0]
    assert numbers == range(1, 7)
    assert options == {"criterion": "evidence", "sample_weight": None, "random_state": 0, "n_jobs": -1}
    np.testing.assert_allclose(np.nanmedian(X, axis=0), 0, atol=1e-12)  # scaled


def test_select_k_as_json_has_the_criteria_of_every_number_of_clusters(run, csv_file, selections):
    document = run("select-k", csv_file(), "--min", 2, "--max", 5, "--criterion", "bic", "--json").document
    assert (document["best"], document["runner_up"], document["criterion"]) == (3, 4, "bic")
    assert document["n_clusters"] == [2, 3, 4, 5]
    assert len(document["evidence"]) == len(document["icl"]) == 4
    assert document["margin"] == pytest.approx(0.4)
    assert document["stability"] is None
    shown = run("select-k", csv_file(), "--max", 2, "--criterion", "stability").stdout
    assert "0.84" in shown
    assert "best is the largest number with at least .8" in " ".join(shown.split())
    run("select-k", csv_file(), "--min", 6, "--max", 5, code=2)


@pytest.mark.parametrize("command", ["fit", "outliers", "report"])
def test_commands_without_a_number_of_clusters_say_what_they_chose_the_runner_up_and_how_close_it_was(
    run, csv_file, tmp_path, selections, command
):
    out = ["--out", tmp_path / "page.html"] if command == "report" else []
    said = run(command, csv_file(), "--shape", "round", *out).stderr
    assert "3 clusters by evidence, hardly better than 4 (0.7 nats); add -k for another number." in " ".join(
        said.split()
    )
    assert "--shape elliptical follows them" in " ".join(said.split())
    assert selections[0][1] == range(1, 21)


def test_the_report_command_without_a_number_of_clusters_selects_one(
    run, csv_file, tmp_path, reports, selections, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tkmeans", "report", "my birds.csv"])
    out = tmp_path / "page.html"
    done = run("report", csv_file(), "--out", out)
    assert str(out) in done.stdout.replace("\n", "")
    (path, estimator, _), options = reports[0]
    assert path == out
    assert isinstance(estimator, StudentTMixture)
    assert estimator.n_components == options["selection"].best == 3
    assert options["title"] == "penguins.csv"
    assert options["call"] == "tkmeans report 'my birds.csv'"


def test_the_report_command_with_a_number_of_clusters_uses_it(run, csv_file, tmp_path, reports):
    run("report", csv_file(), "-k", 2, "--shape", "round", "--out", tmp_path / "page.html")
    (_, estimator, _), options = reports[0]
    assert isinstance(estimator, TKMeans)
    assert estimator.n_clusters == 2
    assert options["selection"] is None


def test_reproduce_prints_its_tables_and_the_files_that_it_has_written(run, tmp_path, monkeypatch):
    from tkmeans.paper import reproduction

    def stub(what, out, *, reps, start, tick, finish):
        start(2)
        tick(2)
        return [out / f"{what}-{reps}.md"]

    monkeypatch.setattr(reproduction, "reproduce", stub)
    (tmp_path / "table1-2.md").write_text("| the | table |\n")
    shown = run("reproduce", "table1", "--quick", "--out", tmp_path).stdout
    assert shown == f"| the | table |\n\n{tmp_path / 'table1-2.md'}\n"
