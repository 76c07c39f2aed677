"""Gradients that are averaged together, when the gradient of a given parameter arrives."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import Bucket
from plugrad_distributed.data_parallel.reducer import after_pass
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["DelayedReduction"]


class DelayedReduction:
    """Averages the gradients of some parameters over the ranks, once in each backward pass.

    Args:
        named: the parameters and their names.
        trigger: the parameter with a gradient that arrives after all of theirs. Then the reduction
            starts; the end of the pass waits for it.

    Attributes:
        expecting: whether backward passes average; otherwise gradients are accumulated.
    """

    def __init__(
        self, named: Sequence[tuple[str, Tensor]], trigger: Tensor, group: ProcessGroup
    ) -> None:
        self._names = [name for name, _ in named]
        self._group = group
        by_kind: dict[Any, list[int]] = {}
        for index, (_, parameter) in enumerate(named):
            by_kind.setdefault((parameter.dtype, parameter.device), []).append(index)
        self._buckets = [Bucket(each, [named[i][1] for i in each]) for each in by_kind.values()]
        self.expecting = False
        self._works: list[Work | None] = []
        self._running = False
        weak = weakref.ref(self)

        def run(index: int | None, _: Tensor) -> None:
            found = weak()
            if found is not None and found.expecting:
                found._start() if index is None else found._check(index)

        handles = [
            parameter.register_post_accumulate_grad_hook(partial(run, index))
            for index, (_, parameter) in enumerate(named)
            if parameter.requires_grad
        ]
        # Last, because the trigger may be one of the parameters.
        handles.append(trigger.register_post_accumulate_grad_hook(partial(run, None)))
        self.remove_hooks = weakref.finalize(self, _remove, handles)

    def _begin(self) -> None:
        """The first gradient of a backward pass has arrived."""
        if not self._running:
            self._running = True
            after_pass(self._finish)

    def _check(self, index: int) -> None:
        self._begin()
        if self._works:
            raise RuntimeError(
                f"DistributedDataParallel: the gradient of {self._names[index]!r}, one of "
                "delay_all_reduce_named_params, arrived after that of param_to_hook_all_reduce; "
                "choose a parameter whose gradient comes later"
            )

    def _start(self) -> None:
        self._begin()
        if self._works:
            raise RuntimeError(
                "DistributedDataParallel: the gradient of param_to_hook_all_reduce arrived twice "
                "in one backward pass"
            )
        with plugrad.no_grad():
            for bucket in self._buckets:
                bucket.gather()
                # Before the sum, which then cannot overflow.
                bucket.flat.div_(self._group.size())
                work = all_reduce(bucket.flat, ReduceOp.SUM, self._group, async_op=True)
                self._works.append(work)

    def _finish(self) -> None:
        works, self._works, self._running = self._works, [], False
        if not works:
            raise RuntimeError(
                "DistributedDataParallel: the gradient of param_to_hook_all_reduce did not arrive, "
                "so those of delay_all_reduce_named_params are not averaged"
            )
        with plugrad.no_grad():
            for work, bucket in zip(works, self._buckets, strict=True):
                if work is not None:
                    work.wait()
                for position in range(len(bucket.parameters)):
                    bucket.hand_out(position, as_view=True)


def _remove(handles: Sequence[Any]) -> None:
    for handle in handles:
        handle.remove()
