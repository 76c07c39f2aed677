"""Indices out of range: found by the program that reads or writes at them, raised later."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.programs import Array

# Whether there is one, and the first.
Outside = tuple[Array, Array]


def outside(index: Array, size: int, *, wrap: bool = False) -> Outside:
    """Whether an index is outside of [0, size), or of [-size, size) with `wrap`, and the first."""
    if index.size == 0:
        return jnp.zeros((), jnp.bool_), jnp.zeros((), index.dtype)
    flat = index.reshape(-1)
    wrong = (flat >= size) | (flat < (-size if wrap else 0))
    return wrong.any(), flat[jnp.argmax(wrong)]


def raise_outside(
    found: Outside, message: str, error: Callable[[str], Exception] = RuntimeError
) -> None:
    """Have an error raised later if `outside` has found one; {} in the message is the index."""
    raise_later(found[0], lambda index: error(message.format(index)), found[1])
