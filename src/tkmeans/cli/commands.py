"""The application: all commands, which import what they compute with when they run, so that help is quick."""

import signal
import sys
from typing import Annotated

import typer

from tkmeans import __version__
from tkmeans.cli.comparison_commands import demo, reproduce
from tkmeans.cli.fit_command import fit
from tkmeans.cli.options import command
from tkmeans.cli.overview_commands import report, select_k
from tkmeans.cli.row_commands import outliers, predict

app = typer.Typer(
    help="Robust k-means: clusters that outliers do not move.",
    epilog="Exit codes: 0 success, 1 a problem with the data or a file, 2 wrong usage, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
for each in (demo, fit, predict, select_k, outliers, report, reproduce):
    app.command(each.__name__.replace("_", "-"))(command(each))


def main() -> None:
    """Run the command."""
    if hasattr(signal, "SIGTERM"):
        # End like after Ctrl-C: files that were being written are removed.
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tkmeans {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
