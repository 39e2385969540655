"""The paper's published values, whether our means agree with them, and tables of both in Markdown and CSV."""

import csv
import io
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tkmeans.paper.experiment_runs import COLUMNS, TABLES, Results

REPETITIONS = 100  # "all experiment are repeated 100 times"
TABLE_MEASURES = {"table1": ("ARI",), "table2": ("MSE", "W/B"), "table3": ("iterations", "seconds")}
AGREES, NEAR = 3.0, 5.0  # standard errors
LEAST_REPETITIONS = 10  # the deviation of fewer runs is a guess, and so would be z
COLUMN_TITLES = {"released": "as released", "correct": "correct equations"}
COLUMN_TITLES |= {"better start": "better start", "defaults": "our defaults"}

MARKS = {"agrees": "✓", "near": "~", "differs": "✗", "": ""}
_HEADER = ("method", "published", "as released", "z", *list(COLUMN_TITLES.values())[1:])


class Mean(NamedTuple):
    """A mean and a standard deviation over n repetitions, and the least and the most of them where they are known."""

    mean: float
    std: float
    n: int = REPETITIONS
    least: float = math.nan
    most: float = math.nan


@cache
def publication() -> dict[str, Any]:
    """The titles of the tables; and their cells by measure, data set and method."""
    return tomllib.loads(Path(__file__).with_name("publication.toml").read_text(encoding="utf-8"))


def published(measure: str, dataset: str, method: str) -> Mean:
    """What the paper printed."""
    return Mean(*publication()["cells"][measure][dataset][method])


METHODS = tuple(publication()["cells"]["ARI"]["A1"])


class Row(NamedTuple):
    """One method on one data set by one measure."""

    dataset: str
    measure: str
    method: str
    published: Mean
    means: Mapping[str, Mean]  # of each column that has been run

    def z(self, column: str = "released", *, rounding: bool = True) -> float:
        """How far a column is from the published cell (exact without `rounding`); NaN where they cannot be compared."""
        ours = self.means.get(column)
        if ours is None or ours.n < LEAST_REPETITIONS or self.measure == "seconds":  # their computer is not ours
            return float("nan")
        # The last digit that was printed; the k-medians row of Table 1 has two decimals and a 0.
        unit = 0.01 if self.measure == "iterations" or (self.measure, self.method) == ("ARI", "k-medians") else 0.001
        return z_score(ours, self.published, unit if rounding else 0.0)

    def rating(self, column: str = "released", *, rounding: bool = True) -> str:
        """Whether the runs of a column give the published figure."""
        z = abs(self.z(column, rounding=rounding))
        return "" if math.isnan(z) else "agrees" if z <= AGREES else "near" if z <= NEAR else "differs"


def z_score(ours: Mean, published: Mean, unit: float) -> float:
    """The difference of the means in standard errors, beyond what rounding to `unit` explains.

    Mean and deviation were both printed rounded: a mean may be off by half a unit, and a deviation of 0.000 can be
    anything up to half a unit. This is the least z of all unrounded figures that would have been printed like that.
    """
    difference = ours.mean - published.mean
    beyond = max(abs(difference) - unit / 2, 0.0)
    error = math.sqrt((published.std + unit / 2) ** 2 / published.n + ours.std**2 / ours.n)
    return math.copysign(beyond / error if error > 0 else math.inf, difference) if beyond else 0.0


Cells = dict[str, dict[str, Mean]]  # "data set/method/column", then the measure


def summarised(results: Results) -> Cells:
    """The mean of the repetitions of every run, by each measure that it has."""
    runs: dict[str, list[dict[str, float]]] = {}
    for key, result in results.items():
        runs.setdefault("/".join(key[:3]), []).append(result)
    known = {place: [name for name, first in of[0].items() if first == first] for place, of in runs.items()}
    return {place: {name: _mean([run[name] for run in runs[place]]) for name in known[place]} for place in runs}


def rows(table: str, cells: Cells) -> list[Row]:
    """All rows of a table, with what has been run so far."""
    out = []
    for measure, name, method in product(TABLE_MEASURES[table], TABLES[table], METHODS):
        own = {column: cells.get(f"{name}/{method}/{column}", {}) for column in COLUMNS}
        means = {column: found[measure] for column, found in own.items() if measure in found}
        out.append(Row(name, measure, method, published(measure, name, method), means))
    return out


def _mean(values: list[float]) -> Mean:
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Mean(float(np.mean(values)), std, len(values), min(values), max(values))


def pipes(lines: Iterable[Sequence[str]]) -> str:
    """Lines of a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(mean: Mean | None, measure: str) -> str:
    """A mean and its standard deviation with the paper's digits."""
    digits = {"iterations": 2, "seconds": 4}.get(measure, 3)
    return "-" if mean is None else f"{mean.mean:.{digits}f} ± {mean.std:.{digits}f}"


def _cells(row: Row) -> list[str]:
    z = f"{row.z():+.1f} {MARKS[row.rating()]}" if row.rating() else ""
    released, *others = (number(row.means.get(column), row.measure) for column in COLUMN_TITLES)
    return [row.method, number(row.published, row.measure), released, z, *others]


def markdown(table: Iterable[Row]) -> str:
    """A Markdown table for each data set and measure."""
    groups = groupby(table, lambda row: row[:2])
    tables = ((place, pipes([_HEADER, ["---"] * len(_HEADER), *map(_cells, group)])) for place, group in groups)
    return "\n\n".join(f"**{name}**, {measure}\n\n{lines}" for (name, measure), lines in tables)


def as_csv(table: Sequence[Row]) -> str:
    """One line for each row, full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column}_{part}" for column in COLUMNS for part in Mean._fields]
    writer.writerow(["dataset", "measure", "method", "published_mean", "published_std", *heads, "z", "rating"])
    for row in table:
        means = [part for column in COLUMNS for part in row.means.get(column, [""] * len(Mean._fields))]
        z = "" if math.isnan(row.z()) else row.z()
        writer.writerow([row.dataset, row.measure, row.method, *row.published[:2], *means, z, row.rating()])
    return out.getvalue()
