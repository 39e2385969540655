"""How many clusters: the criterion along the path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGER_IS_BETTER = ("stability",)


class SelectionDisplay:
    """A criterion for every number of clusters, with the choice and the runner-up marked.

    ``select_n_clusters(X).plot()`` makes one.

    Parameters
    ----------
    n_clusters : array-like of shape (n,)
        The numbers of clusters tried.
    values : array-like of shape (n,)
        The criterion of each; NaN where there is none.
    criterion : str
        Its name: "icl", "bic" or "stability".
    best : int
        The chosen number of clusters.
    runner_up : int, default=None
        The next best.
    outlier_fraction : array-like of shape (n,), default=None
        The share of outliers with each number of clusters, drawn below.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the criterion.
    outlier_ax_ : matplotlib Axes or None
        The axes below it.
    figure_ : matplotlib Figure
        Their figure.
    line_ : Line2D
        The curve.

    Examples
    --------
    >>> from tkmeans.plots import SelectionDisplay
    >>> display = SelectionDisplay(n_clusters=[1, 2, 3], values=[9.0, 4.0, 5.0], criterion="icl", best=2, runner_up=3)
    >>> display.plot().ax_.get_ylabel()
    'ICL (smaller is better)'
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self,
        *,
        n_clusters: Any,
        values: Any,
        criterion: str,
        best: int,
        runner_up: int | None = None,
        outlier_fraction: Any = None,
    ) -> None:
        self.n_clusters: Array = np.asarray(n_clusters)
        self.values: Array = np.asarray(values, dtype=float)
        self.criterion = criterion
        self.best = best
        self.runner_up = runner_up
        self.outlier_fraction = None if outlier_fraction is None else np.asarray(outlier_fraction, dtype=float)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes; the share of outliers takes their lower part.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : SelectionDisplay
            Itself.
        """
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        ax = style.axes_for(ax, figsize=(6.2, 4.4 if self.outlier_fraction is not None else 3.6))
        self.ax_, self.figure_ = ax, ax.figure
        self.outlier_ax_: Axes | None = None
        (self.line_,) = ax.plot(self.n_clusters, self.values, "o-", ms=4, lw=1.4, color=style.color(0), zorder=2)
        self._mark(self.best, "D", style.INK, f"chosen: {self.best}")
        if self.runner_up is not None:
            self._mark(self.runner_up, "s", "white", f"runner-up: {self.runner_up}")
        better = "larger" if self.criterion in _LARGER_IS_BETTER else "smaller"
        name = self.criterion.upper() if len(self.criterion) <= 3 else self.criterion
        ax.set(ylabel=f"{name} ({better} is better)")
        ax.legend(frameon=False)
        lowest = ax
        if self.outlier_fraction is not None:
            self.outlier_ax_ = lowest = _axes_below(ax)
            lowest.bar(self.n_clusters, self.outlier_fraction, color=style.FAINT, width=0.7)
            lowest.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            lowest.set_ylabel("outliers")
            ax.tick_params(labelbottom=False)
        lowest.set_xlabel("number of clusters")
        lowest.xaxis.set_major_locator(MaxNLocator(integer=True))
        for each in (ax, lowest):
            style.plain(each)
        ax.grid(axis="y", lw=0.4)
        return self

    def _mark(self, number: int, marker: str, face: str, name: str) -> None:
        value = self.values[self.n_clusters == number]
        look: dict[str, Any] = {"markerfacecolor": face, "markeredgecolor": style.INK, "ms": 9, "zorder": 3}
        self.ax_.plot([number] * len(value), value, marker, ls="none", label=name, **look)


def _axes_below(ax: Axes) -> Axes:
    """Axes in the lower part of the place that was given to `ax`, which moves up."""
    place = ax.get_subplotspec()
    if place is None:  # axes put somewhere by hand
        return ax.inset_axes((0, -0.38, 1, 0.3), sharex=ax)
    halves = place.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(halves[0])
    return ax.figure.add_subplot(halves[1], sharex=ax)
