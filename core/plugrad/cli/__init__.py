"""The `plugrad` command: what is installed, what works, and what plugins add to it."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point of the `plugrad` script."""
    try:
        import rich  # noqa: F401  # the tables need it
        import typer  # noqa: F401  # the commands need it
    except ImportError as error:
        sys.exit(f"The plugrad command needs {error.name}: pip install 'plugrad[cli]'")
    from plugrad.cli.app import build_app

    build_app()(prog_name="plugrad")
