"""Clusters of any width and direction, by the command."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score


@pytest.fixture
def irises(tmp_path):
    """A file of the irises, and their species."""
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "irises.csv"
    pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"]).to_csv(path, index=False)
    return path, y


def test_elliptical_clusters_of_the_irises_are_the_species_and_round_ones_are_not(run, irises):
    path, y = irises
    scores = {}
    for shape in ("round", "elliptical"):
        found = json.loads(run("fit", path, "-k", 3, "--shape", shape, "--json").stdout)
        scores[shape] = adjusted_rand_score(y, found["labels"])
    assert scores["elliptical"] > 0.9 > scores["round"]


def test_the_shape_auto_is_elliptical_where_rows_suffice_and_says_so(run, irises):
    path, _ = irises
    done = run("fit", path, "-k", 3, "--shape", "auto")
    assert "lusters are elliptical (150 rows, 84 needed for 3 ellipses of 4 columns)" in done.stderr + done.stdout
    done = run("fit", path, "-k", 8, "--shape", "auto")
    assert "lusters are round (150 rows, 224 needed" in done.stderr + done.stdout


def test_beside_encoded_columns_wrong_values_are_seen(run, tmp_path):
    """Each cluster has as many rows of each city as the other, and three wrong incomes."""
    rng, n = np.random.default_rng(0), 300
    income, city = rng.normal([30_000, 70_000], 3000, (n // 2, 2)).ravel(), rng.choice(["Paris", "Lyon", "Nice"], n)
    income[[5, 50, 123]] = 5e6
    age = rng.normal([30, 50], 3, (n // 2, 2)).ravel()
    path = tmp_path / "people.csv"
    pd.DataFrame({"income": income, "age": age, "city": city}).to_csv(path, index=False)
    done = run("fit", path, "-k", 2, "--encode", "city", "--json")
    assert "lusters are elliptical (300 rows" in done.stderr
    found = json.loads(done.stdout)
    assert adjusted_rand_score(np.arange(n) % 2, found["labels"]) == 1
    assert found["outliers"]["lines"] == [7, 52, 125]
    for cluster in found["clusters"]:
        assert sum(cluster["center"][f"city={name}"] for name in ("Paris", "Lyon", "Nice")) == pytest.approx(1)
        assert max(cluster["center"][f"city={name}"] for name in ("Paris", "Lyon", "Nice")) < 0.5
    assert "elliptical" not in run("fit", path, "-k", 2, "--encode", "city", "--shape", "round").stderr


def test_every_command_takes_elliptical_clusters(run, irises, tmp_path):
    path, _ = irises
    X = np.loadtxt(path, delimiter=",", skiprows=1)
    pd.DataFrame(np.vstack([X, [[500.0, 1.0, 1.0, 1.0]]]), columns=list("abcd")).to_csv(path, index=False)
    model, report = tmp_path / "model.json", tmp_path / "report.html"
    run("fit", path, "-k", 3, "--shape", "elliptical", "--model", model, "--report", report)
    assert report.stat().st_size > 10_000
    run("predict", model, path, "--out", tmp_path / "new.csv")
    flagged = json.loads(run("outliers", path, "-k", 3, "--shape", "elliptical", "--json").stdout)["outliers"]
    assert [row["value"] for row in flagged] == [500.0]


def test_the_command_gives_heaps_below_the_least_size_no_cluster(run, tmp_path):
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(150, 2)) + np.repeat([[0, 0], [5, 0], [0, 40]], 50, axis=0)
    rows = np.vstack([groups, np.full((20, 2), 300.0)])
    path = tmp_path / "heap.csv"
    pd.DataFrame(rows, columns=["x", "y"]).to_csv(path, index=False)
    sizes = {}
    for least in (1, 30):
        options = ("-k", 3, "--scale", "none", "--min-cluster-size", least, "--json")
        sizes[least] = np.bincount(json.loads(run("fit", path, *options).stdout)["labels"][:150], minlength=3)
    assert np.count_nonzero(sizes[1]) == 2
    assert np.min(sizes[30]) > 40
