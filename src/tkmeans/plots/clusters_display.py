"""The display of clusters: rows, centres, boundaries and outliers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tkmeans.docstrings import documented
from tkmeans.plots import style
from tkmeans.plots.projections import agreement, cell_borders, centers_of, choose_view, drawn_rows, full_covariances
from tkmeans.sources.number_checks import as_numbers
from tkmeans.stats import Array

Pair = tuple[float, float]  # the lower and the upper end of an axis

TRUTHFUL = 0.95  # share of rows in the cell of their own cluster: in a projection boundaries may be fiction
_MANY = 2000  # rows from which on a vector file would rather hold an image of them
_SLIVER = 4.0  # frames more oblong than this are not drawn to scale


@dataclass(kw_only=True, eq=False, repr=False)
@documented("display_*", "drawn_into_", "drawn_rows_", "drawn_marks_")
class ClustersDisplay:
    """Rows by cluster, numbered centres, boundaries and outliers.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`. Every cluster has a marker and a colour of its
    own and its number at its centre, so that the picture can be read without colours. The frame holds the rows that
    are no outliers; outliers and centres beyond it are marked at its edge.
    """

    points: Array
    labels: Array
    outliers: Array
    centers: Array | None = None
    boundaries: bool = False
    names: tuple[str, str] = ("", "")
    n_rows: int | None = None
    shapes: Array | None = None

    @classmethod
    @documented("of_estimator_*", returns="display : ClustersDisplay")
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw rows with the clusters that a fitted estimator predicts for them."""
        rows = as_numbers(X, "X")  # of a file the answers would be files
        outliers = estimator.outliers(rows) if hasattr(estimator, "outliers") else None
        found = {"centers": centers_of(estimator), "covariances": full_covariances(estimator), "outliers": outliers}
        return cls.from_predictions(X, estimator.predict(rows), **found, **options)

    @classmethod
    @documented("predictions_*", "ax", returns="display : ClustersDisplay")
    def from_predictions(
        cls,
        X: Any,
        labels: Any,
        *,
        centers: Any = None,
        covariances: Any = None,
        outliers: Any = None,
        features: Sequence[int | str] | None = None,
        feature_names: Sequence[str] | None = None,
        boundaries: bool | str = "auto",
        max_rows: int = 20_000,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw rows with labels that were computed elsewhere."""
        if hasattr(X, "tocsr"):
            raise TypeError("X is sparse, and a picture shows every value; pass X.toarray(), or some of its columns")
        names = list(X.columns) if feature_names is None and hasattr(X, "columns") else feature_names
        X, labels = np.ma.filled(np.ma.asarray(as_numbers(X, "X"), dtype=float), np.nan), np.asarray(labels)
        if not isinstance(max_rows, (int, np.integer)) or max_rows < 1:
            raise ValueError(f"max_rows must be an integer of at least 1, got {max_rows!r}")
        if labels.dtype.kind not in "iubf" or labels.shape != X.shape[:1] or np.any(labels != np.trunc(labels)):
            wanted = f"labels must be a whole number for each of the {len(X)} rows, got {labels[:3]!r}"
            raise ValueError(f"{wanted}; for names take np.unique(names, return_inverse=True)[1]")
        labels = labels.astype(np.int64)
        outliers = (labels < 0) | (False if outliers is None else np.asarray(outliers, dtype=bool))
        centers = None if centers is None else np.asarray(centers, dtype=float)
        if centers is not None and len(centers) <= (last := labels.max(initial=0)):
            raise ValueError(f"centers must be one for each label, got {len(centers)} centres and the label {last}")
        expected = np.nanmean(X, axis=0) if centers is None else centers[np.maximum(labels, 0)]
        view = choose_view(X, features, names, ~outliers, expected)
        places = view.project(X, expected)
        drawn = drawn_rows(outliers, places, max_rows)
        placed = None if centers is None else view.place(centers)
        inside = drawn[~outliers[drawn]]
        if boundaries == "auto":
            by_distance = placed is not None and covariances is None
            boundaries = by_distance and agreement(places[inside], labels[inside], placed) >= TRUTHFUL
        rows = {"points": places[drawn], "labels": labels[drawn], "outliers": outliers[drawn], "n_rows": len(X)}
        if placed is not None and covariances is not None:
            plane = view.place(np.eye(X.shape[1])) - view.place(np.zeros((1, X.shape[1])))  # (p, 2)
            rows["shapes"] = plane.T @ np.asarray(covariances, dtype=float) @ plane
        borders = bool(boundaries) and placed is not None
        return cls(**rows, centers=placed, boundaries=borders, names=view.names).plot(ax=ax, **options)

    @documented("clusters_plot_*", returns="display : ClustersDisplay\n    The display itself.")
    def plot(self, ax: Any = None, *, limits: tuple[Pair, Pair] | None = None, legend: bool = True) -> Self:
        """Draw into the axes."""
        self.ax_ = style.axes_for(ax, figsize=(6.4, 5.6))
        self.figure_ = self.ax_.figure
        low, high = self._frame() if limits is None else np.transpose(limits)
        self._draw_boundaries(low, high)
        self._draw_points()
        self._draw_outliers(low, high)
        self._draw_shapes()
        self._draw_centers(low, high)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=self.names[0], ylabel=self.names[1])
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.label.set_parse_math(False)  # a dollar is a dollar
        if self.names[1] == "":  # one column: heights mean nothing
            self.ax_.set_yticks([])
        elif 1 / _SLIVER < (high[0] - low[0]) / (high[1] - low[1]) < _SLIVER:
            self.ax_.set_aspect("equal")
        if legend and self.ax_.get_legend_handles_labels()[0]:
            from matplotlib.transforms import offset_copy

            below = offset_copy(self.ax_.transAxes, self.figure_, y=-34, units="points")  # the name of the axis
            look: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below}
            self.ax_.legend(**look, ncols=3, frameon=False, fontsize="small")
        return self

    def _frame(self) -> tuple[Array, Array]:
        """The rows that are no outliers, and a margin."""
        inside = self.points[~self.outliers] if np.any(~self.outliers) else self.points
        if len(inside) == 0:
            return np.zeros(2), np.ones(2)
        low, high = inside.min(axis=0), inside.max(axis=0)
        margin = np.where(high > low, 0.06 * (high - low), 0.5)
        return low - margin, high + margin

    def _draw_boundaries(self, low: Array, high: Array) -> None:
        from matplotlib.collections import LineCollection

        self.boundaries_ = None
        if self.boundaries and self.centers is not None and len(self.centers) > 1:
            middle, reach = (low + high) / 2, np.abs(self.centers - low).max() + np.max(high - low)
            borders = [middle + ends for ends in cell_borders(self.centers - middle, reach)]
            self.boundaries_ = LineCollection(borders, colors=style.FAINT, linewidths=0.8, zorder=1)
            self.ax_.add_collection(self.boundaries_, autolim=False)

    def _draw_shapes(self) -> None:
        """An ellipse of two standard deviations around each centre."""
        self.shapes_ = []
        if self.shapes is None or self.centers is None or self.names[1] == "":
            return
        angle = np.linspace(0, 2 * np.pi, 100)
        for k, (center, shape) in enumerate(zip(self.centers, self.shapes, strict=True)):
            variances, axes = np.linalg.eigh(shape)
            radii = 2 * np.sqrt(np.maximum(variances, 0.0))
            x, y = center[:, None] + axes @ (radii[:, None] * np.array([np.cos(angle), np.sin(angle)]))
            self.shapes_ += self.ax_.plot(x, y, color=style.color(k), linewidth=1.4, zorder=4)

    def _draw_points(self) -> None:
        self.points_ = []
        size = float(np.clip(24_000 / max(len(self.points), 1), 6, 30))
        look: dict[str, Any] = {"alpha": 0.75, "linewidths": 0, "rasterized": len(self.points) > _MANY, "zorder": 2}
        labels = np.unique(self.labels[self.labels >= 0]) if self.centers is None else np.arange(len(self.centers))
        for k in labels.tolist():
            x, y = self.points[(self.labels == k) & ~self.outliers].T
            self.points_.append(self.ax_.scatter(x, y, s=size, marker=style.marker(k), color=style.color(k), **look))

    def _draw_outliers(self, low: Array, high: Array) -> None:
        self.outliers_ = None
        if len(strays := self.points[self.outliers]) == 0:
            return
        inside = np.all((strays >= low) & (strays <= high), axis=1)
        name = f"outlier ({len(strays)}" + (f", {np.sum(~inside)} beyond the edge)" if np.any(~inside) else ")")
        x, y = strays[inside].T
        self.outliers_ = self.ax_.scatter(x, y, label=name, s=26, marker="x", color=style.INK, linewidths=1.1, zorder=3)
        _draw_arrows(self.ax_, strays[~inside], low, high, s=16, color="white", edgecolors=style.INK, linewidths=0.7)

    def _draw_centers(self, low: Array, high: Array) -> None:
        self.centers_ = None
        if self.centers is None:
            return
        inside = np.all((self.centers >= low) & (self.centers <= high), axis=1)
        name = "centre" + (f" ({np.sum(~inside)} of {len(inside)} beyond the edge)" if np.any(~inside) else "")
        look: dict[str, Any] = {"color": style.INK, "edgecolors": "white", "linewidths": 0.9}
        x, y = self.centers[inside].T
        self.centers_ = self.ax_.scatter(x, y, s=150, marker="o", zorder=5, label=name, **look)
        number: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "fontsize": 7.5, "weight": "bold"}
        for k in np.flatnonzero(inside):
            self.ax_.annotate(str(k), self.centers[k], zorder=6, **number)
        _draw_arrows(self.ax_, self.centers[~inside], low, high, s=110, **look)


def _draw_arrows(ax: Any, places: Array, low: Array, high: Array, **look: Any) -> None:
    """Arrows on the edge, in the direction of what lies beyond it as seen from the middle."""
    middle, half = (low + high) / 2, (high - low) / 2
    away = (places - middle) / half
    reach = np.abs(away).max(axis=1, initial=1.0, keepdims=True)
    for axis, sign, arrow in ((0, -1, "<"), (0, 1, ">"), (1, -1, "v"), (1, 1, "^")):
        x, y = (middle + half * away / reach)[away[:, axis] * sign == reach[:, 0]].T
        ax.scatter(x, y, marker=arrow, clip_on=False, zorder=4, **look)
