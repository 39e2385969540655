"""The `tkmeans` command: results go to standard output, messages to standard error."""

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401

    from tkmeans.cli.commands import app, main
except KeyboardInterrupt:
    sys.exit(130)
except ImportError as missing:  # the library works without its command
    if missing.name not in ("rich", "typer"):
        raise
    sys.exit(f"The tkmeans command needs {missing.name}: pip install 'tkmeans[cli,plots]'")

__all__ = ["app", "main"]
