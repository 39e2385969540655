"""The `tkmeans` command: results go to standard output, messages to standard error."""

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ImportError as missing:  # the library works without its command
    sys.exit(f"The tkmeans command needs {missing.name}: pip install 'tkmeans[cli,plots]'")

from tkmeans.cli.commands import app, main

__all__ = ["app", "main"]
