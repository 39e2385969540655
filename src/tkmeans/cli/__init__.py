"""The `tkmeans` command.

It exits with 0 if all went well, 1 if the data or a file are at fault, 2 if the command was not typed as it should be,
and 130 if it was interrupted. Results go to standard output, messages to standard error.
"""

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ImportError as missing:  # the library works without its command
    sys.exit(f"The tkmeans command needs {missing.name}: pip install 'tkmeans[cli,plots]'")

from tkmeans.cli.commands import app, main

__all__ = ["app", "main"]
