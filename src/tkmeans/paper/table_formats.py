"""Tables of published and reproduced values in Markdown, CSV and HTML."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from string import Template

from tkmeans.paper import text_of
from tkmeans.paper.published_values import Cell, Mean, Row

COLUMN_TITLES = {"released": "as released", "correct": "correct equations", "defaults": "our defaults"}

_MARKS = {"agrees": "✓", "near": "~", "differs": "✗", "": ""}
_HEADER = ("method", "published", "as released", "z", "correct equations", "our defaults")
_RULE = ("---",) * len(_HEADER)


def pipes(lines: Iterable[Sequence[str]]) -> str:
    """Lines of a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(mean: Mean | Cell | None, measure: str) -> str:
    """A mean and its standard deviation with the paper's digits."""
    if mean is None:
        return "-"
    digits = {"iterations": 2, "seconds": 4}.get(measure, 3)
    return f"{mean.mean:.{digits}f} ± {mean.std:.{digits}f}"


def marked_z(row: Row, column: str = "released") -> str:
    """z of a column, and what it says."""
    z = row.z(column)
    return "" if math.isnan(z) else f"{z:+.1f} {_MARKS[row.verdict(column)]}"


def _cells(row: Row) -> list[str]:
    released, correct, defaults = (number(row.means.get(column), row.measure) for column in COLUMN_TITLES)
    return [row.method, number(row.published, row.measure), released, marked_z(row), correct, defaults]


def _place(row: Row) -> tuple[str, str]:
    return row.dataset, row.measure


def markdown(table: Iterable[Row]) -> str:
    """A Markdown table for each data set and measure."""
    return "\n\n".join(
        f"**{name}**, {measure}\n\n{pipes([_HEADER, _RULE, *map(_cells, group)])}"
        for (name, measure), group in groupby(table, _place)
    )


def html(table: Iterable[Row], title: str) -> str:
    """A page with a table for each data set and measure, coloured by agreement."""
    parts = []
    for (name, measure), group in groupby(table, _place):
        parts.append(f"<h2>{escape(name)}, {escape(measure)}</h2><table>")
        parts.append("<tr>" + "".join(f"<th>{escape(text)}</th>" for text in _HEADER) + "</tr>")
        for row in group:
            tinted = f'<td class="{row.verdict()}">' if row.verdict() else "<td>"
            cells = [f"{tinted if i in (2, 3) else '<td>'}{escape(text)}</td>" for i, text in enumerate(_cells(row))]
            parts.append("<tr>" + "".join(cells) + "</tr>")
        parts.append("</table>")
    return Template(text_of("table_page.html")).substitute(title=escape(title), tables="\n".join(parts))


def as_csv(table: Sequence[Row]) -> str:
    """One line for each row, full precision."""
    columns = list(dict.fromkeys([*COLUMN_TITLES, *(column for row in table for column in row.means)]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column}_{part}" for column in columns for part in Mean._fields]
    writer.writerow(["dataset", "measure", "method", "published_mean", "published_std", *heads, "z", "verdict"])
    nothing = [""] * len(Mean._fields)
    for row in table:
        means = [part for column in columns for part in row.means.get(column, nothing)]
        z = "" if math.isnan(row.z()) else row.z()
        writer.writerow([row.dataset, row.measure, row.method, *row.published, *means, z, row.verdict()])
    return out.getvalue()
