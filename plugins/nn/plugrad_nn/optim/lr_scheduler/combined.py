"""Schedules of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from plugrad_nn.optim.lr_scheduler.base import LRScheduler, rates_of, set_rate
from plugrad_nn.optim.lr_scheduler.plateau import ReduceLROnPlateau
from plugrad_nn.optim.optimizer import Optimizer


class _Combined(LRScheduler):
    """A schedule that has others."""

    _schedulers: Sequence[LRScheduler]

    def _check_schedulers(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        own = type(self).__name__
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{own} at index {index} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{own} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{index} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{own} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {index} has "
                    f"{scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the state dicts of the schedules."""
        state = super().state_dict()
        state.pop("_schedulers")
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state from `state_dict`."""
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(own)
        self.__dict__.update(state)


class SequentialLR(_Combined):
    """Follows one schedule until the first milestone, then the next one.

    Args:
        optimizer: the optimizer to schedule.
        schedulers: schedules of that optimizer, in order.
        milestones: the epochs at which the next schedule begins; one fewer than schedules.
        last_epoch: -1 to begin.

    Raises:
        ValueError: there are no schedules, there is another number of milestones, or a schedule
            cannot be in a sequence.

    >>> import plugrad
    >>> from plugrad.optim import lr_scheduler
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> warmup = lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=9)
    >>> decay = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2])
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.5]
    [1.0]
    [0.5]
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but got no scheduler."
            )
        self._check_schedulers(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every schedule made its first step when it was made; only one of them is to have done so.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes a step back, in all schedules that there are within."""
        schedule = self if sched is None else sched
        if hasattr(schedule, "_schedulers"):
            for inner in schedule._schedulers:
                self.recursive_undo(inner)
        elif hasattr(schedule, "last_epoch"):
            schedule.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]  # it cannot jump
        """Advances to the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Lets several schedules act on the same rates.

    Args:
        schedulers: schedules of one optimizer.
        optimizer: that optimizer; by default the first schedule's.

    Raises:
        ValueError: there are no schedules, or a schedule cannot be in a chain.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> parts = [plugrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)]
    >>> schedule = plugrad.optim.lr_scheduler.ChainedScheduler(parts)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check_schedulers(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = rates_of(optimizer)

    def step(self) -> None:  # type: ignore[override]  # it cannot jump
        """Advances to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates_of(self.optimizer)
