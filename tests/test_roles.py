"""The roles of columns: what is clustered by, and what is left out with a reason and a way in."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tkmeans import DataFile, TKMeans
from tkmeans.sources.files import open_table
from tkmeans.tables import choose, read_table

pytest.importorskip("pyarrow", reason="needs the extra io")

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(np.repeat([[0, 0], [9, 9], [0, 9]], N // 3, axis=0))

LEFT_OUT = {
    "a row number": ("row", range(1, N + 1), "a row number"),
    "a row number from 0": ("n", range(N), "a row number"),
    "row numbers in any order": ("n", RNG.permutation(N) + 1, "a row number"),
    "every tenth": ("n", range(100, 100 + 10 * N, 10), "a row number"),
    "a row number with gaps": ("n", [i + i // 7 for i in range(N)], "a row number"),
    "an id with repetitions": ("customer_id", [7 + i // 3 for i in range(N)], "an identifier, by its name"),
    "an id in camel case": ("userId", RNG.permutation(9 * N)[:N], "an identifier, by its name"),
    "a zip code": ("zip_code", RNG.integers(10_000, 99_999, N), "a postal code, by its name"),
    "a German one": ("PLZ", RNG.integers(10_000, 12_000, N), "a postal code, by its name"),
    "a number by name": ("order no", RNG.permutation(9 * N)[:N], "an identifier, by its name and its distinct"),
    "a phone number": ("contact", RNG.integers(10**9, 10**10, N), "a key: long numbers that hardly repeat"),
    "leading zeros": ("branch", [f"{i:04}" for i in RNG.integers(0, 3000, N)], "a code, as 0815 or 12E4 are"),
    "a constant": ("version", [7] * N, "the same in every row"),
    "nothing": ("nothing", [""] * N, "empty"),
    "text": ("city", ["Kiel", "Åbo", "Rom"] * (N // 3), "text"),
    "a date": ("when", [f"2024-02-{1 + i % 28:02}" for i in range(N)], "a date"),
    "a date by its values": ("booked", [20240201 + i % 28 for i in range(N)], "a date, by its values"),
    "a clock": ("t", [f"{0.1 * i:.1f}" for i in range(N)], "a clock: it goes up in equal steps"),
    "a flag": ("newsletter", RNG.integers(0, 2, N), "a flag: it has two values"),
    "true and false": ("member", RNG.choice(["true", "FALSE"], N), "a flag: it has two values"),
    "a label": ("Species", RNG.integers(1, 4, N), "a label, by its name"),
    "a code of regions": ("region_code", RNG.integers(1, 9, N), "a label, by its name"),
    "numbers of warehouses": ("warehouse_nr", RNG.integers(1, 9, N), "a label, by its name"),
    "a gender in three numbers": ("gender", RNG.choice([1, 2, 9], N), "a label, by its name"),
    "a time": ("when", [f"2024-02-{1 + i % 28:02} 12:30:00" for i in range(N)], "a date"),
}
CLUSTERED = {
    "floats": ("id of sorts", RNG.normal(size=N)),
    "distinct floats that ascend": ("dose", np.sort(RNG.normal(size=N))),
    "whole numbers with ties": ("age", RNG.integers(20, 60, N)),
    "distinct whole numbers": ("population", RNG.permutation(10_000)[:N]),
    "distinct whole numbers that ascend": ("population", np.sort(RNG.permutation(10_000)[:N])),
    "years": ("year", RNG.integers(2007, 2010, N)),
    "a musical key": ("key", RNG.integers(0, 12, N)),
    "a price index": ("price_index", RNG.integers(90, 120, N)),
    "a number of rooms": ("number of rooms", RNG.integers(1, 6, N)),
    "dollars": ("paid", [f"${value}" for value in RNG.integers(1, 99, N)]),
    "per cent": ("rate", [f"{value} %" for value in RNG.integers(1, 99, N)]),
    "large sums": ("turnover", RNG.integers(10**3, 10**8, N)),
    "the largest numbers": ("x1", np.array([0.0, 1.797e308, 0.5])[np.arange(N) % 3]),
}


def table_with(folder, name, cells):
    path = folder / "table.csv"
    lines = [f"{cell},{x!r},{y!r}" for cell, (x, y) in zip(cells, X.tolist(), strict=True)]
    path.write_text("\n".join([f"{name},x,y", *lines]) + "\n")
    return path


@pytest.mark.parametrize(("name", "cells", "reason"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_column_that_means_nothing_in_a_distance_is_left_out_with_its_reason(tmp_path, name, cells, reason):
    choice = choose(read_table(table_with(tmp_path, name, cells)))
    assert choice.names == ["x", "y"]
    assert f"{name} ({reason}" in choice.notes[0]


@pytest.mark.parametrize(("name", "cells"), CLUSTERED.values(), ids=CLUSTERED)
def test_a_measurement_is_clustered_by(tmp_path, name, cells):
    choice = choose(read_table(table_with(tmp_path, name, cells)))
    assert choice.names == [name, "x", "y"]
    assert choice.notes == []


def test_flags_and_labels_are_clustered_by_where_there_are_no_measurements(tmp_path):
    path = tmp_path / "flags.csv"
    path.write_text("class,a,b\n" + "".join(f"{i % 3},{i % 2},{i // 7 % 2}\n" for i in range(N)))
    assert choose(read_table(path)).names == ["class", "a", "b"]


def test_a_flag_that_is_constant_for_long_is_a_flag(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,fraud\n" + "1.5,0\n2.5,0\n3.5,0\n" * 40_000 + "3.5,1\n")
    (role,) = (role for role in choose(read_table(path)).roles if role.name == "fraud")
    assert role.reason == "a flag: it has two values"


def test_columns_left_out_are_kept_on_request_and_dates_become_days(tmp_path):
    path = table_with(tmp_path, "when", [f"1970-01-{1 + i % 28:02}" for i in range(N)])
    for file in (DataFile(path, keep=["when"]), DataFile(path, columns=["when", "x", "y"])):
        table, names = open_table(file)
        assert names == ["when", "x", "y"]
        days = np.concatenate([*table.batches(names, 7)])[:, 0]
        assert days.tolist() == [i % 28 for i in range(N)]
    assert open_table(DataFile(path, without=["y"], keep=["when"]))[1] == ["when", "x"]


def test_an_indicator_of_a_category_is_one_where_it_is_that_and_missing_where_it_is_missing(tmp_path):
    table = read_table(table_with(tmp_path, "city", ["Kiel", "Rom", "NA"] * (N // 3)))
    values = np.concatenate([*table.batches(["x", "city=Rom"], 100)])[:, 1]
    np.testing.assert_array_equal(values, [0, 1, np.nan] * (N // 3))


def test_a_column_that_is_constant_for_long_and_then_not_is_clustered_by(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "1.5,0\n2.5,0\n3.5,0\n" * 40_000 + "3.5,1\n3.5,2\n")
    assert choose(read_table(path)).names == ["a", "b"]
    path.write_text("a,b\n" + "1.5,0\n2.5,0\n3.5,0\n" * 40_000 + "3.5,0\n")
    assert choose(read_table(path)).names == ["a"]


def test_an_id_and_a_zip_code_change_neither_the_clusters_of_fit_nor_of_the_command(tmp_path):
    species = np.repeat([0, 1, 2], N // 3)
    path = table_with(tmp_path, "sample_id,zip", [f"{i * 7919 % 99991},{10_000 + i * 37 % 999}" for i in range(N)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours = TKMeans(3, random_state=0).fit(path)
    np.testing.assert_array_equal(ours.labels_, TKMeans(3, random_state=0).fit(X).labels_)
    assert adjusted_rand_score(species, ours.labels_) > 0.95
