"""`python -m plugrad` is the `plugrad` command."""

from __future__ import annotations

# Interpreted: it only calls.
from plugrad.cli import main

main()
