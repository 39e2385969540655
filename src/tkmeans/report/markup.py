"""Text, numbers, tables and charts as HTML; whatever comes from the data is escaped here."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from tkmeans.plots import style
from tkmeans.stats import Array

MISSING = '<span class="missing" title="no value">–</span>'
_LONG, _VERY_LONG = 60, 300  # characters of a name, and of its title, which has the rest


def text(value: Any) -> str:
    """Text, whatever it holds."""
    return escape(str(value), quote=True)


def named(value: Any) -> str:
    """A name from the data: kept apart from the direction of its surroundings, cut if very long, broken after "_"."""
    whole = str(value)
    title = f' title="{text(shortened(whole, _VERY_LONG))}"' if len(whole) > _LONG else ""
    return f"<bdi{title}>{text(shortened(whole, _LONG)).replace('_', '_<wbr>')}</bdi>"


def shortened(value: str, length: int) -> str:
    """At most so many characters."""
    return value if len(value) <= length else value[: length - 1] + "…"


def embedded(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or starts a comment."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def count(n: int, one: str) -> str:
    """So many of something."""
    return f"{grouped(n)} {one}{'s' * (n != 1)}"


def grouped(n: int) -> str:
    """A whole number, its digits in groups of three."""
    return f"{n:,}".replace(",", "\u202f")


def percent(share: float) -> str:
    """A share; small ones and those close to 1 keep a digit, and only none is 0 %."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "under 0.1\u00a0%" if share < 0.5 else "over 99.9\u00a0%"
    digits = 0 if share in (0, 1) or 0.1 <= share <= 0.99 else 1
    return f"{100 * share:.{digits}f}\u00a0%"


def number(x: float, digits: int = 4) -> str:
    """A number on its own."""
    return MISSING if np.isnan(x) else f"{x:.{digits}g}".replace("-", "−")


def decimals_of(column: Array) -> int | None:
    """Decimals that show the differences within a column; None if only powers of ten can."""
    if len(column := column[np.isfinite(column)]) == 0:
        return 0
    largest = max(float(np.abs(column).max()), 1e-300)
    spread = 0.0 if largest >= 1e9 else float(np.diff(np.quantile(column, [0.05, 0.95]))[0]) or largest
    if spread < 1e-5:
        return None
    enough = int(np.clip(2 - np.floor(np.log10(spread)), 0, 8))
    return next((d for d in range(enough) if np.allclose(column, np.round(column, d), rtol=1e-12, atol=0)), enough)


def cell(x: float, decimals: int | None) -> str:
    """A value of a column."""
    return number(x) if decimals is None or np.isnan(x) else f"{x:.{decimals}f}".replace("-", "−")


def part(file: str) -> str:
    """A file that the page is made of."""
    return files("tkmeans.report").joinpath(file).read_text(encoding="utf-8")


_FOUND = re.findall(r'<template id="(.+?)">(.*?)</template>', part("fragments.html"), re.DOTALL)
_PIECES = {name: Template(piece.replace("\n", "")) for name, piece in _FOUND}


def fragment(piece: str, /, **parts: object) -> str:
    """A piece of the page with its parts, which are HTML already; "kind-other" stands for those that are not there."""
    return (_PIECES.get(piece) or _PIECES[f"{piece.rpartition('-')[0]}-other"]).substitute(parts)


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """An element; `content` is HTML already, attributes are text. A trailing underscore of a name is dropped."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    inside = "".join(f' {key}="{text(value)}"' for key, value in given.items())
    return f"<{name}{inside}>{content}</{name}>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A table of two columns: what, and its value (HTML)."""
    rows = "".join(f'<tr><th scope="row">{what}</th><td>{value}</td></tr>' for what, value in pairs)
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def table(header: Iterable[str], rows: Iterable[Iterable[str]], *, label: str, kind: str = "") -> str:
    """A table in a box that scrolls by itself; names are HTML, and cells complete elements; "sortable" is a kind."""
    names = [f'<button type="button">{name}</button>' if "sortable" in kind else name for name in header]
    parts = {"header": "".join(tag("th", name, scope="col") for name in names), "label": text(label)}
    return fragment("table", kind=kind, body="".join(f"<tr>{''.join(row)}</tr>" for row in rows), **parts)


def swatch(cluster: int) -> str:
    """The marker of a cluster, in its colour."""
    return fragment("swatch", color=style.color(cluster), path=fragment(f"marker-{style.marker(cluster)}"))


def line_chart(x: Array, y: Array, *, x_name: str, y_name: str, label: str, marks: Sequence[Any] = ()) -> str:
    """A line through (x, y), which the page's script draws; `marks` are (x, class, text) to point out."""
    points = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if np.isfinite(b)]
    drawn = json.dumps({"points": points, "marks": list(marks), "names": [x_name, y_name]})
    return fragment("chart", label=text(label), data=text(drawn)) if points else ""


def shares_bar(shares: Mapping[str, float], label: str) -> str:
    """One bar, divided: shares by class, from left to right."""
    parts, start = [], 0.0
    for kind, share in shares.items():
        parts.append(f'<rect class="{kind}" x="{100 * start:.2f}" y="0" width="{100 * share:.2f}" height="6"/>')
        start += share
    return fragment("shares", label=text(label), content="".join(parts))
