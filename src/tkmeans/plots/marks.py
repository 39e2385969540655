"""Marks at the edge of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tkmeans.plots.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def arrows_at_edge(ax: Axes, places: Array, low: Array, high: Array, **look: Any) -> None:
    """Arrows on the edge, in the direction of what lies beyond it as seen from the middle."""
    middle, half = (low + high) / 2, (high - low) / 2
    away = (places - middle) / half
    reach = np.abs(away).max(axis=1, initial=1.0, keepdims=True)
    on_edge = middle + half * away / reach
    for axis, sign, arrow in ((0, -1, "<"), (0, 1, ">"), (1, -1, "v"), (1, 1, "^")):
        x, y = on_edge[away[:, axis] * sign == reach[:, 0]].T
        ax.scatter(x, y, marker=arrow, clip_on=False, zorder=4, **look)
