"""Why far rows have no say: three losses side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVES = {
    "l1": (r"$\ell_1$: k-medians", ":", 2),
    "l2": (r"$\ell_2$: k-means", "--", 5),
    "log l2": (r"$\log\ell_2$: t-k-means", "-", 0),
}


class LossDisplay:
    """The paper's figure: how three losses grow with the distance of a row from its centre.

    Parameters
    ----------
    distance : array-like of shape (n,)
        Signed distances.
    losses : dict of str to array-like of shape (n,)
        The loss at each distance, under "l1", "l2" and "log l2".

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn into.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of Line2D
        The curves.

    Examples
    --------
    >>> from tkmeans.plots import LossDisplay
    >>> display = LossDisplay.from_range(10.0)
    >>> {name: round(float(loss[-1]), 1) for name, loss in display.losses.items()}
    {'l1': 10.0, 'l2': 100.0, 'log l2': 4.6}
    """

    ax_: Axes
    figure_: Any

    def __init__(self, *, distance: Any, losses: dict[str, Any]) -> None:
        self.distance: Array = np.asarray(distance, dtype=float)
        self.losses = losses

    @classmethod
    def from_range(cls, farthest: float = 5.0, *, ax: Axes | None = None) -> Self:
        """Draw the losses of k-medians, k-means and t-k-means up to a distance.

        Parameters
        ----------
        farthest : float, default=5.0
            The largest distance.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : LossDisplay
        """
        d = np.linspace(-farthest, farthest, 501)
        return cls(distance=d, losses={"l1": np.abs(d), "l2": d**2, "log l2": np.log1p(d**2)}).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : LossDisplay
            Itself.
        """
        ax = style.axes_for(ax, figsize=(5, 3.6))
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_ = []
        for name, loss in self.losses.items():
            label, dashes, cluster = _CURVES[name]
            self.lines_ += ax.plot(self.distance, loss, dashes, lw=2, color=style.color(cluster), label=label)
        ax.set(xlabel="distance to the centre", ylabel="loss")
        ax.legend(frameon=False)
        style.plain(ax)
        return self
