"""PipelineStage: a part of a model on one rank, and the messages between neighbours."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.distributed import DistributedDataParallel
from plugrad_distributed.distributed.pipelining.splitting import SplitBackward
from plugrad_distributed.distributed.points import irecv, isend
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work

__all__ = ["PipelineStage", "in_loops", "in_v"]

FORWARD, BACKWARD = 0, 1


class Kept:
    """What a stage keeps of a microbatch between forward and backward."""

    def __init__(self, inputs: Sequence[Any], outputs: Any) -> None:
        self.inputs = inputs
        self.outputs = outputs


class PipelineStage:
    """A part of a model that runs on this rank.

    Its module gets the results of the previous stage as positional arguments, and its own keyword
    arguments. Results are one tensor or a tuple of tensors.

    Args:
        submodule: the part.
        stage_index: its number, from 0.
        num_stages: the number of stages. Stage s is on the rank s modulo the number of ranks;
            schedules with a V place the second half in reverse order.
        device: where the stage's tensors are.
        group: the ranks; all by default.

    Raises:
        ValueError: there is no such stage, or it belongs to another rank.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.pipelining import PipelineStage
    >>> def stage():
    ...     part = plugrad.nn.Linear(4, 4)
    ...     return PipelineStage(part, dist.get_rank(), num_stages=2, device="cpu")
    >>> dist.run_ranks(stage, 2)[1]
    PipelineStage(1 of 2, Linear(in_features=4, out_features=4, bias=True))
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        group: Any = None,
    ) -> None:
        found = get_group(group, "PipelineStage")
        if found is None:
            raise ValueError("PipelineStage(): this rank is not part of the group")
        if not 0 <= stage_index < num_stages:
            raise ValueError(
                f"PipelineStage(): stage_index must be in the interval [0, {num_stages - 1}], got "
                f"{stage_index}"
            )
        if num_stages % found.size():
            raise ValueError(
                f"PipelineStage(): num_stages must be a multiple of the {found.size()} ranks, got "
                f"{num_stages}"
            )
        size = found.size()
        if found.rank() not in (in_loops(stage_index, size), in_v(stage_index, size)):
            raise ValueError(
                f"PipelineStage(): stage {stage_index} is on rank {in_loops(stage_index, size)} of "
                f"the group, this is rank {found.rank()}"
            )
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = plugrad.device(device)
        self.group: ProcessGroup = found
        self.group_rank, self.group_size = found.rank(), found.size()
        # Set by the schedule: the rank of each stage, and this rank's stages by number.
        self.rank_of: Callable[[int, int], int] = in_loops
        self.beside: Mapping[int, PipelineStage] = {}
        self._kept: dict[int, Kept] = {}
        self._split: dict[int, tuple[SplitBackward, Any]] = {}
        # By direction and microbatch: the tensors from neighbouring stages.
        self._handed: dict[tuple[int, int], list[Tensor | None]] = {}
        self._sent: list[Work] = []
        # By direction and microbatch: shapes and dtypes of received tensors. The sender sends them
        # first, and again whenever they change.
        self._expected: dict[tuple[int, int], Any] = {}
        self._told: dict[tuple[int, int], Any] = {}

    @property
    def is_first(self) -> bool:
        """Whether this is the first stage.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.pipelining import PipelineStage
        >>> def first():
        ...     return PipelineStage(plugrad.nn.Linear(4, 4), dist.get_rank(), 2, "cpu").is_first
        >>> dist.run_ranks(first, 2)
        [True, False]
        """
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether this is the last stage.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.pipelining import PipelineStage
        >>> def last():
        ...     return PipelineStage(plugrad.nn.Linear(4, 4), dist.get_rank(), 2, "cpu").is_last
        >>> dist.run_ranks(last, 2)
        [False, True]
        """
        return self.stage_index == self.num_stages - 1

    def __repr__(self) -> str:
        return f"PipelineStage({self.stage_index} of {self.num_stages}, {self.submod})"

    # Messages between stages

    def _peer(self, step: int) -> int:
        return self.group.ranks[self.rank_of(self.stage_index + step, self.group_size)]

    def _tag(self, direction: int, sender: int, microbatch: int) -> int:
        return (microbatch * self.num_stages + sender) * 2 + direction + 1

    def _send(self, tensors: Sequence[Tensor | None], step: int, microbatch: int) -> None:
        direction = FORWARD if step > 0 else BACKWARD
        beside = self.beside.get(self.stage_index + step)
        if beside is not None:
            beside._handed[direction, microbatch] = list(tensors)
            return
        about = [
            None
            if tensor is None
            else (tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], tensor.requires_grad)
            for tensor in tensors
        ]
        peer = self._peer(step)
        key = (direction, microbatch)
        news = self._told.get(key) != about
        tag = self._tag(direction, self.stage_index, microbatch)
        # First the length of a text with shapes and dtypes; 0 if they have not changed.
        text = json.dumps(about).encode() if news else b""
        self._keep(plugrad.tensor([len(text)]), peer, tag)
        if news:
            self._told[key] = about
            self._keep(plugrad.from_numpy(np.frombuffer(bytearray(text), np.uint8)), peer, tag)
        for tensor in tensors:
            if tensor is not None:
                self._keep(tensor.detach(), peer, tag)

    def _keep(self, tensor: Tensor, peer: int, tag: int) -> None:
        work = isend(tensor, peer, self.group, tag)
        assert work is not None
        self._sent.append(work)

    def _receive(self, step: int, microbatch: int) -> list[Tensor | None]:
        direction = FORWARD if step < 0 else BACKWARD
        key = (direction, microbatch)
        if self.stage_index + step in self.beside:
            return [each if each is None else _leaf(each) for each in self._handed.pop(key)]
        peer = self._peer(step)
        tag = self._tag(direction, self.stage_index + step, microbatch)
        length = plugrad.zeros(1, dtype=plugrad.int64)
        self._await(irecv(length, peer, self.group, tag))
        if length.tolist() != [0]:
            text = plugrad.empty(length.tolist(), dtype=plugrad.uint8)
            self._await(irecv(text, peer, self.group, tag))
            self._expected[key] = json.loads(text.numpy().tobytes())
        found: list[Tensor | None] = []
        for about in self._expected[key]:
            if about is None:
                found.append(None)
                continue
            shape, dtype, needs_grad = about
            tensor = plugrad.empty(shape, dtype=getattr(plugrad, dtype), device=self.device)
            self._await(irecv(tensor, peer, self.group, tag))
            found.append(tensor.requires_grad_(needs_grad and plugrad.is_grad_enabled()))
        return found

    @staticmethod
    def _await(work: Work | None) -> None:
        assert work is not None
        work.wait()

    def finish(self) -> None:
        """Wait until all sends are complete, and drop the microbatches."""
        sent, self._sent = self._sent, []
        for work in sent:
            work.wait()
        self._kept.clear()
        self._split.clear()
        self._handed.clear()

    # Microbatches

    def forward_one_chunk(
        self, microbatch: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a microbatch forward: on the first stage with `args`, else with the tensors from the
        previous stage."""
        inputs: Sequence[Any] = args if self.is_first else self._receive(-1, microbatch)
        # Only then is it known which backward is the last.
        with self._without_averages():
            outputs = self.submod(*inputs, **kwargs)
        self._kept[microbatch] = Kept(inputs, outputs)
        if not self.is_last:
            self._send(self._tensors(outputs), 1, microbatch)
        return outputs

    def _without_averages(self) -> contextlib.AbstractContextManager[Any]:
        if isinstance(self.submod, DistributedDataParallel):
            return self.submod.no_sync()
        return contextlib.nullcontext()

    def _expect_averages(self, outputs: Any) -> None:
        """Let a data parallel module reduce in the coming backward pass."""
        if isinstance(self.submod, DistributedDataParallel):
            self.submod.expect_backward(self._tensors(outputs))

    def _tensors(self, outputs: Any) -> list[Tensor]:
        found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        for number, tensor in enumerate(found):
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"stage {self.stage_index} must give tensors to the next one, got "
                    f"{type(tensor).__name__} as result {number}"
                )
        return found

    def backward_one_chunk(self, microbatch: int, loss: Tensor | None, last: bool = True) -> None:
        """Run a microbatch backward: on the last stage from its loss, else from the gradients that
        the next stage sends.

        Args:
            last: whether it is the last microbatch: then a data parallel module reduces.
        """
        kept = self._kept.pop(microbatch)
        outputs, grads = self._roots(kept, microbatch, loss)
        if last:
            self._expect_averages(kept.outputs)
        if outputs:
            plugrad.autograd.backward(outputs, grads)
        if not self.is_first:
            self._send([tensor.grad for tensor in kept.inputs], -1, microbatch)

    def backward_input_one_chunk(self, microbatch: int, loss: Tensor | None) -> None:
        """The first part of backward: the gradients that the previous stage waits for. The first
        stage leaves everything to the second part."""
        kept = self._kept.pop(microbatch)
        wanted = [] if self.is_first else [each for each in kept.inputs if each.requires_grad]
        outputs, grads = self._roots(kept, microbatch, loss)
        split = SplitBackward(outputs, grads, wanted)
        self._split[microbatch] = split, kept.outputs
        found = split.input_grads()
        if not self.is_first:
            by_input = {id(tensor): grad for tensor, grad in zip(wanted, found, strict=True)}
            self._send([by_input.get(id(tensor)) for tensor in kept.inputs], -1, microbatch)

    def backward_weight_one_chunk(self, microbatch: int, last: bool = True) -> None:
        """The second part of backward: the gradients of parameters."""
        split, outputs = self._split.pop(microbatch)
        if last:
            self._expect_averages(outputs)
        split.parameter_grads()

    def _roots(
        self, kept: Kept, microbatch: int, loss: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The tensors where backward begins, and their gradients from the next stage."""
        if self.is_last:
            if loss is None:
                raise ValueError(
                    "the schedule needs a loss_fn: the last stage runs backward from its loss"
                )
            return [loss], [None]
        outputs: list[Tensor] = []
        grads: list[Tensor | None] = []
        arrived = self._receive(1, microbatch)
        for tensor, grad in zip(self._tensors(kept.outputs), arrived, strict=True):
            if tensor.requires_grad and grad is not None:
                outputs.append(tensor)
                grads.append(grad)
        return outputs, grads

    def scale_grads(self, divisor: int) -> None:
        """Divide the gradients of the parameters."""
        with plugrad.no_grad():
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(divisor)


def in_loops(stage: int, ranks: int) -> int:
    """The rank of a stage; after the last rank comes the first again."""
    return stage % ranks


def in_v(stage: int, ranks: int) -> int:
    """The rank of a stage in a V; after the last rank, ranks repeat in reverse order."""
    return stage % ranks if stage // ranks % 2 == 0 else ranks - 1 - stage % ranks


def _leaf(tensor: Tensor) -> Tensor:
    """A tensor on the same memory that accumulates its own gradient, if it can have one."""
    needs_grad = tensor.requires_grad and plugrad.is_grad_enabled()
    return tensor.detach().requires_grad_(needs_grad)
