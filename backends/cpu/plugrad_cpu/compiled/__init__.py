"""Loops that numba compiles, where NumPy has no fast function.

`pip install 'plugrad-cpu[numba]'` brings numba. Without it, and below the sizes that kernels state,
NumPy computes the same numbers. `cpu_capability = "default"` in the configuration switches them
off.

Compiled code is kept on disk: beside these modules, or in the user's cache where that folder cannot
be written to.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any, Final

from plugrad import config

# From so many elements on, compiled loops pay for loading numba, which takes a few tenths of a
# second.
ENOUGH: Final = 1 << 18

# Once a module is loaded, so many elements pay for a call.
SOME: Final = 1 << 15


def is_wanted() -> bool:
    """Whether kernels may use more than NumPy and SciPy: the configuration's `cpu_capability`."""
    return bool(config.get("cpu_capability") != "default")


@cache
def loops(name: str) -> Any:
    """The module of this package with a name; None if numba is not installed or is disabled."""
    if not is_wanted():
        return None
    try:
        return importlib.import_module(f"plugrad_cpu.compiled.{name}")
    except ImportError:
        return None


def loops_for(name: str, count: int) -> Any:
    """The module, if there are enough elements to be worth it; it is not loaded for fewer than
    `ENOUGH`."""
    if count < SOME or (count < ENOUGH and f"{__name__}.{name}" not in sys.modules):
        return None
    return loops(name)
