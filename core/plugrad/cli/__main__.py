"""`python -m plugrad.cli` is the `plugrad` command."""

from __future__ import annotations

from plugrad.cli import main

main()
