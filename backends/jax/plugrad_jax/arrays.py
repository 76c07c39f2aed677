"""Converts JAX arrays to tensors and back without a copy, also inside `jax.jit`, `grad` and
`vmap`."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import NamedSharding

import plugrad
from plugrad.plugins.tracing import listener, resolved, tensor_of
from plugrad_jax.devices import all_devices, device, device_of
from plugrad_jax.sharding.beginning import begin
from plugrad_jax.sharding.placing import is_wide, place, sharding_by_xla


def from_jax(array: Any, *, requires_grad: bool = False) -> Any:
    """A tensor with the elements of a JAX array, which may be a tracer of `jax.jit` and the like.

    Writing to the tensor leaves the array as it is.

    Args:
        array: on one device, or spread over several.
        requires_grad: whether operations on the tensor are recorded.

    Raises:
        TypeError: it is not an array of JAX, or of a dtype that plugrad does not have.
        ValueError: it is on no device of this process.

    >>> import jax.numpy, plugrad_jax
    >>> plugrad_jax.from_jax(jax.numpy.ones(2)).tolist()
    [1.0, 1.0]
    """
    if not isinstance(array, jax.Array):
        raise TypeError(f"from_jax(): expected a jax.Array, got {type(array).__name__}")
    dtype = getattr(plugrad, array.dtype.name, None)
    if not isinstance(dtype, plugrad.dtype):
        raise TypeError(f"from_jax(): plugrad has no dtype {array.dtype.name}")
    if isinstance(array, jax.core.Tracer):
        # Tracers have no device; a captured step has one.
        where = getattr(listener(), "place", None) or device(all_devices()[0])
    else:
        if is_wide(array):
            begin()
            if isinstance(array.sharding, NamedSharding):
                mesh: Any = array.sharding.mesh
                array = place(array, sharding_by_xla(mesh, array.sharding.spec))
        where = device_of(array)
    made: Any = tensor_of(array, dtype, where)
    return made.requires_grad_() if requires_grad else made


def to_jax(tensor: Any) -> Any:
    """The JAX array with a tensor's elements, as they are now.

    Raises:
        TypeError: it is not a tensor, or on no device of JAX.

    >>> import plugrad, plugrad_jax
    >>> plugrad_jax.to_jax(plugrad.ones(2, device="jax")).sum().item()
    2.0
    """
    if not isinstance(tensor, plugrad.Tensor):
        raise TypeError(f"to_jax(): expected a Tensor, got {type(tensor).__name__}")
    if tensor.device.type != "jax":
        raise TypeError(f"to_jax(): the tensor is on device {tensor.device}: move it first")
    watching = listener()
    if watching is not None:
        watching.note(tensor)
    inside: Any = tensor
    return resolved(inside).array
