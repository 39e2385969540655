"""Displays of how a fit went and how far to trust it: convergence, K, weights, stability, robustness."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tkmeans.docstrings import documented
from tkmeans.plots import style
from tkmeans.sources.number_checks import as_numbers
from tkmeans.stats import Array

DOUBTFUL, STABLE = 0.6, 0.75  # Hennig's marks: a mean similarity below is of no real cluster, one from there on is
_TRIMMING = {"criterion": "classification log-likelihood per row", "smallest": "share of the smallest cluster"}
_MEASURES = {"ari": "ARI of the good rows", "shift": "shift of the worst centre (std. deviations)"}
_MEASURES |= {"scale": "scale, as a multiple of the clean one"}
_MEASURES |= {"influence": "influence on the centre (std. deviations)"} | _TRIMMING


class _Display:
    """What is drawn into one pair of axes."""

    _figsize = (6.2, 3.8)  # of a new figure, in inches

    @documented("ax", returns="display : object\n    The display itself, with `ax_` and `figure_`.")
    def plot(self, ax: Any = None) -> Self:
        """Draw the display."""
        self.ax_ = style.axes_for(ax, figsize=self._figsize)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        self.ax_.spines[["top", "right"]].set_visible(False)  # there is nothing to read
        return self

    def _draw(self, ax: Any) -> None:
        """Draw, and keep what was drawn in attributes."""


@documented("objective")
class ConvergenceDisplay(_Display):
    """The objective at the start and after every iteration; `line_` is the curve that was drawn into `ax_`."""

    _figsize = (5.6, 3.6)

    def __init__(self, *, values: Any, name: str = "objective per row") -> None:
        self.values, self.name = np.asarray(values, dtype=float), name

    @classmethod
    @documented("estimator", "ax", returns="display : ConvergenceDisplay")
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the `lower_bounds_` of a fitted estimator."""
        if not hasattr(estimator, "lower_bounds_"):
            lacks = f"{type(estimator).__name__} has no lower_bounds_, the objective after every iteration"
            raise ValueError(f"{lacks}; fit it first, or use TKMeans, FastTKMeans or StudentTMixture")
        return cls(values=estimator.lower_bounds_, name=objective_name(estimator)).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        (self.line_,) = ax.plot(np.arange(len(self.values)), self.values, "o-", ms=4, lw=1.4, color=style.color(0))
        ax.set(xlabel="iteration", ylabel=self.name)
        ax.locator_params("x", integer=True)
        ax.grid(axis="y", lw=0.4)


def objective_name(estimator: Any) -> str:
    """What the `lower_bounds_` of an estimator are."""
    return "log-likelihood per row" if hasattr(estimator, "score_samples") else "objective per row"


@documented("shown_*")
@dataclass(kw_only=True, eq=False, repr=False)
class SelectionDisplay(_Display):
    """A criterion for every number of clusters, with the choice and the runner-up marked.

    ``select_clusters(X).plot()`` makes one. The share of outliers takes the lower part of the axes.

    Attributes
    ----------
    ax_, figure_, line_, outlier_ax_ : matplotlib Axes, Figure, Line2D, and Axes or None
        The axes of the criterion, their figure, the curve, of the best shape if there are several, and the axes below.
    """

    n_clusters: Any
    values: Any
    criterion: str
    best: int
    runner_up: int | None = None
    outlier_fraction: Any = None
    shapes: Any = None

    def __post_init__(self) -> None:
        self.n_clusters, self.values = np.asarray(self.n_clusters), np.asarray(self.values, dtype=float)
        self.shapes = np.full(len(self.values), "") if self.shapes is None else np.asarray(self.shapes)
        if self.outlier_fraction is not None:
            self.outlier_fraction = np.asarray(self.outlier_fraction, dtype=float)
        self._figsize = (6.2, 3.6 if self.outlier_fraction is None else 4.4)

    def _draw(self, ax: Any) -> None:
        best = self._entry(self.best)
        several, lines = dict.fromkeys([self.shapes[best], *self.shapes]), list[Any]()  # the best comes first
        for i, shape in enumerate(several):
            own, label = self.shapes == shape, f"shape: {shape}" if len(several) > 1 else None
            look: dict[str, Any] = {"ms": 4, "lw": 1.4, "color": style.color(i), "zorder": 2, "label": label}
            lines += ax.plot(self.n_clusters[own], self.values[own], "o-", **look)
        self.line_ = lines[0]
        marks = {"chosen": (self.best, "D", style.INK), "runner-up": (self.runner_up, "s", "white")}
        for name, (number, marker, face) in marks.items():
            if number is not None:
                look = {"markerfacecolor": face, "markeredgecolor": style.INK, "ms": 9, "zorder": 3, "ls": "none"}
                ax.plot([number], self.values[self._entry(number)], marker, label=f"{name}: {number}", **look)
        ax.set(ylabel=criterion_title(self.criterion))
        ax.legend(frameon=False)
        self.outlier_ax_ = None if self.outlier_fraction is None else _axes_below(ax)
        lowest = self.outlier_ax_ or ax
        if lowest is not ax:
            own = self.shapes == self.shapes[best]
            lowest.bar(self.n_clusters[own], self.outlier_fraction[own], color=style.FAINT, width=0.7)
            lowest.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
            lowest.set_ylabel("outliers")
            ax.tick_params(labelbottom=False)
            lowest.spines[["top", "right"]].set_visible(False)
        lowest.set_xlabel("number of clusters")
        lowest.locator_params("x", integer=True)
        ax.grid(axis="y", lw=0.4)

    def _entry(self, number: int) -> int:
        """The best entry with this number of clusters."""
        sign = -1 if self.criterion == "stability" else 1
        own = np.flatnonzero(self.n_clusters == number)
        return int(own[np.argmin(np.nan_to_num(sign * self.values[own], nan=np.inf))])


def criterion_title(criterion: str) -> str:
    """The name of a criterion, and which of its values are better."""
    name = criterion.upper() if len(criterion) <= 3 else criterion
    return f"{name} ({'larger' if criterion == 'stability' else 'smaller'} is better)"


def _axes_below(ax: Any) -> Any:
    """Axes in the lower part of the place that was given to `ax`, which moves up."""
    if (place := ax.get_subplotspec()) is None:  # axes put somewhere by hand
        return ax.inset_axes((0, -0.38, 1, 0.3), sharex=ax)
    halves = place.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(halves[0])
    return ax.figure.add_subplot(halves[1], sharex=ax)


@documented("weights")
class RobustWeightsDisplay(_Display):
    """The weights of the rows in the centres: a histogram, drawn into `ax_`, of how far rows are trusted."""

    def __init__(self, *, weights: Any, outliers: Any = None) -> None:
        self.weights: Array = np.asarray(weights, dtype=float)
        self.outliers: Array = np.zeros(len(self.weights), bool) if outliers is None else np.asarray(outliers, bool)

    @classmethod
    @documented("estimator", "rows", "ax", returns="display : RobustWeightsDisplay")
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the `robust_weights` and the outliers of X under a fitted estimator."""
        if not hasattr(estimator, "robust_weights"):
            lacks = f"{type(estimator).__name__} trusts all rows alike: it has no robust_weights"
            raise ValueError(f"{lacks}; use TKMeans, FastTKMeans or StudentTMixture")
        X = as_numbers(X, "X")  # of a file the answers would be files
        outliers = estimator.outliers(X) if hasattr(estimator, "outliers") else None
        return cls(weights=estimator.robust_weights(X), outliers=outliers).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        rows, strays = self.weights[~self.outliers], self.weights[self.outliers]
        edges = np.linspace(0, max(1.0, float(self.weights.max(initial=1.0))), 41).tolist()
        below, *_ = ax.hist(rows, edges, color=style.color(0), label=f"rows ({len(rows)})")
        if len(strays):
            look: dict[str, Any] = {"facecolor": "white", "edgecolor": style.INK, "hatch": "//////", "linewidth": 0.8}
            ax.hist(strays, edges, bottom=below, label=f"outliers ({len(strays)})", **look)
        ax.set(xlabel="how far a row is trusted (its weight in the centres)", ylabel="rows", yscale="symlog")
        ax.set_ylim(0)
        ax.legend(frameon=False)


@documented("jaccard")
class StabilityDisplay(_Display):
    """How well each cluster was found again in every resample; ``stability(model, X).plot()`` makes one.

    Attributes
    ----------
    mean, ax_, figure_, points_, means_ : ndarray of shape (n_clusters,), matplotlib Axes, Figure, two PathCollections
        The mean similarity of each cluster; what was drawn into, the similarities and their means.
    """

    def __init__(self, *, jaccard: Any, sizes: Any = None) -> None:
        self.jaccard: Array = np.asarray(jaccard, dtype=float)
        self.sizes = None if sizes is None else np.asarray(sizes)
        self.mean = np.nanmean(self.jaccard, axis=0)
        self._figsize = (6.2, 1.6 + 0.28 * len(self.mean))

    def _draw(self, ax: Any) -> None:
        n_resamples, n_clusters = self.jaccard.shape
        numbers = np.arange(n_clusters)
        ax.axvspan(0, DOUBTFUL, color="#E4E4E4", lw=0)
        ax.axvspan(DOUBTFUL, STABLE, color="#F3F3F3", lw=0)
        heights = numbers + 0.24 * np.linspace(-1, 1, n_resamples)[:, None]
        self.points_ = ax.scatter(self.jaccard, heights, s=12, color=style.color(0), alpha=0.55, linewidths=0, zorder=2)
        self.means_ = ax.scatter(self.mean, numbers, s=52, marker="D", color=style.INK, edgecolors="white", zorder=3)
        above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
        for name, x in (("unstable", DOUBTFUL / 2), ("doubtful", (DOUBTFUL + STABLE) / 2), ("stable", STABLE + 0.125)):
            ax.annotate(name, (x, 1.0), (0, 3), **above)
        ax.set_yticks(numbers, [str(k) if self.sizes is None else f"{k} ({self.sizes[k]:g} rows)" for k in numbers])
        ax.set(xlim=(0, 1.02), ylim=(n_clusters - 0.5, -0.5), ylabel="cluster")
        ax.set_xlabel("Jaccard similarity with resamples (diamond: mean)")


@documented("curves")
class RobustnessDisplay(_Display):
    """Breakdown, influence or trimming curves, a line of `lines_` for each clusterer: the worst of the draws."""

    def __init__(self, *, curves: dict[str, Any], measure: str = "ari") -> None:
        if measure not in _MEASURES:
            raise ValueError(f"measure must be one of {', '.join(_MEASURES)}, got {measure!r}")
        self.curves, self.measure = curves, measure

    def _draw(self, ax: Any) -> None:
        worst, self.lines_ = np.min if self.measure == "ari" else np.max, []
        for i, (name, curve) in enumerate(self.curves.items()):
            look: dict[str, Any] = {"marker": style.marker(i), "color": style.color(i), "ms": 4, "lw": 1.4}
            self.lines_ += ax.plot(curve.x, worst(curve.values[self.measure], axis=1), label=name, **look)
        ax.set(xlabel="distance of the added row (std. deviations)", ylabel=_MEASURES[self.measure])
        if self.measure != "influence":
            ax.set_xlabel(f"{'rows left out' if self.measure in _TRIMMING else 'added rows'}, as a share of all")
            ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        if self.measure in ("shift", "scale"):
            ax.set_yscale("log")
        ax.grid(axis="y", lw=0.4)
        ax.legend(frameon=False)
