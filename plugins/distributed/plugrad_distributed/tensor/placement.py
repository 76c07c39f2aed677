"""Placements: how a tensor is distributed along one dimension of a mesh, and each rank's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrad_distributed.mesh.device_mesh import DeviceMesh

__all__ = [
    "Partial",
    "Placement",
    "Placements",
    "Replicate",
    "Shard",
    "local_part",
    "normalized",
    "part_of",
]

REDUCTIONS = ("sum", "avg", "product", "max", "min")


class Placement:
    """How a tensor is distributed along one dimension of a mesh: `Shard`, `Replicate` or
    `Partial`.

    >>> from plugrad.distributed.tensor import Partial, Replicate, Shard
    >>> [placement.is_shard() for placement in (Shard(0), Replicate(), Partial())]
    [True, False, False]
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether ranks have parts along a dimension, or along `dim`.

        >>> from plugrad.distributed.tensor import Replicate, Shard
        >>> Shard(1).is_shard(), Shard(1).is_shard(dim=0), Replicate().is_shard()
        (True, False, False)
        """
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether all ranks have the whole.

        >>> from plugrad.distributed.tensor import Replicate, Shard
        >>> Replicate().is_replicate(), Shard(0).is_replicate()
        (True, False)
        """
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether ranks have values that must still be reduced, by any operation or by
        `reduce_op`.

        >>> from plugrad.distributed.tensor import Partial, Replicate
        >>> Partial().is_partial(), Partial().is_partial("max"), Replicate().is_partial()
        (True, False, False)
        """
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Ranks have parts of the tensor along its dimension `dim`, cut like `plugrad.chunk`: the last
    ones may be smaller or empty.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, distribute_tensor
    >>> def part():
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     return distribute_tensor(plugrad.arange(3), mesh, [Shard(0)]).to_local().tolist()
    >>> dist.run_ranks(part, 2)
    [[0, 1], [2]]
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """The length of a rank's part, and where it begins.

        >>> from plugrad.distributed.tensor import Shard
        >>> [Shard.local_shard_size_and_offset(10, 4, rank) for rank in range(4)]
        [(3, 0), (3, 3), (3, 6), (1, 9)]
        """
        return part_of(curr_local_size, num_chunks, rank)


@dataclass(frozen=True)
class Replicate(Placement):
    """All ranks have the whole tensor.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Replicate, distribute_tensor
    >>> def part():
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     return distribute_tensor(plugrad.arange(3), mesh, [Replicate()]).to_local().tolist()
    >>> dist.run_ranks(part, 2)
    [[0, 1, 2], [0, 1, 2]]
    """

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the reduction of the ranks' tensors by `reduce_op`: "sum", "avg", "product",
    "max" or "min".

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import DTensor, Partial
    >>> def whole():
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     summand = plugrad.tensor([1.0, 10.0 * dist.get_rank()])
    ...     return DTensor.from_local(summand, mesh, [Partial()]).full_tensor()
    >>> dist.run_ranks(whole, 2)[0]
    tensor([ 2., 10.])
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ValueError(
                f"Partial(): reduce_op must be one of {', '.join(REDUCTIONS)}, got "
                f"{self.reduce_op!r}"
            )

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


Placements = tuple[Placement, ...]


def part_of(length: int, count: int, index: int) -> tuple[int, int]:
    """The length of part `index` of `count`, and where it begins, as in `chunk`: full parts first,
    then the rest."""
    each = -(-length // count)
    start = min(index * each, length)
    return min(each, length - start), start


def local_part(
    shape: Sequence[int], mesh: DeviceMesh, placements: Placements
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's part of a tensor, and where it begins in each dimension."""
    sizes = list(shape)
    offsets = [0] * len(sizes)
    here = mesh.get_coordinate()
    if here is None:
        raise RuntimeError(f"rank {mesh.get_rank()} is not in {mesh!r}")
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            dim = placement.dim
            sizes[dim], start = part_of(sizes[dim], mesh.size(mesh_dim), here[mesh_dim])
            offsets[dim] += start
    return tuple(sizes), tuple(offsets)


def normalized(
    placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int, function: str
) -> Placements:
    """One placement for each dimension of the mesh, with nonnegative tensor dimensions.

    Raises:
        TypeError, ValueError, IndexError: they do not fit mesh or tensor.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if isinstance(placements, Placement):
        raise TypeError(f"{function}(): placements must be a sequence, got {placements!r}")
    given = tuple(placements)
    if len(given) != mesh.ndim:
        raise ValueError(
            f"{function}(): `placements` must have the same length as `device_mesh.ndim`! Found "
            f"placements length: {len(given)}, and device_mesh.ndim: {mesh.ndim}."
        )
    return tuple(_normalized(one, ndim, function) for one in given)


def _normalized(placement: Placement, ndim: int, function: str) -> Placement:
    if not isinstance(placement, Placement):
        raise TypeError(
            f"{function}(): placements must be Shard, Replicate or Partial, got "
            f"{type(placement).__name__}"
        )
    if not isinstance(placement, Shard):
        return placement
    if not -ndim <= placement.dim < ndim:
        raise IndexError(
            f"{function}(): Shard(dim={placement.dim}) is out of range for a tensor of {ndim} "
            "dimensions"
        )
    return Shard(placement.dim % ndim)
