"""The paper's pictures, drawn anew, and those that explain its tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from tkmeans import engines
from tkmeans.em import Never, em
from tkmeans.models import Fast
from tkmeans.paper.correct import fitted
from tkmeans.paper.protocol import TABLES, prepared
from tkmeans.paper.published import METHODS
from tkmeans.paper.release import METHODS as RELEASED
from tkmeans.paper.release import uniform
from tkmeans.paper.tables import COLUMN_TITLES, Row
from tkmeans.plots import LossDisplay
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Frame, Params

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TWO_DIMENSIONAL = tuple(name for name in TABLES["table1"] if not name.startswith("dim"))


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'tkmeans[plots]'") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def loss(path: Path) -> None:
    """The paper's figure: how three losses grow with the distance."""
    plt = _pyplot()
    figure = LossDisplay.from_range().figure_
    figure.savefig(path, dpi=90)
    plt.close(figure)


def table1(rows: list[Row], path: Path) -> None:
    """Table 1 with error bars of one standard deviation."""
    plt = _pyplot()
    names = TABLES["table1"]
    figure, axes = plt.subplots(2, 5, figsize=(15, 7), sharey=True, layout="constrained")
    for ax, name in zip(axes.flat, names, strict=True):
        own = {row.method: row for row in rows if row.dataset == name}
        for shift, (column, title) in enumerate([("published", "published"), *COLUMN_TITLES.items()]):
            cells = [(i, getattr(own[m], column)) for i, m in enumerate(METHODS) if getattr(own[m], column) is not None]
            if cells:
                at = np.array([i for i, _ in cells]) + (shift - 1.5) * 0.18
                means, stds = np.array([(cell.mean, cell.std) for _, cell in cells]).T
                ax.errorbar(at, means, stds, fmt="o", ms=3, lw=1, color=f"C{shift}", label=title)
        ax.set_title(name)
        ax.set_xticks(range(len(METHODS)), METHODS, rotation=90, fontsize=8)
        ax.set_ylim(-0.05, 1.05)
    axes[0, 0].set_ylabel("ARI")
    axes[1, 0].set_ylabel("ARI")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def voronoi(name: str, path: Path, seed: int = 0) -> None:
    """Centres and their Voronoi cells, as the released script draws them, for three methods."""
    from scipy.spatial import Voronoi, voronoi_plot_2d

    plt = _pyplot()
    X, y, n_clusters = prepared(name)
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    shown = (("released", "k-means"), ("released", "fast t-k-means"), ("defaults", "t-k-means"))
    for ax, (column, method) in zip(axes, shown, strict=True):
        start = RELEASED[method].start(X, n_clusters, np.random.RandomState(seed))
        labels, centers, _ = fitted(column, method, X, start, seed)
        ax.scatter(*X.T, s=2, marker="x", lw=0.4, color="C0", rasterized=True)
        voronoi_plot_2d(Voronoi(centers), ax, show_points=False, show_vertices=False, line_width=0.8)
        ax.plot(*centers.T, "y*", ms=8, mec="black", mew=0.5)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal", xticks=[], yticks=[])
        title = method if column == "released" else "TKMeans"
        ax.set_title(f"{title} ({COLUMN_TITLES[column]}): ARI {adjusted_rand_score(y, labels):.3f}")
    figure.suptitle(name)
    figure.savefig(path, dpi=70)
    plt.close(figure)


def collapse(path: Path, name: str = "S1", seed: int = 0) -> None:
    """The literal limit alpha -> 0: every centre falls onto a row; with tau alone none does."""
    plt = _pyplot()
    X, _, n_clusters = prepared(name)
    start = uniform(X, n_clusters, np.random.RandomState(seed))
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    literal, released = r"weights $\tau u\propto\tau/D$: the limit, literally", r"weights $\tau$: as released"
    for ax, power, title in ((axes[0], 1, literal), (axes[1], 0, released)):
        _draw_distances(ax, nearest_rows(X, start, power))
        ax.set(title=title, xlabel="iteration", yscale="log")
    axes[0].set_ylabel("distance from a centre to the nearest row")
    figure.suptitle(f"Fast t-k-means on {name}, from one uniform start: a line for each centre")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def nearest_rows(X: Array, start: Array, power: int, n_iter: int = 60) -> Array:
    """How far each centre is from its nearest row at every iteration, (n_iter + 1, K)."""
    from scipy.spatial import KDTree

    tree = KDTree(X)
    model = Fast(power=power, engine=engines.select("auto"))
    params = Params(start, 1e-20, 1.0, np.full(len(start), -np.log(len(start))))
    source = ArraySource(X, None, Frame(np.zeros(X.shape[1]), 1.0))
    seen = [tree.query(start)[0]]
    for _ in range(n_iter):  # the loop tells the objective, not the centres: one step at a time
        params = em(source, model, params, stop=Never(), max_iter=1, accelerate=False).params
        seen.append(tree.query(params.centers)[0])
    return np.array(seen)


def _draw_distances(ax: Axes, distances: Array) -> None:
    ax.plot(np.maximum(distances, 1e-17), lw=0.9)
    ax.set_ylim(1e-17, 3)


def draw_all(rows: list[Row], folder: Path) -> list[Path]:
    """Every figure, into one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    loss(folder / "loss.png")
    collapse(folder / "collapse.png")
    if rows:
        table1(rows, folder / "table1.png")
    for name in _TWO_DIMENSIONAL:
        voronoi(name, folder / f"voronoi-{name}.png")
    return sorted(folder.glob("*.png"))
