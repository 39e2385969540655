"""The paper's published values, and whether our means agree with them."""

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tkmeans.paper import text_of
from tkmeans.paper.experiment_runs import TABLES, Results

REPETITIONS = 100  # "all experiment are repeated 100 times"
TABLE_MEASURES = {"table1": ("ARI",), "table2": ("MSE", "W/B"), "table3": ("iterations", "seconds")}
AGREES, NEAR = 3.0, 5.0  # standard errors


class Cell(NamedTuple):
    """A mean and a standard deviation over repetitions."""

    mean: float
    std: float


@cache
def publication() -> dict[str, Any]:
    """The titles of the tables; and their cells by measure, data set and method."""
    return tomllib.loads(text_of("publication.toml"))


def published(measure: str, dataset: str, method: str) -> Cell:
    """What the paper printed."""
    return Cell(*publication()["cells"][measure][dataset][method])


METHODS = tuple(publication()["cells"]["ARI"]["A1"])


class Mean(NamedTuple):
    """Of the repetitions that were done."""

    mean: float
    std: float
    n: int
    least: float
    most: float


class Row(NamedTuple):
    """One method on one data set by one measure."""

    dataset: str
    measure: str
    method: str
    published: Cell
    means: Mapping[str, Mean]  # of each column that has been run

    def z(self, column: str = "released", *, rounding: bool = True) -> float:
        """How far a column is from the published cell; NaN where they cannot be compared.

        Without `rounding`, the printed figures are taken as exact.
        """
        ours = self.means.get(column)
        if ours is None or self.measure == "seconds":  # their computer is not ours
            return float("nan")
        return z_score(ours, self.published, printed_unit(self.measure, self.method) if rounding else 0.0)

    def verdict(self, column: str = "released", *, rounding: bool = True) -> str:
        """Whether the runs of a column give the published figure."""
        z = abs(self.z(column, rounding=rounding))
        return "" if math.isnan(z) else "agrees" if z <= AGREES else "near" if z <= NEAR else "differs"


def z_score(ours: Mean, published: Cell, unit: float) -> float:
    """The difference of the means in standard errors, beyond what rounding to `unit` explains.

    Mean and deviation were both printed rounded: a mean may be off by half a unit, and a
    deviation of 0.000 can be anything up to half a unit. This is the least z of all
    unrounded figures that would have been printed like that.
    """
    difference = ours.mean - published.mean
    beyond = max(abs(difference) - unit / 2, 0.0)
    error = math.sqrt((published.std + unit / 2) ** 2 / REPETITIONS + ours.std**2 / ours.n)
    if beyond == 0:
        return 0.0
    return math.copysign(beyond / error if error > 0 else math.inf, difference)


def printed_unit(measure: str, method: str) -> float:
    """The last digit that was printed; the k-medians row of Table 1 has two decimals and a 0."""
    return 0.01 if measure == "iterations" or (measure == "ARI" and method == "k-medians") else 0.001


def rows(table: str, results: Results) -> list[Row]:
    """All rows of a table, with what has been run so far."""
    values: dict[tuple[str, str], dict[str, list[dict[str, float]]]] = {}
    for key, result in results.items():
        values.setdefault((key.dataset, key.method), {}).setdefault(key.column, []).append(result)
    return [
        Row(
            name,
            measure,
            method,
            published(measure, name, method),
            {column: _mean([run[measure] for run in runs]) for column, runs in values.get((name, method), {}).items()},
        )
        for measure in TABLE_MEASURES[table]
        for name in TABLES[table]
        for method in METHODS
    ]


def _mean(values: list[float]) -> Mean:
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Mean(float(np.mean(values)), std, len(values), min(values), max(values))
