"""Operators on arrays of several devices: moves operands together, and keeps writes in place.

XLA computes on the devices that all operands have in common. If operands are on different devices,
JAX refuses; then those on a single device are copied to all devices of the others. Until an array
is sharded, this costs nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final

import jax
import jax.core
from jax.sharding import NamedSharding

from plugrad_jax.sharding.placing import EVERYWHERE, is_wide, mesh_of, place

Array = Any

_REFUSED: Final = "incompatible devices"
# The beginning of errors of XLA's compiler, except for errors about memory.
_UNDIVIDED: Final = ("INVALID_ARGUMENT", "UNIMPLEMENTED", "INTERNAL")


class _Spread:
    """Whether an array has been spread in this process."""

    used = False


SPREAD: Final = _Spread()


def is_refusal(error: Exception) -> bool:
    """Whether JAX's error means that arrays are on different devices."""
    return isinstance(error, ValueError) and _REFUSED in str(error)


def is_of_partitioning(error: Exception) -> bool:
    """Whether XLA could not divide a program among devices."""
    return isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith(_UNDIVIDED)


def run_again(kernel: Callable[..., Any], arrays: tuple[Any, ...], error: Exception) -> Any:
    """Run a kernel that was refused on arrays that are on the same devices, and one that XLA could
    not divide on whole arrays; raise other errors."""
    if not SPREAD.used:
        raise error
    divided = is_of_partitioning(error)
    if not divided and not is_refusal(error):
        raise error
    widest = widest_of(_arrays_in(arrays))
    if widest is None:
        raise error
    mesh = mesh_of(widest)
    if not divided:
        return kernel(*[_mapped(lambda array: joined(array, mesh), value) for value in arrays])
    warnings.warn(
        f"XLA cannot divide a kernel, {getattr(kernel, '__name__', kernel)}, among the devices of "
        f"{shown(widest.sharding)}: each of them computes all of it. XLA says: "
        f"{str(error).partition(chr(10))[0]}",
        stacklevel=2,
    )
    everywhere = NamedSharding(mesh, EVERYWHERE)
    return kernel(*[_mapped(lambda array: place(array, everywhere), value) for value in arrays])


def widest_of(arrays: Iterable[Array]) -> Array | None:
    """The array on most devices; None if none is on a mesh.

    Raises:
        RuntimeError: there are arrays on several devices that are not the same ones.
    """
    found = None
    for array in arrays:
        if not is_wide(array):
            continue
        if found is None or len(found.sharding.device_set) == 1:
            found = array
            continue
        devices = array.sharding.device_set
        if len(devices) > 1 and devices != found.sharding.device_set:
            raise RuntimeError(
                "tensors are spread over different devices, one over "
                f"{shown(found.sharding)} and one over {shown(array.sharding)}: bring one to "
                "the mesh of the other with plugrad_jax.shard or plugrad_jax.replicate"
            )
    return found


def joined(array: Array, mesh: Any) -> Array:
    """An array as it is if it is on a mesh's devices; else on each of them."""
    devices = mesh.devices
    if len(array.sharding.device_set) == devices.size or not array.committed:
        return array
    return place(array, NamedSharding(mesh, EVERYWHERE))


def keep(array: Array, former: Array) -> Array:
    """An array where a former one is, which it replaces in a tensor: see `set_placement`.

    What was on a single device goes to where the numbers come from.
    """
    if not isinstance(former, jax.Array) or not isinstance(array, jax.Array):
        return array
    if isinstance(former, jax.core.Tracer) or isinstance(array, jax.core.Tracer):
        return array
    here = former.sharding
    if array.sharding is here or array.shape != former.shape or not is_wide(former):
        return array
    return place(array, here)


def shown(sharding: Any) -> str:
    """A sharding in words."""
    if isinstance(sharding, NamedSharding):
        sizes = ", ".join(f"{name}={size}" for name, size in sharding.mesh.shape.items())
        return f"a mesh of {sizes}"
    return f"{len(sharding.device_set)} devices"


def _arrays_in(values: Iterable[Any]) -> list[Array]:
    found: list[Array] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += _arrays_in(value)
        elif isinstance(value, jax.Array):
            found.append(value)
    return found


def _mapped(function: Callable[[Array], Array], value: Any) -> Any:
    """An argument of a kernel with other arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped(function, item) for item in value])
    if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
        return function(value)
    return value
