"""Tables of published and of our figures, in Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from html import escape

from tkmeans.paper.agreement import Mean, Row
from tkmeans.paper.publication import Cell

COLUMN_TITLES = {"released": "as released", "correct": "correct equations", "defaults": "our defaults"}

_MARKS = {"agrees": "✓", "near": "~", "differs": "✗", "": ""}
_HEADER = ["method", "published", "as released", "z", "correct equations", "our defaults"]


def pipes(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first line is its head."""
    ruled = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled)


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


def markdown(table: Iterable[Row]) -> str:
    """A Markdown table for each data set and measure."""
    return "\n\n".join(
        f"**{name}**, {measure}\n\n{pipes([_HEADER, *(_cells(row) for row in group)])}"
        for (name, measure), group in _grouped(table).items()
    )


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 60em; margin: 2em auto; padding: 0 1em }
h2 { font-size: 1.1em; margin: 2em 0 .4em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th { font-weight: 600; border-bottom: 2px solid #888 }
td, th { padding: .25em .9em; text-align: right; white-space: nowrap }
td { border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left; padding-left: 0 }
.agrees { background: #c8e6c9 } .near { background: #fff3c4 } .differs { background: #ffcdd2 }
"""


def html(table: Iterable[Row], title: str) -> str:
    """A page with a table for each data set and measure, coloured by agreement."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        "<p>Mean ± standard deviation over repetitions. The released code gives the published figure "
        '<span class="agrees">within 3 standard errors</span>, <span class="near">within 5</span>, '
        '<span class="differs">not</span>;'
        " z is the distance in standard errors, rounding of the printed figures allowed for.</p>",
    ]
    for (name, measure), group in _grouped(table).items():
        parts.append(f"<h2>{escape(name)}, {escape(measure)}</h2><table>")
        parts.append("<tr>" + "".join(f"<th>{escape(text)}</th>" for text in _HEADER) + "</tr>")
        for row in group:
            tinted = f'<td class="{row.verdict()}">' if row.verdict() else "<td>"
            cells = [f"{tinted if i in (2, 3) else '<td>'}{escape(text)}</td>" for i, text in enumerate(_cells(row))]
            parts.append("<tr>" + "".join(cells) + "</tr>")
        parts.append("</table>")
    return "\n".join(parts) + "\n"


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


def _grouped(table: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in table:
        groups.setdefault((row.dataset, row.measure), []).append(row)
    return groups
