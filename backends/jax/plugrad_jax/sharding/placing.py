"""Finds where arrays are: on one device, on several of this process, or of several processes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.core
import numpy as np
from jax.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)

from plugrad_jax.precision import in_64_bits

Array = Any

# Parts of JAX have no types.
_jax: Final[Any] = jax
_spec: Final[Any] = PartitionSpec


def spec_of(*entries: Any) -> PartitionSpec:
    """A `PartitionSpec` from its entries."""
    made: PartitionSpec = _spec(*entries)
    return made


EVERYWHERE: Final = spec_of()


def is_wide(array: Array) -> bool:
    """Whether an array is on a mesh, even of one device; unknown for a tracer."""
    if isinstance(array, jax.core.Tracer):
        return False
    sharding = array.sharding
    if type(sharding) is SingleDeviceSharding:
        return False
    return isinstance(sharding, NamedSharding) or len(sharding.device_set) > 1


def sharding_by_xla(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    """A sharding that XLA propagates. JAX has a second kind of axes, which requires the sharding of
    each operator's result; plugrad's operators do not specify it."""
    if any(kind != AxisType.Auto for kind in mesh.axis_types):
        mesh = Mesh(mesh.devices, mesh.axis_names)
    return NamedSharding(mesh, spec)


def mesh_of(array: Array) -> Mesh:
    """The mesh that an array is on; one of a single axis if its sharding names none."""
    sharding = array.sharding
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    found = sorted(sharding.device_set, key=lambda device: device.id)
    return Mesh(np.array(found), ("devices",))


@in_64_bits
def place(array: Array, sharding: Sharding) -> Array:
    """An array of JAX or NumPy in another place; unchanged if it is there already.

    If devices of several processes are involved, all of these must call it. An array that each
    process has separately is assumed to be the same in all.
    """
    if isinstance(array, jax.core.Tracer):
        return constrained(array, sharding)
    if isinstance(array, np.ndarray):
        return _from_host(array, sharding)
    if array.sharding == sharding:
        return array
    if not array.is_fully_addressable:
        if not sharding.is_fully_addressable:
            return _identity(sharding)(array)
        if not array.is_fully_replicated:
            array = _identity(NamedSharding(mesh_of(array), EVERYWHERE))(array)
        return jax.device_put(array.addressable_data(0), sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return _from_host(np.asarray(array), sharding)


def constrained(array: Array, sharding: Sharding) -> Array:
    """An array of a traced program, with a sharding constraint for XLA."""
    if isinstance(sharding, NamedSharding):
        return _jax.lax.with_sharding_constraint(array, sharding)
    return array


def _from_host(host: np.ndarray[Any, Any], sharding: Sharding) -> Array:
    if sharding.is_fully_addressable:
        # JAX reads the memory later: it gets a copy that is never written to.
        return jax.device_put(np.array(host), sharding)
    return jax.make_array_from_callback(host.shape, sharding, lambda part: np.array(host[part]))


@functools.cache
def _identity(sharding: Sharding) -> Callable[[Array], Array]:
    """The program that moves arrays between processes."""
    program: Callable[[Array], Array] = jax.jit(lambda array: array, out_shardings=sharding)
    return program


def is_local(array: Array) -> bool:
    """Whether this process has all elements of an array."""
    return bool(array.is_fully_addressable or array.is_fully_replicated)


def host_of(array: Array) -> np.ndarray[Any, Any]:
    """An array's elements in host memory; waits for them.

    Raises:
        RuntimeError: this process has only some of them.
    """
    traced = isinstance(array, jax.core.Tracer)  # JAX explains the error
    if traced or is_local(array):
        return np.asarray(array)
    raise RuntimeError(
        "this process has only some elements of a tensor that is spread over "
        f"{len(array.sharding.device_set)} devices of several processes: get them all with "
        "plugrad_jax.replicate(tensor), called in every process, and read that"
    )


def beside(values: Any, array: Array) -> Array:
    """Values of the host where an array is, on each of its devices."""
    sharding = array.sharding
    if is_wide(array):
        sharding = NamedSharding(mesh_of(array), EVERYWHERE)
    return place(np.asarray(values), sharding)


def part_here(array: Array, device: Any) -> Array:
    """An array that each device of the mesh has whole, on one device."""
    for shard in array.addressable_shards:
        if shard.device == device:
            return shard.data
    return jax.device_put(array.addressable_data(0), device)
