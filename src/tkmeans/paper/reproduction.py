"""Run the experiments; write the tables, the figures and, from the template page.md, a page that sums them up."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from tkmeans import TKMeans
from tkmeans.atomic import replacing
from tkmeans.datasets import SYNTHETIC, fetch_benchmark, scaled
from tkmeans.metrics import adjusted_rand_score, clustering_mse, within_between_ratio
from tkmeans.paper import experiment_runs, figures, published_values, text_of
from tkmeans.paper.published_values import COLUMN_TITLES, METHODS, Cell, Mean, Row, markdown, marked_z, number, pipes

_UNSCALED = "fast t-k-means++"  # the row of Table 1 that was made from unscaled rows

# Where our default counts as good as the best published method, and as steady.
SHORT_OF_BEST, STEADY = 0.005, 0.002


def reproduce(
    what: str,
    out: Path,
    *,
    reps: int = 100,
    redo: str | None = None,
    n_jobs: int | None = None,
    start: Callable[[int], object] = int,
    tick: Callable[[int], object] = int,
    finish: Callable[[str], object] = str,
) -> list[Path]:
    """Run what is missing, write tables and figures, and say which files were written.

    `start` is told the number of runs, `tick` how many more are done, `finish` how long it
    took. Runs are kept in ``out/runs.csv``; `redo` names a column whose runs are done anew.
    """
    began = time.monotonic()
    names = [what] if what in experiment_runs.TABLES else list(experiment_runs.TABLES) if what == "all" else []
    path = out / "runs.csv"
    if redo is not None and path.exists():
        experiment_runs.forget(path, redo)
    keys = experiment_runs.wanted(names, reps)
    start(len(keys))
    results = experiment_runs.perform(keys, path, n_jobs=n_jobs, tick=tick) if keys else {}
    out.mkdir(parents=True, exist_ok=True)
    built = {name: published_values.rows(name, results) for name in names}
    written = []
    for name, rows in built.items():
        title = published_values.publication()["titles"][name]
        written += [
            _write(out / f"{name}.md", f"# {title}\n\n{markdown(rows)}\n"),
            _write(out / f"{name}.csv", published_values.as_csv(rows)),
            _write(out / f"{name}.html", published_values.html(rows, title)),
        ]
    if what in ("figure", "all"):
        written += figures.draw_all(built.get("table1", []), out)
    if what == "all":
        cost = seconds(run for key, run in results.items() if key.dataset in SYNTHETIC)
        written.append(_write(out.with_name(out.name + ".md"), page(built, out.name, cost)))
    finish(
        f"{time.monotonic() - began:.0f} s in all; the {len(results)} runs, earlier ones included, "
        f"took {seconds(results.values()):.0f} s of one core"
    )
    return written


def seconds(runs: Iterable[dict[str, float]]) -> float:
    """What these runs took of one core."""
    return sum(run["seconds"] for run in runs)


def _write(path: Path, text: str) -> Path:
    with replacing(path) as file:
        file.write(text.encode())
    return path


def page(tables: Mapping[str, list[Row]], figures: str, table1_seconds: float) -> str:
    """The page, in Markdown: of all tables, with figures in this folder; what the runs of Table 1 took of one core."""
    table1, table2, table3 = tables.values()
    every = [*table1, *table2, *table3]
    counted = {**tables, "table3": [row for row in table3 if row.measure == "iterations"]}
    unequal = [row for row in table2 if "t-k-means" in row.method and not equal_to_the_third_decimal(row)]
    mse = {(row.dataset, row.method): row.means["released"] for row in table2 if row.measure == "MSE"}
    best1, best2 = standings(table1), standings(table2)
    return Template(text_of("page.md")).substitute(
        {f"{name}_agree": _agreeing(rows) for name, rows in counted.items()},
        **{name: markdown(rows) for name, rows in tables.items()},
        **{f"{name}_exact": _agreeing(rows, rounding=False) for name, rows in counted.items()},
        repetitions=min(mean.n for row in every for mean in row.means.values()),
        unscaled_agree=sum(
            row.verdict("released unscaled" if row.method == _UNSCALED else "released") == "agrees" for row in table1
        ),
        table2_equal=24 - len(unequal),
        table2_unequal=_but(
            "The others, published / as released:",
            "; ".join(f"{_name(row)}: {row.published.mean:.3f} / {row.means['released'].mean:.4f}" for row in unequal),
        ),
        summary=_summary(table1),
        saved_by_rounding=_saved_by_rounding(table1),
        exceptions=_exceptions(every),
        unscaled=pipes([_unscaled(row) for row in table1 if row.method == _UNSCALED]),
        best_ari=pipes(map(_best_ari, best1)),
        best_ari_verdict=_best_ari_verdict(best1),
        best_table2=pipes(map(_best_table2, best2)),
        best_table2_held=sum(cell.holds for cell in best2),
        best_table2_missed=_but(
            "Above it:",
            ", ".join(f"{c.dataset}, {c.measure} ({c.short / c.best.mean:+.1%})" for c in best2 if not c.holds),
        ),
        table1_minutes=f"{table1_seconds / 60:.1f}",
        table1_minutes_on_two=f"{table1_seconds / 120:.1f}",
        figures=figures,
        gmm_iris_std=f"{mse['iris', 'GMM'].std:.3f}",
        gmm_bezdekiris_std=f"{mse['bezdekiris', 'GMM'].std:.3f}",
        tmm_iris=number(mse["iris", "TMM"], "MSE"),
        tmm_bezdekiris=number(mse["bezdekiris", "TMM"], "MSE"),
        **_species(),
    )


def _but(what: str, listed: str) -> str:
    """A sentence more, where there is something to list."""
    return f" {what} {listed}." if listed else ""


def equal_to_the_third_decimal(row: Row) -> bool:
    """Whether the released code's mean would have been printed as the published one."""
    return round(row.means["released"].mean, 3) == row.published.mean


def _agreeing(rows: list[Row], *, rounding: bool = True) -> int:
    return sum(row.verdict(rounding=rounding) == "agrees" for row in rows)


def _name(row: Row) -> str:
    return f"{row.method} on {row.dataset}" + ("" if row.measure in ("ARI", "iterations") else f", {row.measure}")


def _summary(table1: list[Row]) -> str:
    lines = []
    for method in METHODS:
        own = [row for row in table1 if row.method == method]
        columns = [[row.means[column].mean for row in own if column in row.means] for column in COLUMN_TITLES]
        means = [[row.published.mean for row in own], *columns]
        lines.append([method, *(f"{np.mean(values):.3f}" if values else "-" for values in means)])
    return pipes(lines)


def _unscaled(row: Row) -> list[str]:
    released, raw = (number(row.means[column], "ARI") for column in ("released", "released unscaled"))
    return [row.dataset, number(row.published, "ARI"), released, marked_z(row), raw, marked_z(row, "released unscaled")]


def _saved_by_rounding(rows: list[Row]) -> str:
    saved = [row for row in rows if row.verdict() == "agrees" != row.verdict(rounding=False)]
    listed = (
        f"{_name(row)} ({number(row.published, row.measure)} against "
        f"{row.means['released'].mean:.4f} ± {row.means['released'].std:.4f})"
        for row in saved
    )
    return "; ".join(listed) + "." if saved else "here there are none."


def _exceptions(rows: list[Row]) -> str:
    """The cells that do not agree, with both figures and the range of the runs."""
    lines = [["cell", "published", "as released", "least and most", "z"], ["---"] * 5]
    for row in rows:
        if row.verdict() not in ("agrees", ""):
            ours = row.means["released"]
            found = [number(row.published, row.measure), number(ours, row.measure)]
            lines.append([_name(row), *found, f"{ours.least:.3f} to {ours.most:.3f}", marked_z(row)])
    return pipes(lines) if len(lines) > 2 else "None."


class Standing(NamedTuple):
    """TKMeans beside the best published method in one cell."""

    dataset: str
    measure: str
    best: Cell
    method: str
    ours: Mean
    unscaled: Mean | None
    least_kmeans: float | None  # the least that any run of k-means reached

    @property
    def short(self) -> float:
        """By how much ours is worse than the best; negative where it is better."""
        return self.best.mean - self.ours.mean if self.measure == "ARI" else self.ours.mean - self.best.mean

    @property
    def holds(self) -> bool:
        """At least as good: within 0.005 in ARI and steady; within rounding by the other measures."""
        if self.measure == "ARI":
            return self.short <= SHORT_OF_BEST and self.ours.std <= STEADY
        return self.short <= 0.0005

    @property
    def mark(self) -> str:
        """Whether it holds."""
        return "✓" if self.holds else "✗"


def standings(rows: list[Row]) -> list[Standing]:
    """How TKMeans, with nothing set, compares in every cell of a table."""
    out = []
    for measure, name in dict.fromkeys((row.measure, row.dataset) for row in rows):
        own = {row.method: row for row in rows if (row.measure, row.dataset) == (measure, name)}
        sign = -1 if measure == "ARI" else 1
        best = min(METHODS, key=lambda method: sign * own[method].published.mean)
        kmeans = [own[m].means["correct"].least for m in ("k-means", "k-means++") if "correct" in own[m].means]
        means = own["t-k-means"].means
        ours, unscaled = means["defaults"], means.get("defaults unscaled")
        out.append(Standing(name, measure, own[best].published, best, ours, unscaled, min(kmeans, default=None)))
    return out


def _best_ari(c: Standing) -> list[str]:
    ours, unscaled = number(c.ours, "ARI"), number(c.unscaled, "ARI")
    return [c.dataset, f"{c.best.mean:.3f}", c.method, ours, f"{-c.short:+.3f}", c.mark, unscaled]


def _best_ari_verdict(cells: list[Standing]) -> str:
    missed = [
        f"{c.dataset} ({c.ours.mean:.4f} ± {c.ours.std:.4f} against {c.best.mean:.3f})" for c in cells if not c.holds
    ]
    return (
        f"Our default `TKMeans` is as good as the best published method in {len(cells) - len(missed)} of {len(cells)} "
        f"cells of Table 1 (at most {SHORT_OF_BEST} below it); its largest standard deviation is "
        f"{max(c.ours.std for c in cells):.4f}.{_but('Not so:', ', '.join(missed))}"
    )


def _best_table2(c: Standing) -> list[str]:
    least = "-" if c.least_kmeans is None else f"{c.least_kmeans:.4f}"
    ours = f"{c.ours.mean:.4f} ± {c.ours.std:.4f}"
    return [c.dataset, c.measure, f"{c.best.mean:.3f}", c.method, least, ours, f"{c.short:+.4f}", c.mark]


def _species() -> dict[str, str]:
    """bezdekiris has known species: what their MSE is, and how close k-means and TKMeans come to them."""
    bunch = fetch_benchmark("bezdekiris")
    X, y = scaled(bunch.data), bunch.target
    kmeans = KMeans(3, n_init=20, random_state=0).fit_predict(X)
    ours = TKMeans(3, random_state=0).fit_predict(X)
    return {
        "species_mse": f"{clustering_mse(X, y):.3f}",
        "species_kmeans": f"{clustering_mse(X, kmeans):.3f}",
        "species_kmeans_ari": f"{adjusted_rand_score(y, kmeans):.3f}",
        "species_tkmeans_ari": f"{adjusted_rand_score(y, ours):.3f}",
        "species_tkmeans_wb": f"{within_between_ratio(X, ours, [X[ours == k].mean(axis=0) for k in range(3)]):.3f}",
    }
