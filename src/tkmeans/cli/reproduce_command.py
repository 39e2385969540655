"""The command `tkmeans reproduce`: the paper's tables and figures."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tkmeans.cli import screen

QUICK_REPS = 2
What = StrEnum("What", ["table1", "table2", "table3", "figure", "all"])  # there is to reproduce


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
    from tkmeans.paper import reproduction

    with screen.progress_bar(transient=False) as progress:
        bar = progress.add_task("runs", total=None)
        written = reproduction.reproduce(
            what.value,
            out,
            reps=QUICK_REPS if quick else reps,
            redo=redo,
            start=lambda total: progress.update(bar, total=total),
            tick=lambda done: progress.advance(bar, done),
            finish=screen.err.print,
        )
    for path in written:
        if path.suffix == ".md" and path.parent == out:
            print(path.read_text(encoding="utf-8"))
    print(*written, sep="\n")
