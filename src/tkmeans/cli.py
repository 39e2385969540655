"""The `tkmeans` command."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from tkmeans import TKMeans, __version__
from tkmeans.datasets import make_contaminated
from tkmeans.paper.command import QUICK_REPS, What

if TYPE_CHECKING:
    from matplotlib.axes import Axes

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
except ImportError as missing:  # the library works without its command
    sys.exit(f"The tkmeans command needs {missing.name}: pip install 'tkmeans[cli,plots]'")

app = typer.Typer(help="Robust k-means: clusters that outliers do not move.", no_args_is_help=True)
console = Console()


def main() -> None:
    """Run the command."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"tkmeans {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say it, and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("tkmeans-demo.png"),
    seed: Annotated[int, typer.Option(help="Another seed, other data.")] = 0,
) -> None:
    """Cluster the same contaminated data with KMeans and with TKMeans, and compare."""
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


@app.command()
def reproduce(
    what: Annotated[What, typer.Argument(help="Which table, the figures, or all of it.")] = What.all,
    reps: Annotated[int, typer.Option(min=1, help="Repetitions of every run; 100 in the paper.")] = 100,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_REPS} repetitions: a look in a minute.")] = False,
    out: Annotated[Path, typer.Option(help="Where to write; the page is put beside it.")] = Path("reproduction"),
    redo: Annotated[
        str | None, typer.Option(help='Do the runs of one column anew: "released", "correct" or "defaults".')
    ] = None,
) -> None:
    """Rebuild the paper's tables and figures; a stopped run goes on where it was."""
    from tkmeans.paper import command

    bars = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*bars, console=console) as progress:
        bar = progress.add_task("runs", total=None)
        try:
            written = command.reproduce(
                what.value,
                out,
                reps=QUICK_REPS if quick else reps,
                redo=redo,
                start=lambda total: progress.update(bar, total=total),
                tick=lambda done: progress.advance(bar, done),
            )
        except (OSError, ImportError) as missing:  # a data set, or an optional library
            console.print(f"[red]{missing}[/red]")
            raise typer.Exit(1) from None
    for path in written:
        console.print(f"{path}")


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
