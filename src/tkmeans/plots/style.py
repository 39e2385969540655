"""What all pictures share: colours, markers, axes."""

from typing import Any

# Okabe and Ito's colours without black, for centres, and yellow, pale on white; an indigo; a lighter or darker shade of
# each. With 14 colours and 8 markers 56 clusters differ, neighbours in number in both: grey prints stay readable.
_HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#332288")
_SHADES = ("#99C7E0", "#735000", "#004F3A", "#663C54", "#2B5A74", "#6A2F00", "#9990C3")
COLORS = _HUES + _SHADES
MARKERS = ("o", "s", "^", "D", "v", "P", "*", ">")

INK = "#1A1A1A"  # centres, outliers and text
FAINT = "#8A8A8A"  # boundaries and guides


def color(cluster: int) -> str:
    """The colour of a cluster."""
    return COLORS[cluster % len(COLORS)]


def marker(cluster: int) -> str:
    """The marker of a cluster."""
    return MARKERS[cluster % len(MARKERS)]


def axes_for(ax: Any, **figure: Any) -> Any:
    """The axes that were given, or new ones where that is None."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'tkmeans[plots]'") from None
    return plt.subplots(layout="constrained", **figure)[1] if ax is None else ax
