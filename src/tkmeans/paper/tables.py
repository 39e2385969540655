"""From runs to tables: means, deviations, and how far they are from what was published."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from tkmeans.paper.protocol import TABLES, Results
from tkmeans.paper.published import METHODS, REPETITIONS, Cell, tables

TABLE_MEASURES = {"table1": ("ARI",), "table2": ("MSE", "W/B"), "table3": ("iterations", "seconds")}
COLUMN_TITLES = {"released": "as released", "correct": "correct equations", "defaults": "our defaults"}
AGREES, NEAR = 3.0, 5.0  # standard errors


class Mean(NamedTuple):
    """Of the repetitions that were done."""

    mean: float
    std: float
    n: int


class Row(NamedTuple):
    """One method on one data set by one measure."""

    dataset: str
    measure: str
    method: str
    published: Cell
    released: Mean | None
    correct: Mean | None
    defaults: Mean | None
    z: float  # of `released` against `published`; NaN where they cannot be compared

    @property
    def verdict(self) -> str:
        """Whether the released code gives the published figure."""
        if math.isnan(self.z):
            return ""
        return "agrees" if abs(self.z) <= AGREES else "near" if abs(self.z) <= NEAR else "differs"


def rows(table: str, results: Results) -> list[Row]:
    """All rows of a table, with what has been run so far."""
    published = tables()
    values: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for key, result in results.items():
        values.setdefault((key.dataset, key.method, key.column), []).append(result)
    out = []
    for measure in TABLE_MEASURES[table]:
        for name in TABLES[table]:
            for method in METHODS:
                means = {
                    column: _mean([row[measure] for row in values.get((name, method, column), [])])
                    for column in COLUMN_TITLES
                }
                cell = published[measure][name][method]
                ours = means["released"]
                comparable = ours is not None and measure != "seconds"  # their computer is not ours
                z = z_score(ours, cell, _unit(measure, method)) if ours and comparable else float("nan")
                out.append(Row(name, measure, method, cell, **means, z=z))
    return out


def z_score(ours: Mean, published: Cell, unit: float) -> float:
    """The difference of the means in standard errors, beyond what rounding to `unit` explains.

    Mean and deviation were both printed rounded: a mean may be off by half a unit, and
    a deviation of 0.000 can be anything up to half a unit.
    """
    difference = ours.mean - published.mean
    beyond = max(abs(difference) - unit / 2, 0.0)
    error = math.sqrt((published.std + unit / 2) ** 2 / REPETITIONS + ours.std**2 / ours.n)
    return math.copysign(beyond / error, difference)


def _unit(measure: str, method: str) -> float:
    """The last digit that was printed; the k-medians row of Table 1 has two decimals and a 0."""
    return 0.01 if measure == "iterations" or (measure == "ARI" and method == "k-medians") else 0.001


def _mean(values: list[float]) -> Mean | None:
    if not values:
        return None
    return Mean(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))


# ---- Markdown, CSV, HTML -------------------------------------------------------------

_MARKS = {"agrees": "✓", "near": "~", "differs": "✗", "": ""}
_COLORS = {"agrees": "#c8e6c9", "near": "#fff3c4", "differs": "#ffcdd2", "": "transparent"}


def _number(mean: Mean | Cell | None, measure: str) -> str:
    if mean is None:
        return "-"
    digits = {"iterations": 2, "seconds": 4}.get(measure, 3)
    return f"{mean.mean:.{digits}f} ± {mean.std:.{digits}f}"


def _z(row: Row) -> str:
    return "" if math.isnan(row.z) else f"{row.z:+.1f} {_MARKS[row.verdict]}"


def _cells(row: Row) -> list[str]:
    shown = (_number(mean, row.measure) for mean in (row.published, row.released))
    return [row.method, *shown, _z(row), _number(row.correct, row.measure), _number(row.defaults, row.measure)]


_HEADER = ["method", "published", "as released", "z", "correct equations", "our defaults"]


def markdown(table: Iterable[Row]) -> str:
    """A Markdown table for each data set and measure."""
    parts = []
    for (name, measure), group in _grouped(table).items():
        lines = [_HEADER, ["---"] * len(_HEADER), *(_cells(row) for row in group)]
        parts.append(f"**{name}**, {measure}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")
    return "\n".join(parts)


def html(table: Iterable[Row], title: str) -> str:
    """A page with a table for each data set and measure, coloured by agreement."""
    parts = [
        "<!doctype html><meta charset=utf-8>",
        f"<title>{escape(title)}</title>",
        "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse;margin:0 0 2em}"
        "td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}td:first-child{text-align:left}</style>",
        f"<h1>{escape(title)}</h1>",
        "<p>Green: the released code gives the published figure within 3 standard errors; yellow: 5; red: not.</p>",
    ]
    for (name, measure), group in _grouped(table).items():
        parts.append(f"<h2>{escape(name)}, {escape(measure)}</h2><table>")
        parts.append("<tr>" + "".join(f"<th>{escape(text)}</th>" for text in _HEADER) + "</tr>")
        for row in group:
            color = _COLORS[row.verdict]
            cells = _cells(row)
            tinted = [f'<td style="background:{color}">{escape(text)}</td>' for text in cells[2:4]]
            plain = [f"<td>{escape(text)}</td>" for text in cells]
            parts.append("<tr>" + "".join([*plain[:2], *tinted, *plain[4:]]) + "</tr>")
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def as_csv(table: Iterable[Row]) -> str:
    """One line for each row, full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column}_{part}" for column in COLUMN_TITLES for part in ("mean", "std", "n")]
    writer.writerow(["dataset", "measure", "method", "published_mean", "published_std", *heads, "z", "verdict"])
    for row in table:
        means = [part for mean in (row.released, row.correct, row.defaults) for part in (mean or ("", "", ""))]
        z = "" if math.isnan(row.z) else row.z
        writer.writerow([row.dataset, row.measure, row.method, *row.published, *means, z, row.verdict])
    return out.getvalue()


def _grouped(table: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in table:
        groups.setdefault((row.dataset, row.measure), []).append(row)
    return groups
