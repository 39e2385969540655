"""The commands that compare methods: `tkmeans demo` and, for the paper, `tkmeans reproduce`."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from tkmeans.atomic import replacing
from tkmeans.cli import options, output_files, screen

QUICK_REPS = 2
_PICTURES = ("", ".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps", ".ps")
What = StrEnum("What", ["table1", "table2", "table3", "figure", "all"])  # there is to reproduce


def demo(
    picture: Annotated[Path, typer.Option(help="The file for the picture.")] = Path("tkmeans-demo.png"),
    report: Annotated[Path, typer.Option(help="The file for the report.")] = Path("tkmeans-demo.html"),
    seed: options.Seed = 0,
) -> None:
    """Compare KMeans and TKMeans on data with outliers."""
    from sklearn.cluster import KMeans

    from tkmeans import TKMeans, write_report
    from tkmeans.datasets import make_contaminated
    from tkmeans.metrics import adjusted_rand_score, centroid_index

    output_files.check_files(None, picture, report, sources=())
    if picture.suffix.casefold() not in _PICTURES:
        raise typer.BadParameter(f"{picture} is none of {', '.join(filter(None, _PICTURES))}", param_hint="--picture")
    X, y = make_contaminated(random_state=seed)
    genuine, means = y >= 0, [X[y == k].mean(axis=0) for k in range(15)]
    n_outliers = int(np.sum(~genuine))
    about, explained, then = Path(__file__).with_name("demo.txt").read_text(encoding="utf-8").split("---\n")
    screen.out.print(about.format(n_genuine=genuine.sum(), n_groups=y.max() + 1, n_outliers=n_outliers), end="")
    table = Table("method", "groups found", "centres lost to outliers", "outliers flagged", "ARI", "seconds")
    theirs, ours = KMeans(15, n_init=10, random_state=seed), TKMeans(15, random_state=seed)
    titles = []
    for model in (theirs, ours):
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        found = 15 - centroid_index(means, model.cluster_centers_)
        ari = adjusted_rand_score(y[genuine], model.labels_[genuine])
        inside = np.all(np.abs(model.cluster_centers_) <= np.abs(X[genuine]).max(axis=0), axis=1)
        named = f"{np.sum(model.outliers(X) & ~genuine)} of {n_outliers}" if model is ours else "-"
        name = type(model).__name__
        table.add_row(name, f"{found} of 15", f"{np.sum(~inside)} of 15", named, f"{ari:.3f}", f"{seconds:.2f}")
        titles.append(f"{name}: {found} of 15 groups found")
    screen.out.print(table)
    screen.out.print(explained, end="")
    _draw(X, [theirs, ours], titles, picture)
    write_report(report, ours, X, feature_names=["x", "y"], title="tkmeans demo", call="tkmeans demo")
    screen.out.print(f"The report:  {report} (open it in a browser)\n\n{then}", end="")


def _draw(X: Any, models: list[Any], titles: list[str], path: Path) -> None:
    """Both clusterings side by side in one frame, where matplotlib is installed."""
    try:
        from matplotlib import figure
    except ImportError:
        screen.out.print("For the picture: pip install 'tkmeans\\[plots]'")
        return
    from tkmeans.plots import ClustersDisplay

    picture = figure.Figure(figsize=(11, 6), layout="constrained")
    for ax, model, title in zip(picture.subplots(1, 2), models, titles, strict=True):
        ClustersDisplay.from_estimator(model, X, ax=ax, limits=((-1.35, 1.35), (-1.35, 1.35)))
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        ax.set_title(title, weight="bold")
    picture.suptitle("The same rows, clustered twice; 5 % of them are outliers, most far outside of the picture")
    with replacing(path) as file:
        picture.savefig(file, format=path.suffix[1:] or "png", dpi=130)
    screen.out.print(f"The picture: {path}")


def reproduce(
    what: Annotated[What, typer.Argument(help="The table, the figures, or all of them.")] = What.all,
    reps: Annotated[int, typer.Option(min=1, help="Repetitions of every run; 100 in the paper.")] = 100,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_REPS} repetitions, in about a minute.")] = False,
    out: Annotated[Path, typer.Option(help="The folder to write to; the page goes beside it.")] = Path("reproduction"),
) -> None:
    """Reproduce the paper's tables and figures; an interrupted run continues where it stopped."""
    from tkmeans.paper import reproduction

    n_reps = QUICK_REPS if quick else reps
    with screen.counting("runs", transient=False) as update:
        watch: dict[str, Any] = {"start": lambda n: update(total=n), "tick": lambda n: update(advance=n)}
        written = reproduction.reproduce(what.value, out, reps=n_reps, **watch, finish=screen.err.print)
    tables = (path.read_text(encoding="utf-8") for path in written if path.suffix == ".md" and path.parent == out)
    print(*tables, *written, sep="\n")
