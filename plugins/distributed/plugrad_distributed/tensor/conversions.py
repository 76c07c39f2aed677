"""Differentiable conversions from ranks' tensors to DTensors and back, and between placements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.placement import (
    Partial,
    Placements,
    Replicate,
    Shard,
    local_part,
)
from plugrad_distributed.tensor.redistribution import redistribute_local

__all__ = ["FromLocal", "Redistribute", "ToLocal", "checked", "placed", "resolved"]


def _of_gradient(placements: Placements) -> Placements:
    """The placement of a gradient: the gradient of a summand is the sum's gradient."""
    return tuple(Replicate() if isinstance(one, Partial) else one for one in placements)


def resolved(tensor: Tensor) -> ShardedArray:
    """The array of a DTensor; conjugate and negative views are resolved first."""
    if tensor.is_conj() or tensor.is_neg():
        with plugrad.no_grad():
            tensor = tensor.resolve_conj().resolve_neg()
    array: ShardedArray = tensor.array
    return array


def placed(tensor: Tensor, placements: Placements) -> Tensor:
    """A DTensor under other placements, outside any graph."""
    array = resolved(tensor)
    local = redistribute_local(array.local, array.mesh, array.placements, placements, array.shape)
    return as_tensor(ShardedArray(local, array.mesh, placements, array.shape, array.steps))


class FromLocal(plugrad.autograd.Function):
    """`DTensor.from_local`."""

    @staticmethod
    def forward(
        ctx: Any,
        local: Tensor,
        mesh: DeviceMesh,
        placements: Placements,
        shape: Sequence[int] | None,
        stride: Sequence[int] | None,
        grads: Placements | None,
    ) -> Tensor:
        ctx.grads = _of_gradient(placements) if grads is None else grads
        if shape is None:
            shape = _whole_shape(local, mesh, placements)
        else:
            expected = local_part(shape, mesh, placements)[0]
            if expected != tuple(local.shape):
                raise ValueError(
                    f"from_local(): local_tensor must be of shape {list(expected)} on this rank "
                    f"for shape {list(shape)} and {placements}, got {list(local.shape)}"
                )
        steps = _whole_steps(local, shape) if stride is None else tuple(stride)
        part = local.detach().view_as(local)
        return as_tensor(ShardedArray(part, mesh, placements, shape, steps))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        moved = grad if grad.placements == ctx.grads else Redistribute.apply(grad, ctx.grads, None)
        return ToLocal.apply(moved, None), None, None, None, None, None


def _whole_shape(local: Tensor, mesh: DeviceMesh, placements: Placements) -> tuple[int, ...]:
    sizes = list(local.shape)
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            sizes[placement.dim] *= mesh.size(mesh_dim)
    return tuple(sizes)


def _whole_steps(local: Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of the whole, with dimensions in the same memory order as in a part."""
    own = local.stride()
    order = sorted(range(local.ndim), key=lambda dim: -own[dim])
    steps = [1] * local.ndim
    step = 1
    for dim in reversed(order):
        steps[dim] = step
        step *= max(shape[dim], 1)
    return tuple(steps)


class ToLocal(plugrad.autograd.Function):
    """`DTensor.to_local`."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, grads: Placements | None) -> Tensor:
        array = resolved(tensor)
        ctx.mesh = array.mesh
        ctx.shape, ctx.steps = array.shape, array.steps
        ctx.grads = _of_gradient(array.placements) if grads is None else grads
        return array.local.view_as(array.local)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        made = FromLocal.apply(grad, ctx.mesh, ctx.grads, ctx.shape, ctx.steps, None)
        return made, None


class Redistribute(plugrad.autograd.Function):
    """`DTensor.redistribute`."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, placements: Placements, dtype: Any) -> Tensor:
        array: ShardedArray = tensor.array
        ctx.before = array.placements
        ctx.dtype, ctx.own = dtype, array.dtype
        if placements == array.placements:
            return tensor.view_as(tensor)
        return placed(tensor, placements)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.dtype is not None:
            grad = grad.to(ctx.dtype)
        # The gradient of a summand is the sum's gradient; a `Partial` gradient stays `Partial`.
        target = tuple(
            Replicate() if isinstance(one, Partial) and one != own else one
            for one, own in zip(ctx.before, grad.placements, strict=True)
        )
        return Redistribute.apply(grad, target, None).to(ctx.own), None, None


def checked(local: Tensor, mesh: DeviceMesh, placements: Placements, compare: bool) -> Tensor:
    """The local tensor, after comparing the ranks; replicated tensors become the first rank's.

    Raises:
        ValueError: shapes, dtypes or layouts differ between ranks.
    """
    from plugrad_distributed.distributed.objects import all_gather_object

    for mesh_dim, placement in enumerate(placements):
        group = mesh.get_group(mesh_dim)
        mine = (tuple(local.shape), str(local.dtype), local.requires_grad)
        found: list[Any] = [None] * group.size()
        all_gather_object(found, mine, group)
        if compare and len(set(found)) > 1:
            raise ValueError(
                "from_local(): run_check found inconsistent tensor shape, dtype or requires_grad "
                f"on the ranks {list(group.ranks)}: {found}"
            )
        if isinstance(placement, Replicate):
            local = plugrad.ops.distributed.broadcast(local, 0, group.name)
    return local
