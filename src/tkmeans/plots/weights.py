"""How far each row is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 40


class RobustWeightsDisplay:
    """The weights of the rows in the centres: a histogram of how far rows are trusted.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        About 1 for an ordinary row, near 0 for one that has no say.
    outliers : array-like of bool, shape (n_samples,), default=None
        Which rows are outliers; their bars are hatched.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn into.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from tkmeans import TKMeans
    >>> from tkmeans.datasets import make_contaminated
    >>> from tkmeans.plots import RobustWeightsDisplay
    >>> X, _ = make_contaminated(n_clusters=4, random_state=0)
    >>> display = RobustWeightsDisplay.from_estimator(TKMeans(4, random_state=0).fit(X), X)
    >>> bool(display.weights[display.outliers].max() < 0.1)
    True
    """

    ax_: Axes
    figure_: Any

    def __init__(self, *, weights: Any, outliers: Any = None) -> None:
        self.weights: Array = np.asarray(weights, dtype=float)
        self.outliers: Array = (
            np.zeros(len(self.weights), dtype=bool) if outliers is None else np.asarray(outliers, dtype=bool)
        )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Axes | None = None) -> Self:
        """Draw the `robust_weights` of X under a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            One that has `robust_weights`.
        X : array-like of shape (n_samples, n_features)
            The rows.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RobustWeightsDisplay
        """
        if not hasattr(estimator, "robust_weights"):
            raise ValueError(
                f"{type(estimator).__name__} trusts all rows alike: it has no robust_weights; "
                "use TKMeans, FastTKMeans or StudentTMixture"
            )
        outliers = estimator.outliers(X) if hasattr(estimator, "outliers") else None
        return cls.from_predictions(estimator.robust_weights(X), outliers=outliers, ax=ax)

    @classmethod
    def from_predictions(cls, weights: Any, *, outliers: Any = None, ax: Axes | None = None) -> Self:
        """Draw weights from anywhere.

        Parameters
        ----------
        weights : array-like of shape (n_samples,)
            How far each row is trusted.
        outliers : array-like of bool, shape (n_samples,), default=None
            Which rows are outliers.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RobustWeightsDisplay
        """
        return cls(weights=weights, outliers=outliers).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RobustWeightsDisplay
            Itself.
        """
        ax = style.axes_for(ax, figsize=(6.2, 3.8))
        self.ax_, self.figure_ = ax, ax.figure
        groups = [self.weights[~self.outliers], self.weights[self.outliers]]
        edges = np.linspace(0, max(1.0, float(self.weights.max(initial=1.0))), _BINS + 1).tolist()
        ax.hist(groups[0], edges, color=style.color(0), label=f"rows ({len(groups[0])})")
        if len(groups[1]):
            below, _ = np.histogram(groups[0], edges)
            look: dict[str, Any] = {"facecolor": "white", "edgecolor": style.INK, "hatch": "//////", "linewidth": 0.8}
            ax.hist(groups[1], edges, bottom=below, label=f"outliers ({len(groups[1])})", **look)
        ax.set(xlabel="how far a row is trusted (its weight in the centres)", ylabel="rows", yscale="symlog")
        ax.set_ylim(0)
        ax.legend(frameon=False)
        style.plain(ax)
        return self
