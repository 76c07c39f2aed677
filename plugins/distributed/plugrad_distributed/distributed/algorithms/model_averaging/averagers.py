"""Objects that average a model's parameters over the ranks, in some of the steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """The base of averagers.

    Args:
        process_group: the ranks; all by default.

    Attributes:
        step: how many steps there have been.
    """

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        found = get_group(process_group, type(self).__name__)
        if found is None:
            raise ValueError(f"{type(self).__name__}: this rank is not part of process_group")
        self.process_group = found
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of groups of an optimizer, if it is their turn."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters once in some steps.

    Parameters without a gradient stay as they are.

    Args:
        period: once in so many steps.
        warmup_steps: in the first steps there are no averages: other means keep models equal then,
            such as gradients that are averaged over all ranks.
        process_group: the ranks; all by default.

    Raises:
        ValueError: `period` is not positive, or `warmup_steps` negative.

    Source: Lin et al., "Don't use large mini-batches, use local SGD", 2020.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> def program():
    ...     weight = plugrad.nn.Parameter(plugrad.ones(1) * dist.get_rank())
    ...     weight.grad = plugrad.zeros(1)
    ...     averager = PeriodicModelAverager(period=2, warmup_steps=1)
    ...     found = []
    ...     for _ in range(2):
    ...         averager.average_parameters([weight])
    ...         found.append(weight.item())
    ...     return found
    >>> dist.run_ranks(program, 2)
    [[0.0, 0.5], [1.0, 0.5]]
    """

    def __init__(
        self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None
    ) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError(
                f"Arg ``warmup_steps`` must be a non-negative number, got {warmup_steps}."
            )
        if period <= 0:
            raise ValueError(f"Arg ``period`` must be a positive value, got {period}.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost "
                "of all-reducing parameters will be no less than the cost of all-reducing "
                "gradients by DistributedDataParallel in the backward pass.",
                stacklevel=2,
            )
        self.period = period
        self.warmup_steps = warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of groups of an optimizer, if it is their turn."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            _average(_with_gradients(params), self.process_group)
        self.step += 1


def _with_gradients(params: Iterable[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for each in params:
        found += each["params"] if isinstance(each, dict) else [each]
    return [parameter for parameter in found if parameter.grad is not None]


def _average(parameters: Iterable[Tensor], group: ProcessGroup) -> None:
    """In place, with one message for all of a dtype and device."""
    by_kind: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        by_kind.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    with plugrad.no_grad():
        for alike in by_kind.values():
            flat = plugrad.cat([parameter.detach().reshape(-1) for parameter in alike])
            flat /= group.size()
            all_reduce(flat, group=group)
            parts = flat.split([parameter.numel() for parameter in alike])
            for parameter, part in zip(alike, parts, strict=True):
                parameter.copy_(part.view(parameter.shape))
