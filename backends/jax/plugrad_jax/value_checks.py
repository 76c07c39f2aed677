"""Checks of values that indices and probabilities must have, which are off unless asked for.

To look at an array's elements is to wait until they are computed, and impossible while `jax.jit`
traces. So it is not done: an index out of range reads nan, or the greatest integer, and writes
nothing, as in JAX. With the option `check_values` under `[backends.jax]`, operators raise what
PyTorch raises on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax


class _Option:
    """Whether values are checked."""

    def __init__(self) -> None:
        self.on = False


_option: Final = _Option()
_compiled: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def set_value_checks(on: object) -> None:
    """Check values from now on, or no longer; TypeError for anything but a bool."""
    if not isinstance(on, bool):
        raise TypeError(f"check_values must be true or false, got {on!r}")
    _option.on = on


def checks_values() -> bool:
    """Whether values are checked."""
    return _option.on


def check_values(
    holds: Callable[..., Any], error: type[Exception], message: str, *arrays: Any
) -> None:
    """Raise an error unless `holds(*arrays)`, a function to compile, gives true.

    Nothing happens unless values are checked, nor while an array is being traced.
    """
    if not _option.on or any(isinstance(array, jax.core.Tracer) for array in arrays):
        return
    compiled = _compiled.setdefault(holds, jax.jit(holds))
    if not compiled(*arrays):
        raise error(message)
