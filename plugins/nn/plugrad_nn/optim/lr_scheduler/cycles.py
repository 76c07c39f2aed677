"""Schedules that rise and fall, with the momentum in the opposite direction: CyclicLR and
OneCycleLR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from plugrad_nn.optim.lr_scheduler.base import (
    LRScheduler,
    Rate,
    check_optimizer,
    per_group,
    set_rate,
    state_of_function,
)
from plugrad_nn.optim.optimizer import Optimizer, ParamGroup


class _MomentumLR(LRScheduler):
    """A schedule that moves `momentum`, or the first of `betas`, too."""

    def _start_momentum(
        self, optimizer: Optimizer, base: Any, largest: Any, last_epoch: int
    ) -> tuple[list[float], list[float]]:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        bases = per_group("base_momentum", optimizer, base)
        tops = per_group("max_momentum", optimizer, largest)
        if last_epoch == -1:
            for low, high, group in zip(bases, tops, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return bases, tops

    def _set_momentum(self, group: ParamGroup, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_MomentumLR):
    """Cycles from `base_lr` to `max_lr` and back.

    Args:
        optimizer: the optimizer to schedule.
        base_lr, max_lr: the ends, one number or one for each group.
        step_size_up, step_size_down: the number of steps up and down; down takes as long as up by
            default.
        mode: "triangular"; "triangular2" halves the height each cycle; "exp_range" multiplies it
            by gamma**step.
        gamma: see `mode`.
        scale_fn: in place of `mode`, the height's factor by cycle or step.
        scale_mode: the argument of `scale_fn`: "cycle" (from 1 on) or "iterations".
        cycle_momentum: cycle the momentum from `max_momentum` to `base_momentum` and back.
        base_momentum, max_momentum: its ends.
        last_epoch: the step to resume from; -1 to begin.

    Raises:
        ValueError: there is no such mode, or the optimizer has no momentum.

    Source: Smith 2017.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0, momentum=0.9)
    >>> CyclicLR = plugrad.optim.lr_scheduler.CyclicLR
    >>> schedule = CyclicLR(optimizer, base_lr=0.1, max_lr=1.0, step_size_up=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.1, 0.55, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_rate(group, rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the height in a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x)

    def get_lr(self) -> list[Rate]:
        """The rate of each group; sets the momentum."""
        self._warn_outside_of_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, ends, strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and a function; of a callable object, its attributes."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else state_of_function(function)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state from `state_dict`."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(state)


class OneCycleLR(_MomentumLR):
    """Rises to `max_lr`, then falls far below the first rate, once; call it every step.

    Args:
        optimizer: the optimizer to schedule.
        max_lr: the largest rate, one number or one for each group.
        total_steps: how many steps there are; or `epochs` and `steps_per_epoch`.
        epochs, steps_per_epoch: see `total_steps`.
        pct_start: the share of steps that go up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: cycle the momentum from `max_momentum` to `base_momentum` and back.
        base_momentum, max_momentum: its ends.
        div_factor: the first rate is max_lr / div_factor.
        final_div_factor: the last rate is the first one over this.
        three_phase: fall to the first rate in as many steps as it rose, then on to the last rate.
        last_epoch: the step to resume from; -1 to begin.

    Raises:
        ValueError: an argument is out of its range, or the optimizer has no momentum; or `step` is
            called more often than `total_steps`.

    Source: Smith and Topin 2019.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0, momentum=0.9)
    >>> schedule = plugrad.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.04, 0.8117, 0.2831]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 10000.0,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        if total_steps is not None:
            self.total_steps = _positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = _positive("epochs", epochs)
            self.total_steps *= _positive("steps_per_epoch", steps_per_epoch)
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        up = float(pct_start * self.total_steps) - 1
        down = float(2 * pct_start * self.total_steps) - 2
        phases = [(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            phases += [(down, "max_lr", "initial_lr", "base_momentum", "max_momentum")]
            last = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
        else:
            last = ("max_lr", "min_lr", "base_momentum", "max_momentum")
        phases.append((self.total_steps - 1, *last))
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases = [dict[str, Any](zip(names, p, strict=True)) for p in phases]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        largest = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(largest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Rate]:
        """The rate of each group; sets the momentum."""
        self._warn_outside_of_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, share))
        return rates


def _positive(name: str, value: int) -> int:
    if value <= 0 or not isinstance(value, int):
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value
