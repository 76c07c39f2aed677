"""Steps of a ZeroRedundancyOptimizer during backward, one for each bucket of gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import GradBucket, views
from plugrad_distributed.distributed.collectives import broadcast
from plugrad_distributed.groups.work import Work

if TYPE_CHECKING:
    from plugrad_distributed.distributed.optim.zero_redundancy_optimizer import (
        ZeroRedundancyOptimizer,
    )

__all__ = ["OverlappingSteps", "divided"]


@dataclasses.dataclass
class _Piece:
    """Parameters of a bucket that belong to one rank.

    Attributes:
        first, end: their positions in the bucket.
        parameters: these.
        flat: their elements, of which the parameters are views.
    """

    rank: int
    first: int
    end: int
    parameters: list[Tensor]
    flat: Tensor


class OverlappingSteps:
    """Updates parameters as soon as their averaged gradients arrive, and sends them to the other
    ranks.

    Which parameters a bucket has is known after DistributedDataParallel has rebuilt its buckets. So
    the first backward pass rebuilds them, the second shows them, and from the third on there are
    steps:

        bucket k is reduced ─ step of its owners ─ broadcast of its parameters

    All ranks call the methods in the same order, because they communicate.

    Attributes:
        shard_buckets: whether one bucket may belong to several ranks.
        initialized: whether it is known which parameters belong to which rank.
    """

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer
        self.shard_buckets = False
        self.initialized = False
        self._shown: list[list[Tensor]] = []
        self._pieces: list[list[_Piece]] = []
        self._works: list[Work] = []

    def begins(self, bucket: GradBucket, rebuilt: bool) -> bool:
        """Whether the optimizer steps with this bucket; until then, note its parameters.

        Args:
            rebuilt: whether the buckets are the final ones.

        Raises:
            RuntimeError: the optimizer has parameters that are in no bucket, or the buckets have
                changed.
        """
        if not self.initialized:
            if not rebuilt:
                return False
            if bucket.index() > 0 or not self._shown:
                self._shown.append(bucket.parameters())
                return False
            self._initialize()
        expected = self._shown[bucket.index()]
        if list(map(id, expected)) != list(map(id, bucket.parameters())):
            raise RuntimeError(
                "ZeroRedundancyOptimizer: the buckets of DistributedDataParallel have changed "
                "since the optimizer was divided by them; make both anew"
            )
        return True

    def _initialize(self) -> None:
        """Divide the buckets among the ranks."""
        zero = self._optimizer
        own = {id(p) for group in zero.param_groups for p in group["params"]}
        buckets = [[p for p in parameters if id(p) in own] for parameters in self._shown]
        reduced = {id(p) for parameters in buckets for p in parameters}
        missing = sum(
            p.requires_grad and id(p) not in reduced
            for group in zero.param_groups
            for p in group["params"]
        )
        if missing:
            raise RuntimeError(
                f"ZeroRedundancyOptimizer: {missing} of its parameters are not among those of the "
                "DistributedDataParallel module, so no step would update them"
            )
        sizes = [[p.numel() for p in parameters] for parameters in self._shown]
        parts = divided(sizes, zero.world_size, self.shard_buckets)
        self._pieces = [
            [self._piece(parameters, *part) for part in parts_of_bucket]
            for parameters, parts_of_bucket in zip(self._shown, parts, strict=True)
        ]
        zero._reassign(
            {
                p: piece.rank
                for pieces in self._pieces
                for piece in pieces
                for p in piece.parameters
                if id(p) in own
            }
        )
        self.initialized = True

    def _piece(self, bucket: Sequence[Tensor], rank: int, first: int, end: int) -> _Piece:
        parameters = list(bucket[first:end])
        with plugrad.no_grad():
            flat = plugrad.cat([p.detach().reshape(-1) for p in parameters])
            for parameter, view in zip(parameters, views(flat, parameters), strict=True):
                parameter.data = view
        return _Piece(rank, first, end, parameters, flat)

    def step(self, bucket: GradBucket, averages: Tensor, unused: set[int]) -> None:
        """Update this rank's parameters of a bucket, and start to send all of them.

        Args:
            averages: the reduced gradients, concatenated.
            unused: the ids of parameters that no rank has used, which stay as they are.
        """
        zero = self._optimizer
        gradients = views(averages.reshape(-1), bucket.parameters())
        for piece in self._pieces[bucket.index()]:
            if piece.rank == zero.rank:
                found = zip(piece.parameters, gradients[piece.first : piece.end], strict=True)
                zero._step_with({p: g.to(p.dtype) for p, g in found if id(p) not in unused})
            work = broadcast(
                piece.flat, group=zero.process_group, group_src=piece.rank, async_op=True
            )
            if work is not None:
                self._works.append(work)
        if bucket.is_last():
            works, self._works = self._works, []
            for work in works:
                work.wait()


def divided(
    sizes: Sequence[Sequence[int]], ranks: int, shard: bool
) -> list[list[tuple[int, int, int]]]:
    """Which rank gets which parameters of each bucket: lists of rank, first position, end.

    Args:
        sizes: the numbers of elements of each bucket's parameters.
        shard: divide buckets, so that ranks get about the same number of elements; otherwise the
            buckets go to the ranks in turn.

    >>> from plugrad_distributed.data_parallel.overlapping import divided
    >>> divided([[2, 2], [6, 6]], 2, False)
    [[(0, 0, 2)], [(1, 0, 2)]]
    >>> divided([[2, 2], [6, 6]], 2, True)
    [[(0, 0, 2)], [(1, 0, 1), (0, 1, 2)]]
    """
    if not shard:
        return [[(number % ranks, 0, len(each))] for number, each in enumerate(sizes)]
    share = sum(map(sum, sizes)) / ranks
    loads = [0] * ranks
    found: list[list[tuple[int, int, int]]] = [[] for _ in sizes]
    # Small buckets first: the large ones then fill the gaps.
    for number in sorted(range(len(sizes)), key=lambda each: sum(sizes[each])):
        first = 0
        while first < len(sizes[number]):
            rank = loads.index(min(loads))
            end = first + 1
            while end < len(sizes[number]) and sum(sizes[number][first : end + 1]) < share:
                end += 1
            loads[rank] += sum(sizes[number][first:end])
            found[number].append((rank, first, end))
            first = end
    return found
