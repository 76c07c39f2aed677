"""A call in which Python handles signals and switches threads; interpreted on purpose.

Compiled loops do neither: without it, Ctrl-C would have to wait for a long backward pass to end.
"""

from __future__ import annotations

# Interpreted: that is its purpose.


def let_python_look() -> None:
    """Do nothing. Entering the interpreter handles pending signals and thread switches."""
