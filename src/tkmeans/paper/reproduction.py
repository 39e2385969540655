"""Run the paper's experiments and write the tables, figures and summary page."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tkmeans.atomic import replacing
from tkmeans.datasets import SYNTHETIC
from tkmeans.paper import experiment_runs, figures, published_values, reproduction_page


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
            _write(out / f"{name}.md", f"# {title}\n\n{published_values.markdown(rows)}\n"),
            _write(out / f"{name}.csv", published_values.as_csv(rows)),
            _write(out / f"{name}.html", published_values.html(rows, title)),
        ]
    if what in ("figure", "all"):
        written += figures.draw_all(built.get("table1", []), out)
    if what == "all":
        cost = seconds(run for key, run in results.items() if key.dataset in SYNTHETIC)
        written.append(_write(out.with_name(out.name + ".md"), reproduction_page.text(built, out.name, cost)))
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
