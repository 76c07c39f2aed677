"""ReduceLROnPlateau: rates that fall when a metric stops improving."""

from __future__ import annotations

import math
import warnings
from typing import Any, SupportsFloat

from plugrad_nn.optim.lr_scheduler.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    check_optimizer,
    rates_of,
    set_rate,
)
from plugrad_nn.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a metric has not improved for `patience` epochs.

    Args:
        optimizer: the optimizer to schedule.
        mode: "min" for a metric that should fall, "max" for one that should rise.
        factor: the factor of the rates; below 1.
        patience: how many epochs without improvement are tolerated.
        threshold: the least improvement of a metric that counts.
        threshold_mode: "rel" for a share of the best one, "abs" for a difference.
        cooldown: how many epochs do not count after a change.
        min_lr: the least rate, one number or one for each group.
        eps: changes that are smaller are left out.

    Raises:
        ValueError: `factor` is 1 or more, a mode is unknown, or `min_lr` has another length.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        check_optimizer(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = rates_of(optimizer)
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs do not count yet.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
        >>> plateau = plugrad.optim.lr_scheduler.ReduceLROnPlateau
        >>> schedule = plateau(optimizer, patience=0, cooldown=2)
        >>> for loss in (1.0, 1.0):
        ...     schedule.step(loss)
        >>> schedule.in_cooldown
        True
        """
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            limit = best * (1.0 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return a > limit if sign == 1 else a < limit

    def step(  # type: ignore[override]  # it needs the metric
        self, metrics: SupportsFloat, epoch: int | None = None
    ) -> None:
        """Takes the metric of the next epoch, or of the one that is given, which is deprecated.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
        >>> schedule = plugrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> schedule.step(2.0)
        >>> schedule.step(2.0)
        >>> schedule.get_last_lr()
        [0.1]
        """
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates_of(self.optimizer)

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            former = float(group["lr"])
            rate = max(former * self.factor, least)
            if former - rate > self.eps:
                set_rate(group, rate)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state from `state_dict`."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
