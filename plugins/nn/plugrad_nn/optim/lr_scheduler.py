"""Learning rate schedules: call `step()` on one once per epoch, after the optimizer's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from plugrad_nn.optim.optimizer import Optimizer, ParamGroup

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "StepLR",
]


def _check_optimizer(value: object) -> None:
    if not isinstance(value, Optimizer):
        raise TypeError(f"{type(value).__name__} is not an Optimizer")


class LRScheduler:
    """Base class: `get_lr()` gives the rate of each group for epoch `last_epoch`.

    Schedules can be chained because they change the current rate rather than set it anew.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in param_groups when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self.step()

    def get_lr(self) -> list[float]:
        """The rate of each group at `last_epoch`."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that the last `step()` set."""
        return self._last_lr

    def step(self) -> None:
        """Goes on to the next epoch."""
        self.last_epoch += 1
        self._last_lr = self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    @property
    def _groups(self) -> list[ParamGroup]:
        return self.optimizer.param_groups


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        drops = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        factor = self.gamma if drops else 1.0
        return [group["lr"] * factor for group in self._groups]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = self.gamma if self.last_epoch > 0 else 1.0
        return [group["lr"] * factor for group in self._groups]


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; a list gives one function per group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        self.lr_lambdas = lr_lambda if isinstance(lr_lambda, list) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions, which stay code."""
        return {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}


class CosineAnnealingLR(LRScheduler):
    """Follows half a cosine from the initial rate to `eta_min` in `T_max` epochs, then back.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts, as a recurrence on the rate.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, period = self.last_epoch, self.T_max
        if epoch == 0:
            return [group["lr"] for group in self._groups]
        if (epoch - 1 - period) % (2 * period) == 0:
            # At the valley the recurrence would divide zero by zero.
            rise = (1 - math.cos(math.pi / period)) / 2
            return [
                group["lr"] + (base - self.eta_min) * rise
                for base, group in zip(self.base_lrs, self._groups, strict=True)
            ]
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [
            now / before * (group["lr"] - self.eta_min) + self.eta_min for group in self._groups
        ]
