"""`tkmeans reproduce`: the paper's tables and figures, rebuilt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tkmeans.atomic import replacing
from tkmeans.datasets import SYNTHETIC
from tkmeans.paper import agreement, figures, protocol, tables
from tkmeans.paper.page import Page

_TITLES = {
    "table1": "Table 1: ARI on synthetic sets",
    "table2": "Table 2: MSE and W/B on real sets",
    "table3": "Table 3: running cost on iris",
}


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
    names = [what] if what in protocol.TABLES else list(protocol.TABLES) if what == "all" else []
    path = out / "runs.csv"
    if redo is not None and path.exists():
        protocol.forget(path, redo)
    keys = protocol.wanted(names, reps)
    start(len(keys))
    results = protocol.perform(keys, path, n_jobs=n_jobs, tick=tick) if keys else {}
    written = []
    built = {name: agreement.rows(name, results) for name in names}
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in built.items():
        for suffix, text in (
            ("md", f"# {_TITLES[name]}\n\n{tables.markdown(rows)}\n"),
            ("csv", tables.as_csv(rows)),
            ("html", tables.html(rows, _TITLES[name])),
        ):
            written.append(out / f"{name}.{suffix}")
            _write(written[-1], text)
    if what in ("figure", "all"):
        written += figures.draw_all(built.get("table1", []), out)
    if what == "all":
        page = out.with_name(out.name + ".md")
        cost = seconds(key_and_run for key_and_run in results.items() if key_and_run[0].dataset in SYNTHETIC)
        text = Page(built["table1"], built["table2"], built["table3"], out.name, cost).text()
        _write(page, text)
        written.append(page)
    finish(
        f"{time.monotonic() - began:.0f} s in all; the {len(results)} runs, earlier ones included, "
        f"took {seconds(results.items()):.0f} s of one core"
    )
    return written


def seconds(runs: Iterable[tuple[protocol.Key, dict[str, float]]]) -> float:
    """What these runs took of one core."""
    return sum(run["seconds"] for _, run in runs)


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
