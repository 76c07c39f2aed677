"""Devices for the results of programs without array arguments; shapes that depend on values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax

from plugrad_jax.devices import all_devices
from plugrad_jax.kernels.programs import Array, Kernel
from plugrad_jax.precision import is_tracing
from plugrad_jax.sharding.mixing import SPREAD


def placed_program(*static: int) -> Callable[[Kernel], Kernel]:
    """`compiled` for a kernel without an array to determine the device: its last argument is the
    device's index, which the wrapped function itself does not get."""

    def decorate(kernel: Kernel) -> Kernel:
        on_device: dict[int, Kernel] = {}
        # A traced program may run on several devices and defines its own placement.
        anywhere = jax.jit(kernel, static_argnums=static, inline=True)

        @functools.wraps(kernel)
        def placed(*args: Any) -> Any:
            if SPREAD.used and is_tracing():
                return anywhere(*args[:-1])
            index = args[-1]
            program = on_device.get(index)
            if program is None:
                program = jax.jit(
                    kernel, static_argnums=static, out_shardings=sharding(index), inline=True
                )
                on_device[index] = program
            return program(*args[:-1])

        return placed

    return decorate


@functools.cache
def sharding(index: int) -> Any:
    """Where arrays of device `index` live."""
    return jax.sharding.SingleDeviceSharding(all_devices()[index])


@placed_program()
def placed(values: Any) -> Array:
    """Host values on a device."""
    return values


TRACED_SHAPE: Final = (
    "plugrad::{operator}: the shape of its result depends on the values of its argument, which "
    "are not known while jax.jit traces; {instead}"
)


def require_values(array: Array, operator: str, instead: str) -> None:
    """Raise JAX's error if an array is being traced where its values decide on a shape.

    Args:
        instead: what to write instead, as the end of the message.
    """
    if isinstance(array, jax.core.Tracer):
        message = TRACED_SHAPE.format(operator=operator, instead=instead)
        raise jax.errors.ConcretizationTypeError(array, message)
