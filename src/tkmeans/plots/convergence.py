"""How a fit came to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ConvergenceDisplay:
    """The objective at the start and after every iteration.

    Parameters
    ----------
    values : array-like of shape (n_iter + 1,)
        The objective; larger is better.
    name : str, default="objective per row"
        What the objective is.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn into.
    figure_ : matplotlib Figure
        Their figure.
    line_ : Line2D
        The curve.

    Examples
    --------
    >>> from tkmeans import TKMeans
    >>> from tkmeans.datasets import make_contaminated
    >>> from tkmeans.plots import ConvergenceDisplay
    >>> X, _ = make_contaminated(n_clusters=4, random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(TKMeans(4, random_state=0).fit(X))
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('iteration', 'log-likelihood per row')
    """

    ax_: Axes
    figure_: Any

    def __init__(self, *, values: Any, name: str = "objective per row") -> None:
        self.values: Array = np.asarray(values, dtype=float)
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the `lower_bounds_` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            One that keeps its `lower_bounds_`.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        if not hasattr(estimator, "lower_bounds_"):
            raise ValueError(
                f"{type(estimator).__name__} has no lower_bounds_, the objective after every iteration; "
                "fit it first, or use TKMeans, FastTKMeans or StudentTMixture"
            )
        name = "log-likelihood per row" if hasattr(estimator, "score_samples") else "objective per row"
        return cls(values=estimator.lower_bounds_, name=name).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
            Itself.
        """
        from matplotlib.ticker import MaxNLocator

        ax = style.axes_for(ax, figsize=(5.6, 3.6))
        self.ax_, self.figure_ = ax, ax.figure
        (self.line_,) = ax.plot(np.arange(len(self.values)), self.values, "o-", ms=4, lw=1.4, color=style.color(0))
        ax.set(xlabel="iteration", ylabel=self.name)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(axis="y", lw=0.4)
        style.plain(ax)
        return self
