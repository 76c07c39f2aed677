"""Checks of values that indices and probabilities must have, which are off unless asked for.

To look at an array's elements is to wait until they are computed, and impossible while `jax.jit`
traces. So it is not done: an index out of range reads nan, or the least integer, and writes
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


@jax.jit
def _bounds(index: Any) -> tuple[Any, Any]:
    return index.min(), index.max()


def check_range(
    index: Any,
    size: int,
    dim: int,
    error: type[Exception] = RuntimeError,
    message: str = "",
    *,
    wrap: bool = False,
) -> None:
    """Raise for an index outside of [0, size), or of [-size, size) with `wrap`.

    Nothing happens unless values are checked, nor while the index is being traced.

    Args:
        message: with {} for the index; by default that of dimension `dim`.
    """
    if not _option.on or isinstance(index, jax.core.Tracer) or index.size == 0:
        return
    least, most = (int(bound) for bound in _bounds(index))
    too_low = least < (-size if wrap else 0)
    if too_low or most >= size:
        outside = least if too_low else most
        words = message or f"index {{}} is out of bounds for dimension {dim} with size {size}"
        raise error(words.format(outside))
