"""LRScheduler: epochs, the rates that a schedule sets, state dicts."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from plugrad import Tensor
from plugrad_nn.optim.optimizer import Optimizer, ParamGroup, _to_scalar, stepped

# A learning rate: a number, or a tensor that the optimizer reads at each step.
Rate: TypeAlias = Any

_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)


def check_optimizer(value: object) -> None:
    """Raises TypeError for anything but an optimizer."""
    if not isinstance(value, Optimizer):
        raise TypeError(f"{type(value).__name__} is not an Optimizer")


def copied(rate: Rate) -> Rate:
    """A rate that does not change with the optimizer's tensor."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def rates_of(optimizer: Optimizer, key: str = "lr") -> list[Rate]:
    """An option of every group."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_rate(group: ParamGroup, rate: Rate, key: str = "lr") -> None:
    """Sets an option; a tensor stays the same object."""
    if isinstance(group[key], Tensor):
        group[key].fill_(_to_scalar(rate))
    else:
        group[key] = rate


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """An argument that is one value for all groups, or a list of one for each.

    Raises:
        ValueError: the list has another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    elif len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return list(map(copied, value))


def state_of_function(function: Any) -> dict[str, Any] | None:
    """The state dict's entry for a callable object; functions store nothing."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class LRScheduler:
    """Base class: `get_lr()` gives the rate of each group for epoch `last_epoch`.

    Most schedules compute a rate from the previous one, so several of them can act on one
    optimizer. Schedules that can compute the rate of any epoch also define `_get_closed_form_lr()`.

    Args:
        optimizer: the optimizer to schedule.
        last_epoch: -1 to begin; otherwise the epoch to resume from, which needs "initial_lr" in the
            groups.

    Raises:
        TypeError: that is not an optimizer.
        KeyError: a group has no "initial_lr" to resume with.

    >>> import plugrad
    >>> class Halves(plugrad.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> schedule = Halves(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming "
                    "scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = rates_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        stepped.setdefault(optimizer, False)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
        >>> schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> schedule.state_dict()["step_size"], "optimizer" in schedule.state_dict()
        (2, False)
        """
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state from `state_dict`.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
        >>> schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 7})
        >>> schedule.last_epoch
        7
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """The rates that the last `step()` set.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
        >>> plugrad.optim.lr_scheduler.StepLR(optimizer, step_size=1).get_last_lr()
        [1.0]
        """
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """The rate of each group at `last_epoch`, computed from the one before."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advances to the next epoch, or to the given one, which is deprecated.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
        >>> schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [1.0, 0.5, 0.5, 0.25]
        """
        if self._step_count == 1:
            if not getattr(self.optimizer.step, "hooked", False):
                warnings.warn(_OVERRIDDEN, UserWarning, stacklevel=2)
            elif not stepped.get(self.optimizer, True):
                warnings.warn(_ORDER, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        rates: Callable[[], list[Rate]] = self.get_lr
        if epoch is None:
            self.last_epoch += 1
        else:
            self.last_epoch = epoch
            rates = getattr(self, "_get_closed_form_lr", rates)
        self._set(rates)

    def _set(self, rates: Callable[[], list[Rate]]) -> None:
        with self._within_step():
            values = rates()
        for group, rate in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, rate)
        self._last_lr = rates_of(self.optimizer)

    @contextlib.contextmanager
    def _within_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_of_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _scaled(self, factor: float) -> list[Rate]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The former name of LRScheduler, from which programs derive classes.

    >>> import plugrad
    >>> class Halves(plugrad.optim.lr_scheduler._LRScheduler):
    ...     def get_lr(self):
    ...         return [0.5**self.last_epoch]
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> Halves(optimizer).get_last_lr()
    [1.0]
    """
