"""Refuses sub-interpreters, before anything is imported that would harm the main one.

NumPy's extension modules, and the core's when it is compiled, exist once per process. On Python
3.11, NumPy that is imported in a sub-interpreter first cannot be imported in the main one any more;
later versions refuse to load such modules where interpreters have a GIL of their own.
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
