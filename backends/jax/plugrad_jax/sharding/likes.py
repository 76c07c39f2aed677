"""`zeros_like` and similar functions: their results are sharded like their argument.

They are registered when the first array is sharded, so that other programs do not pay for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.core
import jax.numpy as jnp

import plugrad
from plugrad.library import Library
from plugrad.plugins.tracing import listener, resolved, tensor_of
from plugrad_jax.kernels.creation import in_dtype
from plugrad_jax.precision import in_64_bits
from plugrad_jax.sharding.placing import is_wide, place

Array = Any

_libraries: Final[list[Library]] = []


def register() -> None:
    """Let operators that make a tensor like another one look where that is."""
    library = Library("plugrad", "IMPL")
    for name, number in {"empty": 0, "zeros": 0, "ones": 1}.items():
        library.impl(f"{name}_like", functools.partial(_constant_like, number), "Jax", raw=False)
    library.impl("full_like", _full_like, "Jax", raw=False)
    for name, draw in {"rand": plugrad.rand, "randn": plugrad.randn}.items():
        library.impl(f"{name}_like", functools.partial(_drawn_like, draw), "Jax", raw=False)
    library.impl("randint_like", _randint_like, "Jax", raw=False)
    library.impl("randint_like.low_dtype", _randint_like, "Jax", raw=False)
    _libraries.append(library)


def sharding_like(tensor: Any, device: Any) -> Any:
    """Where a tensor's elements are, if it is spread and the device is its own; else None."""
    if device is not None and plugrad.device(device) != tensor.device:
        return None
    array = resolved(tensor).array
    if isinstance(array, jax.core.Tracer):
        known = getattr(listener(), "shardings", None)
        return None if known is None else known.get(id(array))
    return array.sharding if isinstance(array, jax.Array) and is_wide(array) else None


def _constant_like(number: int, self: Any, **options: Any) -> Any:
    return _full_like(self, number, **options)


def _full_like(
    self: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None
) -> Any:
    dtype = dtype or self.dtype
    sharding = sharding_like(self, device)
    made: Any
    if sharding is None:
        made = plugrad.full(self.shape, fill_value, dtype=dtype, device=device or self.device)
    else:
        plugrad.full((), fill_value, dtype=dtype, device="cpu")  # raises if it does not fit
        native = jnp.dtype(dtype.numpy)
        array = in_64_bits(_program(sharding))(tuple(self.shape), fill_value, native)
        made = tensor_of(array, dtype, self.device)
    return _in_format(made, memory_format)


@functools.cache
def _program(sharding: Any) -> Callable[..., Array]:
    """`full` for arrays of a sharding; each device makes its part."""

    def full(size: tuple[int, ...], value: Any, dtype: Any) -> Array:
        return jnp.broadcast_to(in_dtype(value, dtype), size)

    program: Callable[..., Array] = jax.jit(
        full, static_argnums=(0, 2), out_shardings=sharding, inline=True
    )
    return program


def _drawn_like(
    draw: Callable[..., Any],
    self: Any,
    *sizes: Any,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    memory_format: Any = None,
) -> Any:
    made = draw(
        *sizes,
        self.shape,
        generator=generator,
        dtype=dtype or self.dtype,
        device=device or self.device,
    )
    sharding = sharding_like(self, device)
    if sharding is not None:
        made = tensor_of(place(made.array, sharding), made.dtype, made.device)
    return _in_format(made, memory_format)


def _randint_like(self: Any, *bounds: Any, **options: Any) -> Any:
    low, high = (0, *bounds)[-2:]
    return _drawn_like(functools.partial(plugrad.randint, low, high), self, **options)


def _in_format(made: Any, memory_format: Any) -> Any:
    if memory_format is None or memory_format is plugrad.preserve_format:
        return made
    return made.contiguous(memory_format=memory_format)
