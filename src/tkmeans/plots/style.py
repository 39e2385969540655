"""What all pictures share: colours, markers, axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours without black and yellow, which are for centres and do not show on
# white, and an indigo. 7 colours and 8 markers have no common divisor, so that 56 clusters
# differ from each other, and neighbours in number differ in both: grey prints stay readable.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#332288")
MARKERS = ("o", "s", "^", "D", "v", "P", "*", ">")

INK = "#1A1A1A"  # centres, outliers and text
FAINT = "#8A8A8A"  # boundaries and guides


def color(cluster: int) -> str:
    """The colour of a cluster."""
    return COLORS[cluster % len(COLORS)]


def marker(cluster: int) -> str:
    """The marker of a cluster."""
    return MARKERS[cluster % len(MARKERS)]


def axes_for(ax: Axes | None, **figure: Any) -> Axes:
    """The axes that were given, or new ones."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'tkmeans[plots]'") from None
    if ax is None:
        _, ax = plt.subplots(layout="constrained", **figure)
    return ax


def plain(ax: Axes) -> None:
    """No frame where there is nothing to read."""
    ax.spines[["top", "right"]].set_visible(False)
