"""Schedules along cosines, with and without restarts.

Source: Loshchilov and Hutter 2017, equation 5.
"""

from __future__ import annotations

import math

from plugrad_nn.optim.lr_scheduler.base import LRScheduler, Rate, rates_of
from plugrad_nn.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Follows half a cosine from the initial rate to `eta_min` in `T_max` epochs, then back.

    Args:
        optimizer: the optimizer to schedule.
        T_max: how many epochs half a cosine takes.
        eta_min: the least rate.
        last_epoch: the epoch to resume from; -1 to begin.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(round(schedule.get_last_lr()[0], 3))
    0.854
    0.5
    0.146
    0.0
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        epoch, period, least = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return rates_of(self.optimizer)
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - period) % (2 * period) == 0:
            # At the valley the recurrence would divide zero by zero.
            rise = (1 - math.cos(math.pi / period)) / 2
            return [
                group["lr"] + (base - least) * rise
                for base, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            ]
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [
            now / before * (group["lr"] - least) + least for group in self.optimizer.param_groups
        ]

    def _get_closed_form_lr(self) -> list[Rate]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Follows half a cosine to `eta_min` in `T_0` epochs, then restarts, `T_mult` times longer.
    `step(epoch)` accepts fractions of epochs, such as `epoch + batch / batches`.

    Args:
        optimizer: the optimizer to schedule.
        T_0: how many epochs the first half cosine takes.
        T_mult: how many times longer each next one is.
        eta_min: the least rate.
        last_epoch: the epoch to resume from; -1 to begin.

    Raises:
        ValueError: `T_0`, `T_mult` or `eta_min` is out of its range.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advances to the next epoch, or to the given one."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr)

    def _jump(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            longer = self.T_mult**restarts
            self.T_cur = epoch - self.T_0 * (longer - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * longer
