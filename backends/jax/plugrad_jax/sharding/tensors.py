"""Tensors on a mesh of devices: moving them there, finding where they are, and moving them back."""

from __future__ import annotations

from typing import Any

import jax
import jax.core
from jax.sharding import NamedSharding, SingleDeviceSharding

import plugrad
from plugrad.plugins.tracing import listener, resolved, tensor_of
from plugrad_jax.devices import all_devices, device_of
from plugrad_jax.precision import is_tracing
from plugrad_jax.sharding.beginning import begin
from plugrad_jax.sharding.placing import EVERYWHERE, constrained, mesh_of, place
from plugrad_jax.sharding.specs import named_sharding

_Function: Any = plugrad.autograd.Function


class Placed(_Function):  # type: ignore[misc]  # the public type of Function is Any here
    """A tensor's elements somewhere else. Its gradient goes back to where the tensor is."""

    @staticmethod
    def forward(tensor: Any, sharding: Any, device: Any) -> Any:
        if tensor.device.type == "jax":
            array = resolved(tensor).array
        else:
            array = tensor.detach().cpu().resolve_conj().resolve_neg().numpy()
        move = constrained if is_tracing() else place
        return tensor_of(move(array, sharding), tensor.dtype, device)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        tensor, ctx.sharding, ctx.device = inputs
        ctx.former_device = tensor.device
        ctx.former = None
        if tensor.device.type == "jax" and not isinstance(tensor.array, jax.core.Tracer):
            ctx.former = tensor.array.sharding

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.former is not None:
            grad = Placed.apply(grad, ctx.former, ctx.former_device)
        elif ctx.former_device != grad.device:
            grad = unshard(grad).to(ctx.former_device)
        return grad, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return Placed.apply(tangent, ctx.sharding, ctx.device)


def _placed(tensor: Any, sharding: Any) -> Any:
    begin()
    watching = listener()
    if watching is not None:
        watching.note(tensor)
        if hasattr(watching, "mesh") and isinstance(sharding, NamedSharding):
            watching.mesh = sharding.mesh
    return Placed.apply(tensor, sharding, device_of(sharding))


def _check(tensor: Any, who: str) -> None:
    if not isinstance(tensor, plugrad.Tensor):
        raise TypeError(f"{who}: expected a Tensor, got {type(tensor).__name__}")


def shard(tensor: Any, mesh: Any, spec: Any = None) -> Any:
    """A tensor with the same elements, split over a mesh of devices.

    Operators on it run on all of the devices, as XLA partitions them. The result is part of the
    graph of `tensor`: gradients go back to the place of `tensor`. Its device is this process's
    first device in the mesh. In a captured step, it is a sharding constraint for XLA.

    Args:
        tensor: on any device.
        mesh: a `jax.sharding.Mesh`; or a `NamedSharding`, which needs no `spec`.
        spec: for each dimension the axis of the mesh that it is split over, a tuple of axes, or
            None for none: a `PartitionSpec`, a tuple, or a `NamedSharding`. Dimensions that are
            left out are on every device.

    Raises:
        TypeError: one of them is something else.
        ValueError: the spec does not fit the tensor: an axis that the mesh does not have, more
            dimensions than there are, or a size that cannot be divided.

    >>> import jax, plugrad, plugrad_jax
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> x = plugrad_jax.shard(plugrad.ones(4, 2), mesh, ("data", None))
    >>> x.shape, tuple(plugrad_jax.sharding_of(x).spec)
    (plugrad.Size([4, 2]), ('data', None))
    """
    _check(tensor, "shard()")
    return _placed(tensor, named_sharding(mesh, spec, tensor.shape))


def replicate(tensor: Any, mesh: Any = None) -> Any:
    """A tensor with all of its elements on each device of a mesh.

    With several processes it is how each of them gets to see all elements of a tensor: all have to
    call it.

    Args:
        tensor: on any device.
        mesh: by default the one that the tensor is on.

    Raises:
        TypeError: one of them is something else.
        ValueError: there is no mesh, as the tensor is on a single device.

    >>> import jax, plugrad, plugrad_jax
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> plugrad_jax.sharding_of(plugrad_jax.replicate(plugrad.ones(4), mesh)).is_fully_replicated
    True
    """
    _check(tensor, "replicate()")
    if mesh is None:
        if isinstance(sharding_of(tensor), SingleDeviceSharding):
            raise ValueError("replicate(): the tensor is on a single device: give a mesh")
        mesh = mesh_of(resolved(tensor).array)
    return _placed(tensor, named_sharding(mesh, EVERYWHERE, tensor.shape, "replicate()"))


def unshard(tensor: Any) -> Any:
    """A tensor with all of its elements on its one device, `tensor.device`; part of its graph.

    With several processes each gets its own tensor, and all must call the function.

    Raises:
        TypeError: it is not a tensor, or on no device of JAX.
        RuntimeError: it is called in a captured step.

    >>> import jax, plugrad, plugrad_jax
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> x = plugrad_jax.shard(plugrad.ones(4), mesh, ("data",))
    >>> len(plugrad_jax.sharding_of(plugrad_jax.unshard(x)).device_set)
    1
    """
    sharding_of(tensor)
    device = all_devices()[tensor.device.index or 0]
    return _placed(tensor, SingleDeviceSharding(device))


def sharding_of(tensor: Any) -> Any:
    """The sharding of a tensor's elements, as JAX's object.

    Returns:
        a `NamedSharding` with `mesh` and `spec`; of a tensor on one device a
        `SingleDeviceSharding`.

    Raises:
        TypeError: it is not a tensor, or on no device of JAX.
        RuntimeError: it is called in a captured step, where XLA decides later.

    >>> import jax, plugrad, plugrad_jax
    >>> sharding = plugrad_jax.sharding_of(plugrad.ones(2, device="jax"))
    >>> sharding.device_set == {jax.devices()[0]}
    True
    """
    _check(tensor, "sharding_of()")
    if tensor.device.type != "jax":
        raise TypeError(f"sharding_of(): the tensor is on device {tensor.device}: move it first")
    array = resolved(tensor).array
    if isinstance(array, jax.core.Tracer):
        raise RuntimeError("sharding_of(): the tensor is traced, and XLA decides where it is later")
    return array.sharding
