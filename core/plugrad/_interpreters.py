"""Refuses sub-interpreters before they import anything that would harm the main interpreter.

NumPy's extension modules, and the core's when it is compiled, exist once per process. On Python
3.11, if a sub-interpreter imports NumPy first, the main one can no longer import it. Later versions
refuse to load such modules where each interpreter has its own GIL.
"""

from __future__ import annotations

# Interpreted: no compiled module may be loaded in a sub-interpreter.
import _thread
import importlib


def is_main_interpreter() -> bool:
    """Whether the calling code runs in the process' first interpreter; True if it has no others."""
    asked = getattr(_thread, "_is_main_interpreter", None)  # from Python 3.13 on
    if asked is not None:
        return bool(asked())
    try:
        interpreters = importlib.import_module("_xxsubinterpreters")
    except ImportError:
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


if not is_main_interpreter():
    raise ImportError(
        "plugrad cannot be imported in a sub-interpreter, since NumPy and the compiled core exist "
        "once per process: use threads, which plugrad supports, or processes"
    )
