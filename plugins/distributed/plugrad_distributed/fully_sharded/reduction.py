"""The gradients of a group: summed over the ranks; each rank keeps its part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.fully_sharded.layout import Layout
from plugrad_distributed.fully_sharded.parameters import ShardedParameter
from plugrad_distributed.fully_sharded.policies import DefaultReduceScatter, ReduceScatter
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["GradientReducer", "Reduction"]


class GradientReducer:
    """How the gradients of a group are reduced, and the gradients left from passes without
    reduction.

    Attributes:
        shards: the ranks that hold the parts.
        replicas: the ranks that hold the same part, or None.
        dtype: the dtype in which gradients are reduced; None for their own.
        enabled: whether gradients are reduced, or kept unsharded for a later pass.
        all_reduces: whether they are also summed over `replicas`, or kept for a later pass.
        divisor: the divisor of sums; by default the number of ranks.
        with_unused: whether parameters without a gradient are included, as zeros.
    """

    def __init__(self, shards: ProcessGroup, replicas: ProcessGroup | None, dtype: Any) -> None:
        self.shards = shards
        self.replicas = replicas
        self.dtype = dtype
        self.enabled = True
        self.all_reduces = True
        self.divisor: float | None = None
        self.with_unused = False
        self.collective: ReduceScatter = DefaultReduceScatter()
        self._kept: dict[int, Tensor] = {}
        self._partial: tuple[list[int], Tensor] | None = None

    @property
    def has_kept(self) -> bool:
        """Whether there are gradients of passes without reduction."""
        return bool(self._kept)

    def forget(self) -> None:
        """Drop the gradients left from earlier passes."""
        self._kept.clear()
        self._partial = None

    def keep(self, grads: Sequence[Tensor | None]) -> None:
        """Add gradients to those that wait for a pass with reduction."""
        for index, grad in enumerate(grads):
            if grad is None:
                continue
            if index in self._kept:
                self._kept[index].add_(grad)
            else:
                # A copy, because autograd may keep using its memory.
                self._kept[index] = grad.to(self.dtype or grad.dtype, copy=True)

    def start(
        self, parameters: Sequence[ShardedParameter], grads: list[Tensor | None], dtype: Any
    ) -> Reduction | None:
        """Start to reduce the gradients of a pass together with kept ones; None if there are none.
        Empties the list.

        Args:
            dtype: the dtype of the gathered parameters.
        """
        found: dict[int, Any] = self._kept
        self._kept = {}
        for index, grad in enumerate(grads):
            if grad is None:
                if self.with_unused and parameters[index].sharded.requires_grad:
                    slot = parameters[index].slot
                    zeros = plugrad.zeros(
                        slot.shape, dtype=dtype, device=parameters[index].local.device
                    )
                    found.setdefault(index, zeros)
            elif index in found:
                found[index].add_(grad)
            else:
                found[index] = grad
        grads.clear()
        if not found:
            return None
        indices = sorted(found)
        wholes = [found.pop(index) for index in indices]
        reduced = self.dtype or wholes[0].dtype
        return Reduction(self, [parameters[index] for index in indices], indices, wholes, reduced)

    def factors(self, dtype: Any) -> tuple[float, float]:
        """The divisors before and after the sum."""
        count = self.shards.size() * (1 if self.replicas is None else self.replicas.size())
        divisor = float(count if self.divisor is None else self.divisor)
        # The sum could overflow in half precision.
        return (divisor, 1.0) if dtype == plugrad.float16 else (1.0, divisor)

    def with_partial(self, indices: list[int], part: Tensor) -> Tensor | None:
        """The part plus the parts left from earlier passes; None if it is kept for a later one.

        Raises:
            RuntimeError: other parameters had gradients in earlier passes.
        """
        if self.replicas is None:
            return part
        if self._partial is not None:
            earlier, kept = self._partial
            if earlier != indices:
                raise RuntimeError(
                    "fully_shard: while set_requires_all_reduce(False) is in force, the same "
                    "parameters of a group must get gradients in each backward pass"
                )
            part.add_(kept)
            self._partial = None
        if self.all_reduces:
            return part
        self._partial = indices, part
        return None


class Reduction:
    """A running reduction of gradients: reduce_scatter, then all_reduce if there are replicas.

    `advance` waits for the first and starts the second, `finish` gives parameters their gradients.
    """

    def __init__(
        self,
        reducer: GradientReducer,
        parameters: list[ShardedParameter],
        indices: list[int],
        wholes: list[Tensor],
        dtype: Any,
    ) -> None:
        self.reducer = reducer
        self.parameters = parameters
        self.indices = indices
        self.layout = Layout([one.slot for one in parameters], reducer.shards.size())
        self._before, self._after = reducer.factors(dtype)
        device = wholes[0].device
        collective = reducer.collective

        def allocate(size: int) -> Tensor:
            return collective.allocate((size,), dtype=dtype, device=device)

        flat = self.layout.join_wholes(wholes, allocate)
        if self._before != 1.0:
            flat.div_(self._before)
        self.part: Tensor | None = allocate(self.layout.size)
        self._work: Work | None = collective(
            self.part, flat, reducer.shards, ReduceOp.SUM, async_op=True
        )
        self._sent: Tensor | None = flat
        self._advanced = False

    def advance(self) -> None:
        """Wait until each rank has its part, and start to sum it over the replicas."""
        if self._advanced:
            return
        self._advanced = True
        self._wait()
        self._sent = None
        if self.part is not None:
            self.part = self.reducer.with_partial(self.indices, self.part)
        replicas = self.reducer.replicas
        if self.part is not None and replicas is not None:
            self._work = all_reduce(self.part, ReduceOp.SUM, replicas, async_op=True)

    def _wait(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work.wait()

    def wait(self) -> None:
        """Wait for everything that was started."""
        self.advance()
        self._wait()

    def finish(self) -> None:
        """Give the parameters their parts of the gradients."""
        self.wait()
        if self.part is None:
            return
        if self._after != 1.0:
            self.part.div_(self._after)
        parts = self.layout.split_shards(self.part, self.reducer.shards.rank())
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.add_gradient(part)
