"""The page that tells readers of the paper what became of its figures: page.md, filled in."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from tkmeans import TKMeans
from tkmeans.datasets import fetch_benchmark, scaled
from tkmeans.metrics import adjusted_rand_score, clustering_mse, within_between_ratio
from tkmeans.paper.agreement import Mean, Row
from tkmeans.paper.publication import METHODS, Cell
from tkmeans.paper.tables import COLUMN_TITLES, markdown, marked_z, number, pipes

_OURS = ("t-k-means", "fast t-k-means", "fast t-k-means++")
_UNSCALED = "fast t-k-means++"  # the row of Table 1 that was made from unscaled rows

# Where our default counts as good as the best published method, and as steady.
SHORT_OF_BEST, STEADY = 0.005, 0.002


class Page(NamedTuple):
    """The rows of the three tables, where the figures are as seen from the page, and what Table 1 cost."""

    table1: list[Row]
    table2: list[Row]
    table3: list[Row]
    figures: str
    table1_seconds: float  # of one core, over all runs

    def text(self) -> str:
        """The page, in Markdown."""
        template = Template(files("tkmeans.paper").joinpath("page.md").read_text(encoding="utf-8"))
        every = [*self.table1, *self.table2, *self.table3]
        planar = dict.fromkeys(row.dataset for row in self.table1 if not row.dataset.startswith("dim"))
        found = {(row.measure, row.dataset, row.method): row.means.get("released") for row in self.table2}
        return template.substitute(
            repetitions=min((mean.n for row in every for mean in row.means.values()), default=0),
            in_short=self._in_short(),
            summary=self._summary(),
            saved_by_rounding=_saved_by_rounding(self.table1),
            exceptions=_exceptions(every),
            unscaled=self._unscaled(),
            best_ari=_best_ari(self.table1),
            best_ari_verdict=_best_ari_verdict(self.table1),
            best_table2=_best_table2(self.table2),
            best_table2_verdict=_best_table2_verdict(self.table2),
            table1=markdown(self.table1),
            table1_minutes=f"{self.table1_seconds / 60:.1f}",
            table1_minutes_on_two=f"{self.table1_seconds / 120:.1f}",
            table2=markdown(self.table2),
            table3=markdown(self.table3),
            voronoi="\n\n".join(f"![{name}]({self.figures}/voronoi-{name}.png)" for name in planar),
            figures=self.figures,
            gmm_iris_std=_deviation(found["MSE", "iris", "GMM"]),
            gmm_bezdekiris_std=_deviation(found["MSE", "bezdekiris", "GMM"]),
            tmm_iris=number(found["MSE", "iris", "TMM"], "MSE"),
            tmm_bezdekiris=number(found["MSE", "bezdekiris", "TMM"], "MSE"),
            **_species(),
        )

    def _in_short(self) -> str:
        iterations = [row for row in self.table3 if row.measure == "iterations"]
        lines = [
            f"- {title}: the released code gives the published figure within 3 standard errors in "
            f"{_agreeing(rows)} of {len(rows)} cells ({_agreeing(rows, rounding=False)} if printed figures are taken "
            "as exact)."
            for title, rows in (("Table 1", self.table1), ("Table 2", self.table2), ("Table 3, iterations", iterations))
        ]
        agree = sum(
            row.verdict("released unscaled" if row.method == _UNSCALED else "released") == "agrees"
            for row in self.table1
        )
        lines.insert(1, f"- Table 1 with its {_UNSCALED} row on unscaled rows, which it must come from: {agree} of 90.")
        ours = [row for row in self.table2 if row.method in _OURS and "released" in row.means]
        different = [row for row in ours if not equal_to_the_third_decimal(row)]
        listed = "; ".join(
            f"{row.method} on {row.dataset}, {row.measure}: {row.published.mean:.3f} / {row.means['released'].mean:.4f}"
            for row in different
        )
        but = f" The others, published / as released: {listed}." if listed else ""
        lines.append(
            f"- Of the {len(ours)} t-k-means cells of Table 2, {len(ours) - len(different)} are equal to the third "
            f"decimal.{but}"
        )
        return "\n".join([*lines, f"- {_best_ari_verdict(self.table1)}"])

    def _summary(self) -> str:
        lines = [["method", "published", *COLUMN_TITLES.values()]]
        for method in METHODS:
            own = [row for row in self.table1 if row.method == method]
            cells = [f"{np.mean([row.published.mean for row in own]):.3f}"]
            for column in COLUMN_TITLES:
                means = [row.means[column].mean for row in own if column in row.means]
                cells.append(f"{np.mean(means):.3f}" if means else "-")
            lines.append([method, *cells])
        return pipes(lines)

    def _unscaled(self) -> str:
        lines = [["data set", "published", "as released (scaled)", "z", "unscaled", "z"]]
        for row in self.table1:
            if row.method == _UNSCALED:
                scaled_, raw = (number(row.means.get(c), "ARI") for c in ("released", "released unscaled"))
                z = marked_z(row, "released unscaled")
                lines.append([row.dataset, number(row.published, "ARI"), scaled_, marked_z(row), raw, z])
        return pipes(lines)


# ---- agreement -----------------------------------------------------------------------


def equal_to_the_third_decimal(row: Row) -> bool:
    """Whether the released code's mean would have been printed as the published one."""
    return round(row.means["released"].mean, 3) == row.published.mean


def _agreeing(rows: list[Row], *, rounding: bool = True) -> int:
    return sum(row.verdict(rounding=rounding) == "agrees" for row in rows)


def _name(row: Row) -> str:
    return f"{row.method} on {row.dataset}" + ("" if row.measure in ("ARI", "iterations") else f", {row.measure}")


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
    lines = [["cell", "published", "as released", "least and most", "z"]]
    for row in rows:
        if row.verdict() not in ("agrees", ""):
            ours = row.means["released"]
            found = [number(row.published, row.measure), number(ours, row.measure)]
            lines.append([_name(row), *found, f"{ours.least:.3f} to {ours.most:.3f}", marked_z(row)])
    return pipes(lines) if len(lines) > 1 else "None."


def _deviation(mean: Mean | None) -> str:
    return f"{mean.std:.3f}" if mean else "-"


# ---- our default ---------------------------------------------------------------------


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


def standings(rows: list[Row]) -> list[Standing]:
    """How TKMeans, with nothing set, compares in every cell of a table."""
    cells = dict.fromkeys((row.measure, row.dataset) for row in rows)
    out = []
    for measure, name in cells:
        own = {row.method: row for row in rows if (row.measure, row.dataset) == (measure, name)}
        means = own["t-k-means"].means
        if "defaults" in means:
            sign = -1 if measure == "ARI" else 1
            best = min(METHODS, key=lambda method: sign * own[method].published.mean)
            kmeans = [own[m].means["correct"].least for m in ("k-means", "k-means++") if "correct" in own[m].means]
            ours, unscaled = means["defaults"], means.get("defaults unscaled")
            out.append(Standing(name, measure, own[best].published, best, ours, unscaled, min(kmeans, default=None)))
    return out


def _best_ari(rows: list[Row]) -> str:
    lines = [["data set", "best published", "method", "TKMeans, scaled", "difference", "", "TKMeans, unscaled"]]
    for cell in standings(rows):
        mark = "✓" if cell.holds else "✗"
        raw = number(cell.unscaled, "ARI")
        ours = number(cell.ours, "ARI")
        lines.append([cell.dataset, f"{cell.best.mean:.3f}", cell.method, ours, f"{-cell.short:+.3f}", mark, raw])
    return pipes(lines)


def _best_ari_verdict(rows: list[Row]) -> str:
    cells = standings(rows)
    if not cells:
        return "Our defaults have not been run yet."
    missed = [
        f"{c.dataset} ({c.ours.mean:.4f} ± {c.ours.std:.4f} against {c.best.mean:.3f})" for c in cells if not c.holds
    ]
    but = f" Not so: {', '.join(missed)}." if missed else ""
    return (
        f"Our default `TKMeans` is as good as the best published method in {len(cells) - len(missed)} of {len(cells)} "
        f"cells of Table 1 (at most {SHORT_OF_BEST} below it); its largest standard deviation is "
        f"{max(c.ours.std for c in cells):.4f}.{but}"
    )


def _best_table2(rows: list[Row]) -> str:
    lines = [["data set", "measure", "best published", "method", "least k-means", "TKMeans", "difference", ""]]
    for c in standings(rows):
        least = "-" if c.least_kmeans is None else f"{c.least_kmeans:.4f}"
        ours, mark = f"{c.ours.mean:.4f} ± {c.ours.std:.4f}", "✓" if c.holds else "✗"
        lines.append([c.dataset, c.measure, f"{c.best.mean:.3f}", c.method, least, ours, f"{c.short:+.4f}", mark])
    return pipes(lines)


def _best_table2_verdict(rows: list[Row]) -> str:
    cells = standings(rows)
    missed = [f"{c.dataset}, {c.measure} ({c.short / c.best.mean:+.1%})" for c in cells if not c.holds]
    but = f" Above it: {', '.join(missed)}." if missed else ""
    held = len(cells) - len(missed)
    return f"At or below the best published figure, to the printed digits, in {held} of {len(cells)} cells.{but}"


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
