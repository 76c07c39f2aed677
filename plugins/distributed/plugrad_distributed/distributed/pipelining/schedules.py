"""Schedules: run a batch through the stages of all ranks, following a list of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.pipelining import orders
from plugrad_distributed.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from plugrad_distributed.distributed.pipelining.orders import Action
from plugrad_distributed.distributed.pipelining.stage import PipelineStage, in_loops, in_v

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
]


class _Schedule:
    """The base of all schedules. `order` gives this rank's actions, `_rank_of` the rank of a
    stage."""

    _rank_of = staticmethod(in_loops)

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Sequence[TensorChunkSpec | None] | None = None,
        kwargs_chunk_spec: Mapping[str, TensorChunkSpec | None] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        if not isinstance(n_microbatches, int) or n_microbatches < 1:
            raise ValueError(f"n_microbatches must be positive, got {n_microbatches!r}")
        for stage in stages:
            if not isinstance(stage, PipelineStage):
                raise TypeError(
                    f"a schedule takes PipelineStage objects, got {type(stage).__name__}"
                )
        self._stages = {stage.stage_index: stage for stage in stages}
        first = next(iter(self._stages.values()))
        wanted = [
            stage
            for stage in range(first.num_stages)
            if self._rank_of(stage, first.group_size) == first.group_rank
        ]
        if sorted(self._stages) != wanted:
            raise ValueError(
                f"rank {first.group_rank} of {first.group_size} has the stages {wanted} of "
                f"{first.num_stages}, got {sorted(self._stages)}"
            )
        for stage in stages:
            stage.rank_of, stage.beside = self._rank_of, self._stages
        self._count = n_microbatches
        self._loss_fn = loss_fn
        self._args_spec = args_chunk_spec
        self._kwargs_spec = kwargs_chunk_spec
        self._merge_spec = output_merge_spec
        self._scale_grads = scale_grads
        self.order: list[Action] = self._order(first, n_microbatches)

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        raise NotImplementedError

    def step(
        self,
        *args: Any,
        target: Tensor | None = None,
        losses: list[Tensor] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch forward and backward; gradients are added to the parameters' gradients.

        Args:
            args: the model's arguments; only on the rank of the first stage.
            target: the target of the loss; only on the rank of the last stage.
            losses: a list that receives the loss of each microbatch on that rank.
            return_outputs: whether to return the results on the rank of the last stage.
            loss_kwargs: more arguments of `loss_fn`.
            kwargs: keyword arguments of this rank's modules.

        Returns:
            The results of the whole batch on the rank of the last stage, None on others.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.pipelining import PipelineStage, Schedule1F1B
        >>> def losses():
        ...     rank = dist.get_rank()
        ...     stage = PipelineStage(plugrad.nn.Linear(4, 4), rank, 2, "cpu")
        ...     schedule = Schedule1F1B(stage, 3, loss_fn=plugrad.nn.functional.mse_loss)
        ...     if rank == 0:
        ...         schedule.step(plugrad.ones(6, 4))
        ...         return None
        ...     found = []
        ...     schedule.step(target=plugrad.zeros(6, 4), losses=found)
        ...     return len(found), stage.submod.weight.grad.shape
        >>> dist.run_ranks(losses, 2)
        [None, (3, plugrad.Size([4, 4]))]
        """
        if self._loss_fn is None and any(stage.is_last for stage in self._stages.values()):
            raise ValueError(
                f"{type(self).__name__}.step(): the schedule needs a loss_fn; eval() runs forward "
                "only"
            )
        run = _Run(self, args, kwargs, target, loss_kwargs or {})
        try:
            for action in self.order:
                run.do(action)
        finally:
            for stage in self._stages.values():
                stage.finish()
        if self._scale_grads:
            for stage in self._stages.values():
                stage.scale_grads(self._count)
        if losses is not None:
            losses[:] = [loss.detach() for loss in run.losses]
        return run.merged() if return_outputs else None

    def eval(
        self,
        *args: Any,
        target: Tensor | None = None,
        losses: list[Tensor] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch forward only, without a graph.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> def run():
        ...     stage = PipelineStage(plugrad.nn.Linear(4, 4), dist.get_rank(), 2, "cpu")
        ...     batch = [plugrad.ones(6, 4)] if stage.is_first else []
        ...     found = ScheduleGPipe(stage, 3).eval(*batch)
        ...     return None if found is None else (found.shape, found.requires_grad)
        >>> dist.run_ranks(run, 2)
        [None, (plugrad.Size([6, 4]), False)]
        """
        run = _Run(self, args, kwargs, target, {})
        with plugrad.no_grad():
            try:
                for action in self.order:
                    if action.kind == "F":
                        run.do(action)
            finally:
                for stage in self._stages.values():
                    stage.finish()
        if losses is not None:
            losses[:] = run.losses
        return run.merged()


class _Run:
    """The state of one batch."""

    def __init__(
        self,
        schedule: _Schedule,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Tensor | None,
        loss_kwargs: dict[str, Any],
    ) -> None:
        self._schedule = schedule
        self._count = schedule._count
        self._args, self._kwargs = split_args_kwargs_into_chunks(
            args, kwargs, self._count, schedule._args_spec if args else None, schedule._kwargs_spec
        )
        self._targets: list[Any] = [None] * self._count
        if target is not None:
            pairs, _ = split_args_kwargs_into_chunks((target,), None, self._count)
            self._targets = [pair[0] for pair in pairs]
        self._loss_kwargs = loss_kwargs
        self._outputs: dict[int, Any] = {}
        self._losses: dict[int, Tensor] = {}
        # How many microbatches have all gradients, by stage.
        self._backwards: dict[int, int] = {}

    @property
    def losses(self) -> list[Tensor]:
        """The losses of the microbatches, in order."""
        return [self._losses[number] for number in sorted(self._losses)]

    def do(self, action: Action) -> None:
        """Run one action."""
        stage = self._schedule._stages[action.stage]
        number = action.microbatch
        if action.kind in ("B", "W"):
            self._backwards[action.stage] = self._backwards.get(action.stage, 0) + 1
        last = self._backwards.get(action.stage) == self._count
        if action.kind == "B":
            stage.backward_one_chunk(number, self._losses.get(number), last)
            return
        if action.kind == "I":
            stage.backward_input_one_chunk(number, self._losses.get(number))
            return
        if action.kind == "W":
            stage.backward_weight_one_chunk(number, last)
            return
        outputs = stage.forward_one_chunk(number, self._args[number], self._kwargs[number])
        if stage.is_last:
            self._outputs[number] = outputs
            loss_fn, target = self._schedule._loss_fn, self._targets[number]
            if loss_fn is not None and target is not None:
                self._losses[number] = loss_fn(outputs, target, **self._loss_kwargs)

    def merged(self) -> Any:
        """The results of the whole batch, or None where there are none."""
        if not self._outputs:
            return None
        parts = [self._outputs[number] for number in range(self._count)]
        return merge_chunks(parts, self._schedule._merge_spec)


class PipelineScheduleSingle(_Schedule):
    """A schedule with one stage on each rank.

    Args:
        stage: this rank's stage.
        n_microbatches: the number of parts of a batch.
        loss_fn: a function of results and target, for the last stage; it should be a mean over the
            batch.
        args_chunk_spec, kwargs_chunk_spec: the dimensions along which arguments are split; by
            default the first.
        output_merge_spec: the dimension along which results are joined; by default the first.
        scale_grads: whether to divide gradients by `n_microbatches`, as losses that are means need.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> def outputs():
    ...     rank = dist.get_rank()
    ...     stage = PipelineStage(plugrad.nn.Linear(4, 4), rank, 2, "cpu")
    ...     schedule = ScheduleGPipe(stage, 3, loss_fn=plugrad.nn.functional.mse_loss)
    ...     if rank == 0:
    ...         return schedule.step(plugrad.ones(6, 4))
    ...     return schedule.step(target=plugrad.zeros(6, 4)).shape
    >>> dist.run_ranks(outputs, 2)
    [None, plugrad.Size([6, 4])]
    """

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Sequence[TensorChunkSpec | None] | None = None,
        kwargs_chunk_spec: Mapping[str, TensorChunkSpec | None] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage],
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward: simple, but keeps all of them in memory.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> def order():
    ...     stage = PipelineStage(plugrad.nn.Linear(4, 4), dist.get_rank(), 2, "cpu")
    ...     return " ".join(map(str, ScheduleGPipe(stage, 3).order))
    >>> for line in dist.run_ranks(order, 2):
    ...     print(line)
    0F0 0F1 0F2 0B0 0B1 0B2
    1F0 1F1 1F2 1B0 1B1 1B2
    """

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        return orders.gpipe(stage.stage_index, count)


class Schedule1F1B(PipelineScheduleSingle):
    """One forward, one backward: keeps no more microbatches than there are stages.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, Schedule1F1B
    >>> def order():
    ...     stage = PipelineStage(plugrad.nn.Linear(4, 4), dist.get_rank(), 2, "cpu")
    ...     return " ".join(map(str, Schedule1F1B(stage, 3).order))
    >>> for line in dist.run_ranks(order, 2):
    ...     print(line)
    0F0 0F1 0B0 0F2 0B1 0B2
    1F0 1B0 1F1 1B1 1F2 1B2
    """

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        return orders.one_f_one_b(stage.stage_index, stage.num_stages, count)


class PipelineScheduleMulti(_Schedule):
    """A schedule with several stages on each rank: rank r has the stages r, r + size, and so on.

    Args:
        stages: this rank's stages. The other arguments are the same as for
            `PipelineScheduleSingle`.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleLoopedBFS
    >>> def outputs():
    ...     rank = dist.get_rank()
    ...     stages = [PipelineStage(plugrad.nn.Linear(4, 4), n, 4, "cpu") for n in (rank, rank + 2)]
    ...     schedule = ScheduleLoopedBFS(stages, 2, loss_fn=plugrad.nn.functional.mse_loss)
    ...     if rank == 0:
    ...         return schedule.step(plugrad.ones(6, 4))
    ...     return schedule.step(target=plugrad.zeros(6, 4)).shape
    >>> dist.run_ranks(outputs, 2)
    [None, plugrad.Size([6, 4])]
    """


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All microbatches through one stage, then through the next one of the rank.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleLoopedBFS
    >>> def order():
    ...     rank = dist.get_rank()
    ...     stages = [PipelineStage(plugrad.nn.Linear(4, 4), n, 4, "cpu") for n in (rank, rank + 2)]
    ...     return " ".join(map(str, ScheduleLoopedBFS(stages, 2).order))
    >>> for line in dist.run_ranks(order, 2):
    ...     print(line)
    0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0
    1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0
    """

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        return orders.looped_bfs(stage.group_rank, stage.group_size, stage.num_stages, count)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """One forward, one backward, alternating between stages: ranks idle for a shorter time.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
    >>> def order():
    ...     rank = dist.get_rank()
    ...     stages = [PipelineStage(plugrad.nn.Linear(4, 4), n, 4, "cpu") for n in (rank, rank + 2)]
    ...     return " ".join(map(str, ScheduleInterleaved1F1B(stages, 2).order))
    >>> for line in dist.run_ranks(order, 2):
    ...     print(line)
    0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1
    1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1
    """

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        return orders.interleaved_1f1b(stage.group_rank, stage.group_size, stage.num_stages, count)


class ScheduleInterleavedZeroBubble(PipelineScheduleMulti):
    """Like `ScheduleInterleaved1F1B`, with backward in two parts: ranks compute gradients of
    parameters when they would otherwise idle.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble
    >>> def order():
    ...     rank = dist.get_rank()
    ...     stages = [PipelineStage(plugrad.nn.Linear(4, 4), n, 4, "cpu") for n in (rank, rank + 2)]
    ...     return " ".join(map(str, ScheduleInterleavedZeroBubble(stages, 2).order))
    >>> for line in dist.run_ranks(order, 2):
    ...     print(line)
    0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1
    1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1
    """

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        return orders.interleaved_zero_bubble(
            stage.group_rank, stage.group_size, stage.num_stages, count
        )


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """Two stages on each rank, placed in a V, with backward in two parts: rank r of n has the
    stages r and 2 n - 1 - r. Ranks idle least, and keep no more than in `Schedule1F1B`.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble
    >>> def order():
    ...     rank = dist.get_rank()
    ...     stages = [PipelineStage(plugrad.nn.Linear(4, 4), n, 4, "cpu") for n in (rank, 3 - rank)]
    ...     return " ".join(map(str, ScheduleZBVZeroBubble(stages, 2).order))
    >>> for line in dist.run_ranks(order, 2):
    ...     print(line)
    0F0 0F1 3F0 3I0 3F1 3I1 0I0 3W0 0I1 0W0 3W1 0W1
    1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1
    """

    _rank_of = staticmethod(in_v)

    def _order(self, stage: PipelineStage, count: int) -> list[Action]:
        if stage.num_stages != 2 * stage.group_size:
            raise ValueError(
                f"ScheduleZBVZeroBubble needs 2 stages on each of the {stage.group_size} ranks, "
                f"got {stage.num_stages} in all"
            )
        return orders.v_zero_bubble(stage.group_rank, stage.group_size, count)
