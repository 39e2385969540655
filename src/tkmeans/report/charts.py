"""Charts of the page as SVG: a curve, a divided bar, a range; colours come from the page's style."""

from collections.abc import Sequence

import numpy as np

from tkmeans.plots.style import color
from tkmeans.report.markup import fragment, number, text
from tkmeans.stats import Array

_WIDTH, _HEIGHT = 640, 260  # as in the fragment "chart"
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 16, 14, 46


def line_chart(
    x: Array, y: Array, *, x_name: str, y_name: str, label: str, marks: Sequence[tuple[float, str, str]] = ()
) -> str:
    """A line through (x, y) with ticks; `marks` are (x, class, text) to point out."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    if len(x) == 0:
        return ""
    x_ticks, y_ticks = _whole_ticks(x.min(), x.max()), _ticks(y.min(), y.max())
    left, right = min(x.min(), x_ticks[0]), max(x.max(), x_ticks[-1])
    low, high = min(y.min(), y_ticks[0]), max(y.max(), y_ticks[-1])

    def at(a: float, b: float) -> tuple[float, float]:
        across = (a - left) / (right - left) if right > left else 0.5
        up = (b - low) / (high - low) if high > low else 0.5
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    points = [at(a, b) for a, b in zip(x, y, strict=True)]
    parts = []
    for tick in y_ticks:
        height = at(left, tick)[1]
        parts.append(f'<path class="grid" d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{number(tick, 6)}</text>')
    below = f'y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle"'
    parts += [f'<text x="{at(tick, low)[0]:.1f}" {below}>{tick:g}</text>' for tick in x_ticks]
    parts.append(f'<polyline class="curve" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
    if len(points) <= 60:
        parts += [f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in points]
    for line, (wanted, kind, words) in enumerate(marks):
        spots = [point for a, point in zip(x, points, strict=True) if a == wanted]
        for a, b in [*spots, (_WIDTH - 150, _TOP + 8 + 20 * line)]:  # on the curve, and beside its meaning
            parts.append(f'<circle class="mark {kind}" cx="{a:.1f}" cy="{b:.1f}" r="6"/>')
        parts.append(f'<text class="told" x="{_WIDTH - 136}" y="{_TOP + 12 + 20 * line}">{text(words)}</text>')
    names = {"x_name": text(x_name), "y_name": text(y_name), "label": text(label)}
    return fragment("chart", **names, content="".join(parts))


def shares_bar(shares: Sequence[tuple[str, float]], label: str) -> str:
    """One bar, divided: (class, share) from left to right."""
    parts, start = [], 0.0
    for kind, share in shares:
        parts.append(f'<rect class="{kind}" x="{100 * start:.2f}" y="0" width="{100 * share:.2f}" height="6"/>')
        start += share
    return fragment("shares", label=text(label), content="".join(parts))


def range_strip(low: float, high: float, usual: float, center: float, spread: float, cluster: int) -> str:
    """Where a cluster lies within a column: all rows a line, the usual value a tick, the cluster a band and a dot."""
    if not high > low:
        return ""

    def at(value: float) -> float:
        return float(np.clip(8 + 84 * (value - low) / (high - low), 2, 98))

    left, right = at(center - spread), at(center + spread)
    band = "" if np.isnan(spread) else fragment("band", left=f"{left:.1f}", width=f"{right - left:.1f}")
    places = {"usual": f"{at(usual):.1f}", "center": f"{at(center):.1f}"}
    return fragment("strip", color=color(cluster), band=band, **places)


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover the range."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((s for s in (1, 2, 2.5, 5, 10) if s * power >= raw), default=10)
    return [float(k * step) for k in range(int(np.floor(low / step)), int(np.ceil(high / step)) + 1)]


def _whole_ticks(low: float, high: float, about: int = 10) -> list[float]:
    """Whole numbers within the range."""
    step = max(1, int(np.ceil((high - low) / about)))
    return [float(k) for k in range(int(low), int(high) + 1, step)]
