"""The display of robustness: breakdown and influence curves, of one or several clusterers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.diagnostic_displays import _Display

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

_TITLES = {
    "ari": "ARI of the good rows",
    "shift": "shift of the worst centre (std. deviations)",
    "scale": "scale, as a multiple of the clean one",
    "influence": "influence on the centre (std. deviations)",
}


class RobustnessDisplay(_Display):
    """Breakdown curves or influence curves, a line for each clusterer: the worst of the draws.

    Parameters
    ----------
    curves : dict of str to :class:`tkmeans.RobustnessCurve`
        The curves by the names of their clusterers.
    measure : {"ari", "shift", "scale", "influence"}, default="ari"
        What to draw.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn into.
    lines_ : list of Line2D
        The curves.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import RobustnessCurve
    >>> from tkmeans.plots import RobustnessDisplay
    >>> curve = RobustnessCurve(np.array([0.0, 0.1]), {"ari": np.array([[1.0, 1.0], [0.9, 0.2]])})
    >>> RobustnessDisplay(curves={"KMeans": curve}).plot().lines_[0].get_ydata()
    array([1. , 0.2])
    """

    _figsize = (6.2, 3.8)

    def __init__(self, *, curves: Mapping[str, Any], measure: str = "ari") -> None:
        if measure not in _TITLES:
            raise ValueError(f"measure must be one of {', '.join(_TITLES)}, got {measure!r}")
        self.curves, self.measure = curves, measure

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import PercentFormatter

        worst, self.lines_ = np.min if self.measure == "ari" else np.max, []
        for i, (name, curve) in enumerate(self.curves.items()):
            look: dict[str, Any] = {"marker": style.marker(i), "color": style.color(i), "ms": 4, "lw": 1.4}
            self.lines_ += ax.plot(curve.x, worst(curve.values[self.measure], axis=1), label=name, **look)
        ax.set(xlabel="distance of the added row (std. deviations)", ylabel=_TITLES[self.measure])
        if self.measure != "influence":
            ax.set_xlabel("contaminating rows, as a share of all")
            ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if self.measure in ("shift", "scale"):
            ax.set_yscale("log")
        ax.grid(axis="y", lw=0.4)
        ax.legend(frameon=False)
