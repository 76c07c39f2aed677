"""The `plugrad` command: what is installed, what works, and what plugins add to it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point of the `plugrad` script."""
    for name in ("typer", "rich"):
        if find_spec(name) is None:
            sys.exit(f"The plugrad command needs {name}: pip install 'plugrad[cli]'")
    from plugrad.cli.app import build_app

    build_app()(prog_name="plugrad")
