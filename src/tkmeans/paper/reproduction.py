"""Run the experiments; write the tables, the figures, the means of all runs, and from page.md a page of them."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from tkmeans.atomic import replacing
from tkmeans.datasets import SYNTHETIC
from tkmeans.paper import experiment_runs, figures, published_values
from tkmeans.paper.published_values import COLUMN_TITLES, LEAST_REPETITIONS, METHODS, Cells, Row, markdown, pipes

Hook = Callable[[Any], object]


def reproduce(what: str, out: Path, reps: int, start: Hook = int, tick: Hook = int, finish: Hook = str) -> list[Path]:
    """Run what is missing, write tables and figures, and return the files that were written.

    `start` gets the number of runs, `tick` how many more are done, `finish` how long it took. Runs are kept in
    ``out/runs.csv``: one whose line is taken out of it is done anew.
    """
    began = time.monotonic()
    names = [table for table in experiment_runs.TABLES if what in (table, "all")]
    keys = experiment_runs.wanted(names, reps)
    start(len(keys))
    results = experiment_runs.perform(keys, out / "runs.csv", tick=tick) if keys else {}
    out.mkdir(parents=True, exist_ok=True)
    cells = published_values.summarised(results)
    tables = {name: published_values.rows(name, cells) for name in names}
    written = []
    for name, rows in tables.items():
        title = published_values.publication()["titles"][name]
        texts = {"md": f"# {title}\n\n{agreement(rows)}\n\n{markdown(rows)}\n", "csv": published_values.as_csv(rows)}
        written += [_write(out / f"{name}.{suffix}", text) for suffix, text in texts.items()]
    if what in ("figure", "all"):
        written += figures.draw_all(tables.get("table1", []), out)
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
    tables = {name: published_values.rows(name, cells) for name in experiment_runs.TABLES}
    shown = {name: f"{agreement(rows)}\n\n{markdown(rows)}" for name, rows in tables.items()}
    text = Template(Path(__file__).with_name("page.md").read_text(encoding="utf-8"))
    return text.substitute(shown, figures=figures, summary=summary(cells), ci=summary(cells, "CI"))


def agreement(rows: list[Row]) -> str:
    """How many cells agree with the published ones; or, after a quick look, what that is."""
    counts = {mean.n for row in rows for column, mean in row.means.items() if column == "released"}
    if min(counts, default=0) >= LEAST_REPETITIONS:
        compared = [row for row in rows if row.rating()]
        cells = f"{agreeing(compared)} of {len(compared)} cells"
        return f"The released code gives the published mean within 3 standard errors in {cells}."
    look = f"{min(counts, default=0)} repetitions of every run, {published_values.REPETITIONS} in the paper"
    why = "Means of so few runs are not compared with the published ones, so there is no z."
    return f"**A quick look**: {look}. {why} A comparison takes at least --reps {LEAST_REPETITIONS}."


def agreeing(rows: Iterable[Row], *, rounding: bool = True) -> int:
    """In how many rows the released code gives the published mean."""
    return sum(row.rating(rounding=rounding) == "agrees" for row in rows)


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
