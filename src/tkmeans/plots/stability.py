"""Which clusters come back when the data are drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The rule of thumb that `Stability.verdict` goes by.
DOUBTFUL, STABLE = 0.6, 0.75


class StabilityDisplay:
    """How well each cluster was found again in every resample; ``stability(model, X).plot()`` makes one.

    Parameters
    ----------
    jaccard : array-like of shape (n_resamples, n_clusters)
        The Jaccard similarity of each cluster with the most similar one of a resample; NaN
        where there was nothing to compare.
    sizes : array-like of shape (n_clusters,), default=None
        Rows in each cluster, told beside its number.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn into.
    figure_ : matplotlib Figure
        Their figure.
    mean : ndarray of shape (n_clusters,)
        The mean similarity of each cluster.
    points_ : PathCollection
        The similarities.
    means_ : PathCollection
        Their means.

    Examples
    --------
    >>> from tkmeans.plots import StabilityDisplay
    >>> display = StabilityDisplay(jaccard=[[1.0, 0.4], [0.9, 0.5]], sizes=[70, 30]).plot()
    >>> display.mean.round(2)
    array([0.95, 0.45])
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['0 (70 rows)', '1 (30 rows)']
    """

    ax_: Axes
    figure_: Any

    def __init__(self, *, jaccard: Any, sizes: Any = None) -> None:
        self.jaccard: Array = np.asarray(jaccard, dtype=float)
        self.sizes = None if sizes is None else np.asarray(sizes)
        self.mean = np.nanmean(self.jaccard, axis=0)

    @classmethod
    def from_predictions(cls, jaccard: Any, *, sizes: Any = None, ax: Axes | None = None) -> Self:
        """Draw similarities that were computed somewhere.

        Parameters
        ----------
        jaccard : array-like of shape (n_resamples, n_clusters)
            The similarities.
        sizes : array-like of shape (n_clusters,), default=None
            Rows in each cluster.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : StabilityDisplay
        """
        return cls(jaccard=jaccard, sizes=sizes).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : StabilityDisplay
            Itself.
        """
        n_resamples, n_clusters = self.jaccard.shape
        ax = style.axes_for(ax, figsize=(6.2, 1.6 + 0.28 * n_clusters))
        self.ax_, self.figure_ = ax, ax.figure
        ax.axvspan(0, DOUBTFUL, color="#E4E4E4", lw=0)
        ax.axvspan(DOUBTFUL, STABLE, color="#F3F3F3", lw=0)
        heights = np.repeat(np.arange(n_clusters)[None], n_resamples, axis=0)
        heights = heights + 0.24 * np.linspace(-1, 1, n_resamples)[:, None]
        self.points_ = ax.scatter(self.jaccard, heights, s=12, color=style.color(0), alpha=0.55, linewidths=0, zorder=2)
        self.means_ = ax.scatter(
            self.mean, np.arange(n_clusters), s=52, marker="D", color=style.INK, edgecolors="white", zorder=3
        )
        for x, name in (
            (DOUBTFUL / 2, "do not believe"),
            ((DOUBTFUL + STABLE) / 2, "doubtful"),
            (STABLE + 0.125, "stable"),
        ):
            ax.annotate(
                name, (x, 1.0), (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points", ha="center"
            )
        names = [str(k) if self.sizes is None else f"{k} ({self.sizes[k]:g} rows)" for k in range(n_clusters)]
        ax.set_yticks(np.arange(n_clusters), names)
        ax.set(xlim=(0, 1.02), ylim=(n_clusters - 0.5, -0.5), ylabel="cluster")
        ax.set_xlabel("Jaccard similarity with the resamples; diamonds: the mean")
        style.plain(ax)
        return self
