"""Run the experiments; write the tables, the figures, the means of all runs, and from page.md a page of them."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from tkmeans.atomic import replacing
from tkmeans.datasets import SYNTHETIC
from tkmeans.paper import experiment_runs, published_values
from tkmeans.paper.authors.methods import METHODS as RELEASED
from tkmeans.paper.experiment_runs import TABLES, fitted, prepared
from tkmeans.paper.published_values import COLUMN_TITLES, LEAST_REPETITIONS, METHODS, Cells, Row, markdown, pipes
from tkmeans.plots.projections import cell_borders
from tkmeans.plots.style import color
from tkmeans.tables.file_content import imported

Hook = Callable[[Any], object]


def reproduce(what: str, out: Path, reps: int, start: Hook = int, tick: Hook = int, finish: Hook = str) -> list[Path]:
    """Run what is missing, write tables and figures, and return the files that were written.

    `start` gets the number of runs, `tick` how many more are done, `finish` how long it took. Runs are kept in
    ``out/runs.csv``: one whose line is taken out of it is done anew.
    """
    began = time.monotonic()
    names = [table for table in TABLES if what in (table, "all")]
    keys = experiment_runs.wanted(names, reps)
    start(len(keys))
    results = experiment_runs.perform(keys, out / "runs.csv", tick=tick) if keys else {}
    out.mkdir(parents=True, exist_ok=True)
    cells = published_values.summarised(results)
    tables, written = {name: published_values.rows(name, cells) for name in names}, []
    for name, rows in tables.items():
        title = published_values.publication()["titles"][name]
        texts = {"md": f"# {title}\n\n{agreement(rows)}\n\n{markdown(rows)}\n", "csv": published_values.as_csv(rows)}
        written += [_write(out / f"{name}.{suffix}", text) for suffix, text in texts.items()]
    if what in ("figure", "all"):
        written += draw_all(tables.get("table1", []), out)
    if what == "all":
        lines = (f"{json.dumps(place)}: {json.dumps(means)}" for place, means in cells.items())
        written.append(_write(out / "results.json", "{\n" + ",\n".join(lines) + "\n}\n"))
        written.append(_write(out.with_name(out.name + ".md"), page(cells, out.name)))
    took = f"took {sum(run['seconds'] for run in results.values()):.0f} s of one core"
    finish(f"{time.monotonic() - began:.0f} s in all; the {len(results)} runs, earlier ones included, {took}")
    return written


def _write(path: Path, text: str) -> Path:
    with replacing(path) as file:
        file.write(text.encode())
    return path


def page(cells: Cells, figures: str) -> str:
    """A page of all tables, in Markdown, with the figures of a folder beside it."""
    tables = {name: published_values.rows(name, cells) for name in TABLES}
    shown = {name: f"{agreement(rows)}\n\n{markdown(rows)}" for name, rows in tables.items()}
    text = Template(Path(__file__).with_name("page.md").read_text(encoding="utf-8"))
    return text.substitute(shown, figures=figures, summary=summary(cells), ci=summary(cells, "CI"))


def agreement(rows: list[Row]) -> str:
    """How many cells agree with the published ones; or, after a quick look, what that is."""
    counts = {mean.n for row in rows for column, mean in row.means.items() if column == "released"}
    if min(counts, default=0) >= LEAST_REPETITIONS:
        compared = [row for row in rows if row.rating()]
        cells = f"{sum(row.rating() == 'agrees' for row in compared)} of {len(compared)} cells"
        return f"The released code gives the published mean within 3 standard errors in {cells}."
    look = f"{min(counts, default=0)} repetitions of every run, {published_values.REPETITIONS} in the paper"
    why = "Means of so few runs are not compared with the published ones, so there is no z."
    return f"**A quick look**: {look}. {why} A comparison takes at least --reps {LEAST_REPETITIONS}."


def summary(cells: Cells, measure: str = "ARI") -> str:
    """The mean over the synthetic sets, by method and column, with the published one of ARI."""
    lines = []
    for method in METHODS:
        line = [f"{np.mean([published_values.published('ARI', name, method).mean for name in SYNTHETIC]):.3f}"]
        for column in COLUMN_TITLES:
            own = [cells.get(f"{name}/{method}/{column}", {}).get(measure) for name in SYNTHETIC]
            line.append("-" if None in own else f"{np.mean([mean.mean for mean in own if mean]):.3f}")
        lines.append([method, *(line if measure == "ARI" else line[1:])])
    return pipes(lines)


def pyplot() -> Any:
    """matplotlib's, without a window."""
    plt = imported("matplotlib.pyplot", "figures need matplotlib: pip install 'tkmeans[plots]'")
    plt.switch_backend("Agg")
    return plt


def save(figure: Any, path: Path) -> None:
    """Save as a whole, and forget the figure."""
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=100)
    pyplot().close(figure)


def loss(path: Path) -> None:
    """How three losses of one row grow with its distance."""
    figure, ax = pyplot().subplots(figsize=(5, 3.6), layout="constrained")
    d = np.linspace(-5, 5, 501)
    ax.plot(d, np.abs(d), ":", lw=2, color=color(2), label=r"$\ell_1$: k-medians")
    ax.plot(d, d**2, "--", lw=2, color=color(5), label=r"$\ell_2$: k-means")
    ax.plot(d, np.log1p(d**2), lw=2, color=color(0), label=r"$\ln(1+d^2)$: t-k-means, $\nu\alpha=1$")
    ax.set(xlabel="distance to the centre", ylabel="loss")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    save(figure, path)


def table1(rows: list[Row], path: Path) -> None:
    """Table 1 with error bars of one standard deviation: a panel for each set, a line for each method."""
    figure, axes = pyplot().subplots(2, 5, figsize=(13, 8.2), sharex=True, sharey=True, layout="constrained")
    for ax, name in zip(axes.flat, TABLES["table1"], strict=True):
        own = {row.method: row for row in rows if row.dataset == name}
        for i in range(0, len(METHODS), 2):
            ax.axhspan(i - 0.5, i + 0.5, color="0.94", lw=0)
        for shift, (column, title) in enumerate([("published", "published"), *COLUMN_TITLES.items()]):
            each = [own[m].published if column == "published" else own[m].means.get(column) for m in METHODS]
            if cells := [(i, cell.mean, cell.std) for i, cell in enumerate(each) if cell is not None]:
                at, means, stds = np.array(cells).T
                style = {"fmt": "os^vD"[shift], "ms": 4, "lw": 1.2, "color": ("k", "C1", "C2", "C0", "C3")[shift]}
                ax.errorbar(means, at + (shift - 2) * 0.17, xerr=stds, label=title, **style)
        ax.set_title(name)
        ax.tick_params(axis="y", length=0)
    axes[0, 0].set(xlim=(-0.04, 1.04), ylim=(len(METHODS) - 0.5, -0.5))
    axes[0, 0].set_yticks(range(len(METHODS)), METHODS)
    figure.supxlabel("adjusted Rand index, mean and standard deviation over repetitions")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    save(figure, path)


def voronoi(name: str, path: Path, seed: int = 0) -> None:
    """Centres and their Voronoi cells, as the released script draws them, for three methods."""
    X, y, n_clusters = prepared(name)
    figure, axes = pyplot().subplots(1, 3, figsize=(10.5, 3.9), layout="constrained")
    shown = (("released", "k-means"), ("released", "fast t-k-means"), ("defaults", "t-k-means"))
    for ax, (column, method) in zip(axes, shown, strict=True):
        start = RELEASED[method].start(X, n_clusters, np.random.RandomState(seed))
        labels, centers, _ = fitted(column, method, X, start, seed)
        ax.scatter(*X.T, s=1.5, lw=0, color="C0", alpha=0.6)
        for ends in cell_borders(centers, 1.0):
            ax.plot(*ends.T, color="0.35", lw=0.8)
        ax.plot(*centers.T, "P", ms=6, color="C1", mec="black", mew=0.6)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal", xticks=[], yticks=[])
        title = f"{method}, {COLUMN_TITLES[column]}" if column == "released" else "TKMeans, nothing set"
        ax.set_title(f"{title}: ARI {adjusted_rand_score(y, labels):.3f}", fontsize=10)
    figure.suptitle(name)
    save(figure, path)


def draw_all(rows: list[Row], folder: Path) -> list[Path]:
    """Every figure, into one folder that is there."""
    loss(folder / "loss.png")
    if rows:
        table1(rows, folder / "table1.png")
    for name in (name for name in TABLES["table1"] if not name.startswith("dim")):  # those in the plane
        voronoi(name, folder / f"voronoi-{name}.png")
    return sorted(folder.glob("*.png"))
