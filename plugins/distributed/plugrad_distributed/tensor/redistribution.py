"""Changes of placement, by the collective that each needs. Nothing here is recorded for
autograd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.placement import (
    Partial,
    Placement,
    Placements,
    Replicate,
    Shard,
    local_part,
    part_of,
)

__all__ = ["cost_of", "redistribute_local"]


def redistribute_local(
    local: Tensor,
    mesh: DeviceMesh,
    current: Placements,
    target: Placements,
    shape: Sequence[int],
) -> Tensor:
    """This rank's part under other placements; the same tensor if they do not change.

    Dimensions of the mesh that shard the same dimension of the tensor are nested, later ones inside
    earlier ones: inner ones are gathered before an outer one changes.

    Args:
        shape: the whole tensor's shape.
    """
    if current == target:
        return local
    now = list(current)
    for mesh_dim in range(mesh.ndim - 1, -1, -1):
        placement = now[mesh_dim]
        if isinstance(placement, Shard) and _is_around(now, target, mesh_dim, placement.dim):
            local = _change(local, mesh, now, mesh_dim, Replicate(), shape)
            now[mesh_dim] = Replicate()
    for mesh_dim in range(mesh.ndim):
        if now[mesh_dim] != target[mesh_dim]:
            local = _change(local, mesh, now, mesh_dim, target[mesh_dim], shape)
            now[mesh_dim] = target[mesh_dim]
    return local


def _is_around(
    now: Sequence[Placement], target: Sequence[Placement], mesh_dim: int, dim: int
) -> bool:
    """Whether an earlier dimension of the mesh changes its sharding of a dimension of the
    tensor."""
    for earlier in range(mesh_dim):
        before, after = now[earlier], target[earlier]
        if before != after and (before.is_shard(dim) or after.is_shard(dim)):
            return True
    return False


def _length(
    shape: Sequence[int], mesh: DeviceMesh, now: Sequence[Placement], mesh_dim: int, dim: int
) -> int:
    """The length along `dim` that the ranks along `mesh_dim` share."""
    outer = (*now[:mesh_dim], *(Replicate() for _ in range(mesh_dim, mesh.ndim)))
    return local_part(shape, mesh, outer)[0][dim]


def _change(
    local: Tensor,
    mesh: DeviceMesh,
    now: Sequence[Placement],
    mesh_dim: int,
    after: Placement,
    shape: Sequence[int],
) -> Tensor:
    """Change one placement to another, along one dimension of the mesh."""
    if mesh.size(mesh_dim) == 1:
        return local
    before = now[mesh_dim]
    if isinstance(before, Shard):
        length = _length(shape, mesh, now, mesh_dim, before.dim)
        if isinstance(after, Shard):
            other = _length(shape, mesh, now, mesh_dim, after.dim)
            return _exchange(local, mesh, mesh_dim, before.dim, after.dim, length, other)
        whole = _gather(local, mesh, mesh_dim, before.dim, length)
        return _split_up(whole, mesh, mesh_dim, after)
    if isinstance(before, Partial):
        if isinstance(after, Shard):
            return _reduce_scatter(local, mesh, mesh_dim, after.dim, before.reduce_op)
        group = mesh.get_group(mesh_dim)
        whole = plugrad.ops.distributed.all_reduce(local, before.reduce_op, group.name)
        return _split_up(whole, mesh, mesh_dim, after)
    if isinstance(after, Shard):
        return _own_part(local, mesh, mesh_dim, after.dim)
    return _split_up(local, mesh, mesh_dim, after)


def _split_up(whole: Tensor, mesh: DeviceMesh, mesh_dim: int, after: Placement) -> Tensor:
    """This rank's contribution, which gives the whole after a reduction; for `Replicate` the whole
    itself."""
    if not isinstance(after, Partial) or after.reduce_op in ("avg", "max", "min"):
        return whole
    if mesh.get_local_rank(mesh_dim) == 0:
        return whole
    made: Tensor = plugrad.full_like(whole, 0 if after.reduce_op == "sum" else 1)
    return made


def _own_part(whole: Tensor, mesh: DeviceMesh, mesh_dim: int, dim: int) -> Tensor:
    """A part of a tensor that every rank has, copied, so that the whole can be freed."""
    size, start = part_of(whole.shape[dim], mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim))
    found: Tensor = whole.narrow(dim, start, size).clone(memory_format=plugrad.contiguous_format)
    return found


def _padded(tensor: Tensor, dim: int, length: int) -> Tensor:
    missing = length - tensor.shape[dim]
    if missing == 0:
        return tensor
    size = list(tensor.shape)
    size[dim] = missing
    joined: Tensor = plugrad.cat([tensor, tensor.new_zeros(size)], dim)
    return joined


def _gather(local: Tensor, mesh: DeviceMesh, mesh_dim: int, dim: int, length: int) -> Tensor:
    """The parts of all ranks, concatenated. All but the last parts have the same length, so padding
    is only at the end."""
    each = part_of(length, mesh.size(mesh_dim), 0)[0]
    group = mesh.get_group(mesh_dim)
    whole: Tensor = plugrad.ops.distributed.all_gather(_padded(local, dim, each), dim, group.name)
    return whole.narrow(dim, 0, length).contiguous()


def _reduce_scatter(
    local: Tensor, mesh: DeviceMesh, mesh_dim: int, dim: int, reduce_op: str
) -> Tensor:
    count = mesh.size(mesh_dim)
    length = local.shape[dim]
    each = part_of(length, count, 0)[0]
    group = mesh.get_group(mesh_dim)
    padded = _padded(local, dim, each * count)
    part: Tensor = plugrad.ops.distributed.reduce_scatter(padded, dim, reduce_op, group.name)
    size = part_of(length, count, group.rank())[0]
    return part.narrow(dim, 0, size).contiguous()


def _exchange(
    local: Tensor,
    mesh: DeviceMesh,
    mesh_dim: int,
    before: int,
    after: int,
    length: int,
    other: int,
) -> Tensor:
    """Change parts along `before` to parts along `after`: each rank sends every other its share."""
    group = mesh.get_group(mesh_dim)
    count, here = group.size(), group.rank()
    sent: list[Any] = []
    shapes: list[list[int]] = []
    for rank in range(count):
        size, start = part_of(other, count, rank)
        sent.append(local.narrow(after, start, size).reshape(-1))
        shape = list(local.shape)
        shape[before] = part_of(length, count, rank)[0]
        shape[after] = part_of(other, count, here)[0]
        shapes.append(shape)
    counts = [math.prod(shape) for shape in shapes]
    received = plugrad.ops.distributed.all_to_all_single(
        plugrad.cat(sent), counts, [piece.numel() for piece in sent], group.name
    )
    pieces = received.split(counts)
    joined: Tensor = plugrad.cat(
        [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)], before
    )
    return joined


# The cost of changes, in units of the tensor's elements; a slice costs less than any message.
_FORBIDDEN = math.inf


def cost_of(before: Placement, after: Placement, elements: int) -> float:
    """The cost of a change along one dimension of the mesh; infinite if it is not possible."""
    if before == after:
        return 0.0
    if isinstance(before, Replicate):
        return 0.001 * (elements + 1)
    if isinstance(after, Partial):
        return _FORBIDDEN
    if isinstance(before, Partial):
        # An all_reduce is a reduce_scatter and an all_gather.
        return (1.0 if isinstance(after, Shard) else 2.0) * (elements + 1)
    return (0.5 if isinstance(after, Shard) else 1.0) * (elements + 1)
