"""A call in which Python handles signals and switches threads; interpreted on purpose.

Compiled loops do neither: without it, Ctrl-C would have to wait for a long backward pass to end.
"""

from __future__ import annotations

# Interpreted: being interpreted is what it is for.


def let_python_look() -> None:
    """Do nothing, in the interpreter, which handles what is pending whenever it is entered."""
