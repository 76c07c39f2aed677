"""The part of a tensor that a rank holds, which it writes or reads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plugrad import Tensor
from plugrad_distributed.distributed.queries import get_world_size
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.dtensor import array_of
from plugrad_distributed.tensor.placement import local_part

__all__ = ["Piece", "Pieces", "pieces_of"]


@dataclass(frozen=True)
class Piece:
    """A box of a tensor's elements.

    Attributes:
        offset: the index of its first element in the whole tensor.
        tensor: its elements; loading writes to them.

    >>> import plugrad
    >>> from plugrad.distributed.checkpoint import pieces_of
    >>> pieces_of(plugrad.ones(2, 1)).local[0].offset
    (0, 0)
    """

    offset: tuple[int, ...]
    tensor: Tensor


@dataclass(frozen=True)
class Pieces:
    """The pieces of a tensor that a rank holds.

    Attributes:
        shape: the shape of the whole tensor.
        local: the pieces.
        writes: whether this rank writes its pieces. None if all ranks hold the same: the ranks
            divide such tensors among themselves.
    """

    shape: tuple[int, ...]
    local: Sequence[Piece]
    writes: bool | None = None


@functools.singledispatch
def pieces_of(tensor: Any) -> Pieces:
    """The pieces of a tensor that this rank holds: all of a plain tensor, which is the same on all
    ranks, and its part of a DTensor.

    Other classes of distributed tensors register a function:
    ``pieces_of.register(MyTensor)``.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.checkpoint import pieces_of
    >>> from plugrad.distributed.tensor import Shard, distribute_tensor
    >>> def program():
    ...     mesh = dist.init_device_mesh("cpu", (2,))
    ...     pieces = pieces_of(distribute_tensor(plugrad.arange(4.0), mesh, [Shard(0)]))
    ...     return pieces.shape, [(piece.offset, piece.tensor) for piece in pieces.local]
    >>> dist.run_ranks(program, 2)[1]
    ((4,), [((2,), tensor([2., 3.]))])
    """
    array = array_of(tensor)
    if array is not None:
        return _of_part(array)
    return Pieces(tuple(tensor.shape), [Piece((0,) * tensor.ndim, tensor)])


def _of_part(array: ShardedArray) -> Pieces:
    """The pieces of a DTensor that this rank holds. If several ranks hold the same piece, the first
    one writes it."""
    placements = array.placements
    if any(one.is_partial() for one in placements):
        raise ValueError(
            f"a DTensor with placements {placements} is still to be reduced: redistribute it "
            "before it is saved or loaded"
        )
    everywhere = all(one.is_replicate() for one in placements)
    if everywhere and array.mesh.size() == get_world_size():
        return Pieces(array.shape, [Piece((0,) * len(array.shape), array.local)])
    here = array.mesh.get_coordinate()
    if here is None:
        return Pieces(array.shape, [], False)
    first = all(
        index == 0
        for index, placement in zip(here, placements, strict=True)
        if placement.is_replicate()
    )
    offset = local_part(array.shape, array.mesh, placements)[1]
    pieces = [Piece(offset, array.local)] if array.local.numel() else []
    return Pieces(array.shape, pieces, first)
