"""Schedules that multiply the rate: by functions, in steps, along lines and powers."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from plugrad_nn.optim.lr_scheduler.base import (
    LRScheduler,
    Rate,
    check_optimizer,
    rates_of,
    state_of_function,
)
from plugrad_nn.optim.optimizer import Optimizer

Factor: TypeAlias = Callable[[int], float]


class _FunctionLR(LRScheduler):
    """A schedule of a function of the epoch for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1
    ) -> None:
        check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        """Nothing is checked before the first call."""

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of callable objects, their attributes."""
        state = super().state_dict()
        state.pop("lr_lambdas")
        state["lr_lambdas"] = list(map(state_of_function, self.lr_lambdas))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state from `state_dict`."""
        state = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)
        self.__dict__.update(state)


class LambdaLR(_FunctionLR):
    """The initial rate times `lr_lambda(epoch)`; a list gives one function per group.

    Args:
        optimizer: the optimizer to schedule.
        lr_lambda: gives the factor for an epoch; one function, or one for each group.
        last_epoch: the epoch to resume from; -1 to begin.

    Raises:
        ValueError: there is another number of functions than of groups.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]


class MultiplicativeLR(_FunctionLR):
    """The rate before times `lr_lambda(epoch)`; a list gives one function per group.

    Args:
        optimizer: the optimizer to schedule.
        lr_lambda: gives the factor for an epoch; one function, or one for each group.
        last_epoch: the epoch to resume from; -1 to begin.

    Raises:
        ValueError: there is another number of functions than of groups.
        TypeError: one of them cannot be called.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.25]
    """

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        if self._is_initial:
            return rates_of(self.optimizer)
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * factor(self.last_epoch) for group, factor in pairs]


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs.

    Args:
        optimizer: the optimizer to schedule.
        step_size: how many epochs a rate lasts.
        gamma: the factor of the rates.
        last_epoch: the epoch to resume from; -1 to begin.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return rates_of(self.optimizer)
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by `gamma` at each of `milestones`.

    Args:
        optimizer: the optimizer to schedule.
        milestones: the epochs at which rates change; repeated ones count repeatedly.
        gamma: the factor of the rates.
        last_epoch: the epoch to resume from; -1 to begin.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 2], gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        if self.last_epoch not in self.milestones:
            return rates_of(self.optimizer)
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The initial rate times `factor` until `total_iters` epochs have passed.

    Args:
        optimizer: the optimizer to schedule.
        factor: the factor of the initial rates; in [0, 1].
        total_iters: how many epochs that lasts.
        last_epoch: the epoch to resume from; -1 to begin.

    Raises:
        ValueError: `factor` is not in [0, 1].

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.5, 0.5, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return rates_of(self.optimizer)
        return self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        over = self.last_epoch >= self.total_iters
        return [base * (self.factor + over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the rate by a factor that goes from `start_factor` to `end_factor` in equal steps.

    Args:
        optimizer: the optimizer to schedule.
        start_factor: the first factor; in (0, 1].
        end_factor: the last factor; in [0, 1].
        total_iters: how many epochs it takes to get there.
        last_epoch: the epoch to resume from; -1 to begin.

    Raises:
        ValueError: a factor is out of its range.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.5, 0.75, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates_of(self.optimizer)
        rise = self.end_factor - self.start_factor
        # The factor of this epoch divided by the previous one's.
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [
            base * (self.start_factor + rise * done / self.total_iters) for base in self.base_lrs
        ]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` every epoch.

    Args:
        optimizer: the optimizer to schedule.
        gamma: the factor of the rates.
        last_epoch: the epoch to resume from; -1 to begin.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        return rates_of(self.optimizer) if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial rate times (1 - epoch / total_iters)**power, 0 from there on.

    Args:
        optimizer: the optimizer to schedule.
        total_iters: after how many epochs rates are 0.
        power: the exponent of the polynomial.
        last_epoch: the epoch to resume from; -1 to begin.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.ones(1)], lr=1.0)
    >>> schedule = plugrad.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.75, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The rate of each group."""
        self._warn_outside_of_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates_of(self.optimizer)
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]
