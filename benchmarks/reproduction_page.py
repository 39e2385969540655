"""The page docs/reproduction.md: what of the paper holds, from the runs of `tkmeans reproduce` and nothing else.

tkmeans reproduce all --out docs/reproduction    runs, tables, figures and results.json
python -m benchmarks.reproduction_page [--check]               the page, from results.json and reproduction_page.md

Every figure of the page comes from `results.json` (the means of all runs), from `facts.json` (what this command
measures beside them), or from the tables the paper printed. `--check` fails if the page is not what these files give.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.cluster import KMeans

from benchmarks.common import agreeing
from tkmeans import TKMeans
from tkmeans.datasets import SYNTHETIC, fetch_benchmark, scaled
from tkmeans.metrics import adjusted_rand_score, clustering_mse, within_between_ratio
from tkmeans.paper import experiment_runs, published_values
from tkmeans.paper.authors.methods import uniform
from tkmeans.paper.authors.soft_models import FIRST_DOF, FIRST_SCALE
from tkmeans.paper.published_values import (
    MARKS,
    METHODS,
    REPETITIONS,
    Cells,
    Mean,
    Row,
    markdown,
    number,
    pipes,
    published,
)
from tkmeans.paper.reproduction import pyplot, save, summary


def marked_z(row: Row, column: str = "released") -> str:
    """z of a column, and what it means."""
    return f"{row.z(column):+.1f} {MARKS[row.rating(column)]}" if row.rating(column) else ""


DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, RESULTS, FACTS = DOCS / "reproduction.md", DOCS / "reproduction/results.json", DOCS / "reproduction/facts.json"
TEMPLATE = Path(__file__).with_suffix(".md")

_UNSCALED = "fast t-k-means++"  # the row of Table 1 that was made from unscaled rows

# Where our default counts as good as the best published method, and as steady.
SHORT_OF_BEST, STEADY = 0.005, 0.002

# Runs that the page compares on every synthetic set: methods, and their columns.
MIXTURES = [("k-means", "correct"), ("GMM", "correct"), ("GMM", "better start"), ("TMM", "correct")]
MIXTURES += [("TMM", "better start"), ("TMM", "capped")]
EQUATIONS = [("k-means", "correct"), ("t-k-means", "released"), ("t-k-means", "correct"), ("t-k-means", "better start")]
INDEX = [(method, "released") for method in ("k-means", "k-means++", *METHODS[6:])] + [("t-k-means", "defaults")]


def page(cells: Cells, facts: Mapping[str, Any]) -> str:
    """The page, in Markdown."""
    tables = {name: published_values.rows(name, cells) for name in experiment_runs.TABLES}
    table1, table2, table3 = tables.values()
    every = [*table1, *table2, *table3]
    counted = {**tables, "table3": [row for row in table3 if row.measure == "iterations"]}
    unequal = [row for row in table2 if "t-k-means" in row.method and not equal_to_the_third_decimal(row)]
    mse = {(row.dataset, row.method): row.means["released"] for row in table2 if row.measure == "MSE"}
    best1, best2 = standings(table1), standings(table2)
    cost = sum(
        own["seconds"].mean * own["seconds"].n for place, own in cells.items() if place.split("/")[0] in SYNTHETIC
    )
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        {f"{name}_agree": agreeing(rows) for name, rows in counted.items()},
        **{name: markdown(rows) for name, rows in tables.items()},
        **{f"{name}_exact": agreeing(rows, rounding=False) for name, rows in counted.items()},
        repetitions=min(row.means["released"].n for row in every),
        fewer=min(mean.n for row in every for mean in row.means.values()),
        unscaled_agree=sum(
            row.rating("released unscaled" if row.method == _UNSCALED else "released") == "agrees" for row in table1
        ),
        table2_equal=24 - len(unequal),
        table2_unequal=_but(
            "The others, published / as released:",
            "; ".join(f"{_name(row)}: {row.published.mean:.3f} / {row.means['released'].mean:.4f}" for row in unequal),
        ),
        summary=summary(cells, "ARI"),
        summary_ci=summary(cells, "CI"),
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
        table1_minutes=f"{cost / 60:.1f}",
        table1_minutes_on_two=f"{cost / 120:.1f}",
        gmm_iris_std=f"{mse['iris', 'GMM'].std:.3f}",
        gmm_bezdekiris_std=f"{mse['bezdekiris', 'GMM'].std:.3f}",
        gmm_seed_most=f"{mse['seed', 'GMM'].most:.3f}",
        tmm_iris=number(mse["iris", "TMM"], "MSE"),
        tmm_bezdekiris=number(mse["bezdekiris", "TMM"], "MSE"),
        on_a_row=pipes(_on_a_row(cells)),
        **_compared(cells),
        **claims(),
        **facts,
    )


def _compared(cells: Cells) -> dict[str, Any]:
    """The page's own tables of the synthetic sets, and the counts that it tells of them."""

    def ari(method: str, column: str, part: str = "mean") -> Any:
        return np.array([getattr(cells[f"{name}/{method}/{column}"]["ARI"], part) for name in SYNTHETIC])

    kmeans, kmeans_std = ari("k-means", "correct"), ari("k-means", "correct", "std")
    told: dict[str, Any] = {
        "mixtures": _by_set(cells, MIXTURES, "ARI"),
        "equations": _by_set(cells, EQUATIONS, "ARI"),
        "deviations": _by_set(cells, EQUATIONS, "ARI", "std"),
        "index_by_set": _by_set(cells, INDEX, "CI"),
        "released_from_kmeans": sum(ari("t-k-means", "released") > ari("k-means", "released")),
        "fast_from_kmeans": sum(ari("fast t-k-means", "released") > ari("k-means", "released")),
        "plusplus_from_kmeans": sum(ari("fast t-k-means++", "released") > ari("k-means++", "released")),
        "cap_helps": sum(ari("TMM", "capped") > ari("TMM", "better start")),
        "fair_above_released": sum(ari("t-k-means", "better start") > ari("t-k-means", "released")),
    }
    for method, column in dict.fromkeys([*MIXTURES, *EQUATIONS]):
        key = f"{method} {column}".replace("-", "").replace(" ", "_")
        told[f"{key}_mean"] = f"{ari(method, column).mean():.3f}"
        told[f"{key}_above"] = int(sum(ari(method, column) > kmeans))
        told[f"{key}_steadier"] = int(sum(ari(method, column, "std") < kmeans_std))
    return told


def _by_set(cells: Cells, runs: list[tuple[str, str]], measure: str, part: str = "mean") -> str:
    """A line for each synthetic set, and one of means."""
    values = np.array(
        [[getattr(cells[f"{name}/{m}/{column}"][measure], part) for m, column in runs] for name in SYNTHETIC]
    )
    digits = 2 if measure == "CI" else 3
    lines = zip([*SYNTHETIC, "mean"], [*values, values.mean(axis=0)], strict=True)
    return pipes([name, *(f"{value:.{digits}f}" for value in line)] for name, line in lines)


def _on_a_row(cells: Cells) -> Iterable[list[str]]:
    for method in METHODS[7:]:
        shares = [cells[f"{name}/{method}/correct"]["on a row"].mean for name in SYNTHETIC]
        yield [method, *(f"{share:.0%}" for share in shares)]


def _but(what: str, listed: str) -> str:
    """A sentence more, where there is something to list."""
    return f" {what} {listed}." if listed else ""


def equal_to_the_third_decimal(row: Row) -> bool:
    """Whether the released code's mean would have been printed as the published one."""
    return round(row.means["released"].mean, 3) == row.published.mean


def _name(row: Row) -> str:
    return f"{row.method} on {row.dataset}" + ("" if row.measure in ("ARI", "iterations") else f", {row.measure}")


def _unscaled(row: Row) -> list[str]:
    released, raw = (number(row.means[column], "ARI") for column in ("released", "released unscaled"))
    return [row.dataset, number(row.published, "ARI"), released, marked_z(row), raw, marked_z(row, "released unscaled")]


def _saved_by_rounding(rows: list[Row]) -> str:
    saved = [row for row in rows if row.rating() == "agrees" != row.rating(rounding=False)]
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
        if row.rating() not in ("agrees", ""):
            ours = row.means["released"]
            found = [number(row.published, row.measure), number(ours, row.measure)]
            lines.append([_name(row), *found, f"{ours.least:.3f} to {ours.most:.3f}", marked_z(row)])
    return pipes(lines) if len(lines) > 2 else "None."


class Standing(NamedTuple):
    """TKMeans beside the best published method in one cell."""

    dataset: str
    measure: str
    best: Mean
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


def facts() -> dict[str, Any]:
    """What the page tells beside the runs, measured anew.

    bezdekiris has known species: what their MSE is, and how close k-means and TKMeans come to them.
    """
    bunch = fetch_benchmark("bezdekiris")
    X, y = scaled(bunch.data), bunch.target
    kmeans = KMeans(3, n_init=20, random_state=0).fit_predict(X)
    ours = TKMeans(3, random_state=0).fit_predict(X)
    seed = experiment_runs.prepared("seed")[0]
    shares = [shares_of_other_rows(name) for name in SYNTHETIC]
    return {
        "species_mse": f"{clustering_mse(X, y):.3f}",
        "species_kmeans": f"{clustering_mse(X, kmeans):.3f}",
        "species_kmeans_ari": f"{adjusted_rand_score(y, kmeans):.3f}",
        "species_tkmeans_ari": f"{adjusted_rand_score(y, ours):.3f}",
        "species_tkmeans_wb": f"{within_between_ratio(X, ours, [X[ours == k].mean(axis=0) for k in range(3)]):.3f}",
        "seed_scatter": f"{seed.var(axis=0).sum():.3f}",
        "shares": pipes([n, *(f"{x:.1%}" for x in line)] for n, line in zip(SYNTHETIC, shares, strict=True)),
    }


def shares_of_other_rows(name: str) -> list[float]:
    """The part of the centres' weight tau u that comes from rows whose nearest centre is another.

    In the first step of t-k-means from one uniform start, with the released alpha_0 and with the total variance; and
    in the last.
    """
    X, _, n_clusters = experiment_runs.prepared(name)
    start, variance = uniform(X, n_clusters, np.random.RandomState(0)), float(X.var(axis=0).mean())
    end = experiment_runs.t_k_means(X, start, FIRST_SCALE).params
    out = []
    for centers, scale, dof in (
        (start, FIRST_SCALE, FIRST_DOF),
        (start, variance, FIRST_DOF),
        (end.centers, end.scale, end.dof),
    ):
        d2 = cdist(centers, X, "sqeuclidean")
        base = np.log1p(d2 / (dof * scale))
        weight = softmax(-(dof + X.shape[1]) / 2 * base, axis=0) * np.exp(-base)  # tau u, up to a constant
        out.append(1 - weight[d2.argmin(axis=0), np.arange(len(X))].sum() / weight.sum())
    return out


def collapse(path: Path, name: str = "S1", seed: int = 0) -> None:
    """The literal limit alpha -> 0: every centre falls onto a row; with tau alone none does."""
    X, _, n_clusters = experiment_runs.prepared(name)
    start = uniform(X, n_clusters, np.random.RandomState(seed))
    figure, axes = pyplot().subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    literal, released = r"weights $\tau u\propto\tau/D$: the limit, literally", r"weights $\tau$: as released"
    for ax, power, title in ((axes[0], 1, literal), (axes[1], 0, released)):
        # Below the rounding error of the coordinates a centre *is* a row.
        ax.plot(np.maximum(nearest_rows(X, start, power), 1e-16), "C0", lw=0.9, alpha=0.8)
        ax.axhspan(1e-17, 3e-16, color="0.88", lw=0)
        ax.set(title=title, xlabel="iteration", yscale="log", xlim=(0, 60), ylim=(1e-17, 3))
    axes[1].text(59, 5e-17, "rounding error: the centre is a row", ha="right", va="center", fontsize=8)
    axes[0].set_ylabel("distance to the nearest row")
    figure.suptitle(f"Fast t-k-means on {name}, from one uniform start: a line for each centre")
    save(figure, path)


def nearest_rows(X: np.ndarray, start: np.ndarray, power: int, n_iter: int = 60) -> np.ndarray:
    """How far each centre is from its nearest row at every iteration, (n_iter + 1, K)."""
    tree = KDTree(X)
    path = [tree.query(start)[0]]
    for _ in range(n_iter):  # the loop tells the objective, not the centres: one step at a time
        start = experiment_runs.limit(X, start, power, lambda _: False, 1).params.centers
        path.append(tree.query(start)[0])
    return np.array(path)


# ---- the paper's sentences about its tables, held against these tables ------------------

BASELINES, PROPOSED = METHODS[:6], METHODS[6:]
SIGNIFICANT = 1.96  # standard errors: the two-sided test at 5 %


def claims() -> dict[str, Any]:
    """The tables and counts of the page that need the published figures alone."""
    sets = experiment_runs.TABLES["table1"]
    table1 = {name: {method: published("ARI", name, method) for method in METHODS} for name in sets}
    better, best, steadier, steady = [], [], {m: 0 for m in PROPOSED}, []
    ahead, below = {m: 0 for m in PROPOSED}, {m: 0 for m in PROPOSED}
    for name, cells in table1.items():
        rival = max(BASELINES, key=lambda m: cells[m].mean)
        zs = {m: standard_errors(cells[m], cells[rival]) for m in PROPOSED}
        for method, z in zs.items():
            ahead[method] += z >= SIGNIFICANT
            below[method] += cells[method].mean < cells[rival].mean
        first = max(cell.mean for cell in cells.values())
        best.append(cells["fast t-k-means++"].mean == first)
        margins = [f"{cells[m].mean - cells[rival].mean:+.3f} ({zs[m]:+.1f}) {_mark(zs[m] >= SIGNIFICANT)}" for m in zs]
        winners = [m for m in METHODS if cells[m].mean == first]
        better.append([name, f"{rival} {cells[rival].mean:.3f}", *margins, ", ".join(winners)])
        calmest = min(BASELINES, key=lambda m: cells[m].std)
        won = {m: cells[m].std < cells[calmest].std for m in PROPOSED}
        steadier = {m: n + won[m] for m, n in steadier.items()}
        shown = (f"{cells[m].std:.3f} {_mark(won[m])}" for m in PROPOSED)
        kmeans = min(cells[m].std for m in BASELINES[:4])
        steady.append([name, f"{calmest} {cells[calmest].std:.3f}", f"{kmeans:.3f}", *shown])
    return {
        "claim_better": pipes(better),
        "claim_steady": pipes(steady),
        "claim_real": pipes(real := list(_real_sets())),
        "real_beyond": sum(int(rank) > 2 for line in real for rank in line[2:5]),
        "real_smaller": sum("✓" in cell for line in real for cell in line[6:]),
        "claim_best": sum(best),
        **_by_method("ahead", ahead),
        **_by_method("below", below),
        **_by_method("steadier", steadier),
    }


def standard_errors(a: Mean, b: Mean) -> float:
    """By how many standard errors the mean of `a` exceeds that of `b`, each of a hundred runs."""
    error = math.sqrt((a.std**2 + b.std**2) / REPETITIONS)
    return (a.mean - b.mean) / error if error > 0 else math.copysign(math.inf, a.mean - b.mean)


def _real_sets() -> Iterable[list[str]]:
    """Table 2: the rank of each proposed method, and whether its deviation is below that of every baseline."""
    for measure, name in product(("MSE", "W/B"), experiment_runs.TABLES["table2"]):
        cells = {method: published(measure, name, method) for method in METHODS}
        calmest = min(cells[m].std for m in BASELINES)
        ranks = (1 + len({other.mean for other in cells.values() if other.mean < cells[m].mean}) for m in PROPOSED)
        deviations = (f"{cells[m].std:.3f} {_mark(cells[m].std < calmest)}" for m in PROPOSED)
        yield [name, measure, *map(str, ranks), f"{calmest:.3f}", *deviations]


def _by_method(what: str, counts: dict[str, int]) -> dict[str, int]:
    return {f"{what}_{key}": counts[m] for key, m in zip(("t", "fast", "plusplus"), PROPOSED, strict=True)}


def _mark(holds: bool) -> str:
    return "✓" if holds else "✗"


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the page with its sources, and write nothing")
    if not parser.parse_args().check:
        FACTS.write_text(json.dumps(facts(), indent=1) + "\n", encoding="utf-8")
        collapse(RESULTS.with_name("collapse.png"))
        PAGE.write_text(made(), encoding="utf-8")
    if made() != PAGE.read_text(encoding="utf-8"):
        raise SystemExit(f"{PAGE} is not what {RESULTS.name} gives: run python -m benchmarks.reproduction_page")


def read_results(path: Path) -> Cells:
    """The means of all runs that `tkmeans reproduce` wrote."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {place: {measure: Mean(*mean) for measure, mean in own.items()} for place, own in kept.items()}


def made() -> str:
    """The page that the stored results give."""
    return page(read_results(RESULTS), json.loads(FACTS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
