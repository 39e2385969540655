"""`tkmeans demo`: the same contaminated data, clustered twice."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from tkmeans.cli.screen import out as console

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def demo(
    picture: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("tkmeans-demo.png"),
    seed: Annotated[int, typer.Option(help="Another seed, other data.")] = 0,
) -> None:
    """Cluster the same contaminated data with KMeans and with TKMeans, and compare."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    from tkmeans import TKMeans
    from tkmeans.datasets import make_contaminated

    X, y = make_contaminated(random_state=seed)
    genuine = y >= 0
    console.print(
        f"{genuine.sum()} rows in {y.max() + 1} clusters, and {np.sum(~genuine)} outliers "
        f"({np.sum(~genuine) / np.sum(genuine):.0%}) scattered around them.\n"
    )
    table = Table("method", "ARI on the genuine rows", "clusters found", "outliers found", "seconds")
    fitted = []
    theirs, ours = KMeans(15, n_init=10, random_state=seed), TKMeans(15, random_state=seed)
    for model in (theirs, ours):
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        ari = adjusted_rand_score(y[genuine], model.labels_[genuine])
        flagged = f"{np.sum(model.outliers(X) & ~genuine)} of {np.sum(~genuine)}" if model is ours else "-"
        table.add_row(type(model).__name__, f"{ari:.3f}", f"{_found(model, X, y)} of 15", flagged, f"{seconds:.2f}")
        fitted.append((model, ari))
    console.print(table)
    console.print("ARI is 1 for a perfect answer and 0 for a random one.\n")
    if _draw(X, fitted, picture):
        console.print(f"The picture: {picture}")
    console.print("Next: [bold]from tkmeans import TKMeans[/bold], and use it like KMeans.")


def _found(model: Any, X: Any, y: Any) -> int:
    """True clusters that have one centre close to their mean, and only one."""
    means = np.array([X[y == k].mean(axis=0) for k in range(y.max() + 1)])
    spread = np.mean([X[y == k].std(axis=0) for k in range(y.max() + 1)])
    away = np.linalg.norm(means[:, None] - model.cluster_centers_, axis=2)  # (true, found)
    return int(np.sum(np.sum(away < spread, axis=1) == 1))


def _draw(X: Any, fitted: list[tuple[Any, float]], path: Path) -> bool:
    """Both clusterings side by side; False where matplotlib is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        console.print("For the picture: pip install 'tkmeans[plots]'")
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
    for ax, (model, ari) in zip(axes, fitted, strict=True):
        _draw_clusters(ax, X, model)
        ax.set_title(f"{type(model).__name__}: ARI {ari:.2f}")
    figure.suptitle("The same data, 5 % of it outliers (most lie outside the picture)")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return True


def _draw_clusters(ax: Axes, X: Any, model: Any) -> None:
    ax.scatter(X[:, 0], X[:, 1], c=model.labels_, s=5, cmap="tab20", alpha=0.6, linewidths=0)
    x, y = model.cluster_centers_.T
    ax.scatter(x, y, marker="P", s=110, c="black", edgecolors="white", linewidths=1.2)
    ax.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xticks=[], yticks=[], aspect="equal")
