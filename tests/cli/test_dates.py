"""Dates in numbers are not clustered by; measurements with such names or values are."""

import numpy as np
import pytest
from support.command_tables import columns_of, groups, positive_groups

pytestmark = pytest.mark.usefixtures("own_folder")

N = 40
rng = np.random.default_rng(0)
MOMENTS = {
    "seconds": (1_700_092_800 + rng.integers(0, 900, N) * 86_400).tolist(),
    "milliseconds": (1_700_134_893_000 + rng.integers(0, 10**6, N) * 1000).tolist(),
    "nanoseconds": (1_700_134_893_000_000_000 + rng.integers(0, 10**6, N) * 10**9).tolist(),
    "days": [f"{1950 + i * 7 % 60}{1 + i % 12:02}{1 + i * 5 % 28:02}" for i in range(N)],
    "short days": [f"{10 + i * 7 % 60}{1 + i % 12:02}{1 + i * 5 % 28:02}" for i in range(N)],
    "Excel's days": rng.integers(45_000, 45_900, N).tolist(),
}
CALLED = ["timestamp", "DATE", "Time Stamp", "timeStamp", "order_date", "dob", "birth", "dt", "ts", "created_at"]
CALLED += ["Fecha", "datum", "date_of_birth", "updatedAt"]


@pytest.mark.parametrize(
    "name", ["date", "order_date", "BirthDate", "orderdate", "Datum", "Buchungstag", "month", "day_key"]
)
@pytest.mark.parametrize("form", ["{:04}{:02}{:02}", "{:04}{:02}"])
def test_whole_numbers_that_are_dates_by_their_name_and_values_are_not_clustered_by(run, table, name, form):
    rng = np.random.default_rng(0)
    days = zip(rng.integers(1900, 2101, 60), rng.integers(1, 13, 60), rng.integers(1, 29, 60), strict=True)
    file = table(
        f"{name},a,b", *(f"{form.format(*day)},{a},{b}" for day, (a, b) in zip(days, positive_groups(60), strict=True))
    )
    assert columns_of(run, file)[name] == "not used: a date, by its name and its values"
    assert columns_of(run, file, "--keep", name)[name] == "used for clustering"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("amount", ["20210328", "20211218", "20220101"]),  # the name says nothing
        ("date", ["20210328", "20211332", "20220101"]),  # there is no month 13
        ("date", ["20210328", "20210229", "20220101"]),  # nor that day
        ("date", ["18991231", "20211218", "20220101"]),
        ("date", ["20210328.5", "20211218", "20220101"]),
        ("day", ["1", "17", "31"]),
        ("months", ["12", "36", "24"]),
    ],
)
def test_numbers_that_are_no_dates_are_clustered_by_whatever_their_name(run, table, name, cells):
    rows = (f"{cells[i % 3]},{a},{b}" for i, (a, b) in enumerate(positive_groups(60)))
    assert columns_of(run, table(f"{name},a,b", *rows))[name] == "used for clustering"


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("kind", MOMENTS)
def test_dates_in_numbers_are_not_clustered_by(run, table, name, kind):
    file = table(f"{name},x", *(f"{when},{i % 7}.5" for i, when in enumerate(MOMENTS[kind])))
    assert columns_of(run, file)[name] == "not used: a date, by its name and its values"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("time", rng.integers(0, 90_000, N)),
        ("duration", rng.integers(20_000, 60_000, N)),
        ("timestamp", rng.integers(0, 10_000, N)),
        ("birth", rng.integers(1940, 2010, N)),
        ("sales_to_date", rng.integers(20_000, 60_000, N)),
        ("candidate", rng.integers(20_000, 60_000, N)),
        ("births", rng.integers(20_000, 60_000, N)),
        ("amount", MOMENTS["Excel's days"]),
        ("update", rng.integers(20_000, 60_000, N)),
    ],
)
def test_measurements_with_similar_names_or_values_are_clustered_by(run, table, name, values):
    file = table(f"{name},x", *(f"{value},{i % 7}.5" for i, value in enumerate(values)))
    assert columns_of(run, file)[name] == "used for clustering"


def test_times_beyond_those_of_python_are_refused_with_the_name_of_the_file(run, tmp_path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    for kind in (pa.timestamp("s"), pa.duration("s")):
        stored = {"a": groups()[:, 0], "b": groups()[:, 1], "t": pa.array([2**62] * 60, kind)}
        feather.write_feather(pa.table(stored), tmp_path / "t.feather")
        for out in ("o.csv", "o.parquet"):
            said = run("fit", tmp_path / "t.feather", "-k", 2, "--out", tmp_path / out, code=1).stderr
            assert "t.feather cannot be" in said
