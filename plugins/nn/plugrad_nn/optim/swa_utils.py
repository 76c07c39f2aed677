"""Averages of weights: models, their schedule, and the statistics of their batch norms.

Source: Izmailov et al. 2018 (stochastic weight averaging); Polyak and Juditsky 1992.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.normalization import BatchNorm1d
from plugrad_nn.optim.lr_scheduler.base import LRScheduler, per_group
from plugrad_nn.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

# Of 1, 2 and 3 dimensions.
_BatchNorm: Any = BatchNorm1d.__base__

Average: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]
AverageOfLists: TypeAlias = Callable[[list[Tensor], list[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average: decay * average + (1 - decay) * new.

    Args:
        decay: the weight of the old average, between 0 and 1.

    >>> import plugrad
    >>> average = plugrad.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(plugrad.tensor(4.0), plugrad.tensor(8.0), 1)
    tensor(5.)
    """
    _check_decay(decay)

    @plugrad.no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        averaged: Tensor = decay * ema_param + (1 - decay) * current_param
        return averaged

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all models so far.

    >>> import plugrad
    >>> average = plugrad.optim.swa_utils.get_swa_avg_fn()
    >>> average(plugrad.tensor(4.0), plugrad.tensor(8.0), 1)
    tensor(6.)
    """

    @plugrad.no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        averaged: Tensor = averaged_param + (current_param - averaged_param) / (num_averaged + 1)
        return averaged

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageOfLists:
    """The exponential moving average, in place, on lists of tensors.

    Args:
        decay: the weight of the old average, between 0 and 1.

    >>> import plugrad
    >>> averages = [plugrad.tensor([4.0])]
    >>> plugrad.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [plugrad.tensor([8.0])], 1)
    >>> averages
    [tensor([5.])]
    """
    _check_decay(decay)

    @plugrad.no_grad()
    def ema_update(ema_params: list[Tensor], current_params: list[Tensor], _: Any) -> None:
        if _can_lerp(ema_params[0]):
            plugrad._foreach_lerp_(ema_params, current_params, 1 - decay)
        else:
            for average, new in zip(ema_params, current_params, strict=True):
                average.copy_(average * decay + new * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> AverageOfLists:
    """The mean of all models so far, in place, on lists of tensors.

    >>> import plugrad
    >>> averages = [plugrad.tensor([4.0])]
    >>> plugrad.optim.swa_utils.get_swa_multi_avg_fn()(averages, [plugrad.tensor([8.0])], 1)
    >>> averages
    [tensor([6.])]
    """

    @plugrad.no_grad()
    def swa_update(
        averaged_params: list[Tensor], current_params: list[Tensor], num_averaged: Any
    ) -> None:
        if _can_lerp(averaged_params[0]):
            plugrad._foreach_lerp_(averaged_params, current_params, 1 / (float(num_averaged) + 1))
        else:
            for average, new in zip(averaged_params, current_params, strict=True):
                average.copy_(average + (new - average) / (num_averaged + 1))

    return swa_update


def _can_lerp(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


class AveragedModel(Module):
    """A copy of a model with parameters averaged over all updates.

    Args:
        model: the model to average.
        device: the device of the average.
        avg_fn: gives the new average of (average, parameter, count); the mean by default.
        multi_avg_fn: does that in place for lists of tensors of one dtype and device.
        use_buffers: also average the buffers; otherwise they are the last model's.

    Raises:
        AssertionError: both `avg_fn` and `multi_avg_fn` are given.

    >>> import plugrad
    >>> from plugrad.optim.swa_utils import AveragedModel
    >>> model = plugrad.nn.Linear(1, 1, bias=False)
    >>> average = AveragedModel(model)
    >>> for weight in (1.0, 2.0, 6.0):
    ...     _ = plugrad.nn.init.constant_(model.weight, weight)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged.item()
    (3.0, 3)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageOfLists | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", plugrad.tensor(0, dtype=plugrad.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Adds a model to the average; the first one becomes the average.

        >>> import plugrad
        >>> model = plugrad.nn.Linear(1, 1, bias=False)
        >>> averaged = plugrad.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 3.0):
        ...     _ = plugrad.nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.tolist()
        [[2.0]]
        """
        pairs = [
            (average.detach(), new.detach().to(average.device))
            for average, new in zip(self._averaged(self.module), self._averaged(model), strict=True)
        ]
        count = self.n_averaged
        if count == 0:
            for average, new in pairs:
                average.copy_(new)
        elif self.multi_avg_fn is not None:
            alike: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, new in pairs:
                averages, news = alike.setdefault((average.device, average.dtype), ([], []))
                averages.append(average)
                news.append(new)
            for (device, _), (averages, news) in alike.items():
                self.multi_avg_fn(averages, news, count.to(device))
        else:
            update = self.avg_fn or get_swa_avg_fn()
            for average, new in pairs:
                average.copy_(update(average, new, count.to(average.device)))
        if not self.use_buffers:
            buffers = zip(self.module.buffers(), model.buffers(), strict=True)
            for average, new in buffers:
                average.detach().copy_(new.detach().to(average.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        if self.use_buffers:
            return chain(model.parameters(), model.buffers())
        return model.parameters()


@plugrad.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recomputes the running statistics of a model's batch norms from all data.

    Args:
        loader: batches, or tuples and lists with a batch as the first member.
        model: the model that gets new statistics; its training mode is restored.
        device: where batches are moved to before.

    >>> import plugrad
    >>> model = plugrad.nn.BatchNorm1d(1)
    >>> plugrad.optim.swa_utils.update_bn([plugrad.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the mean over batches
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves from the current rates to `swa_lr` within `anneal_epochs`, and stays there.

    Args:
        optimizer: the optimizer to schedule.
        swa_lr: the last rate, one number or one for each group.
        anneal_epochs: how long it takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: -1 to begin.

    >>> import plugrad
    >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=1.0)
    >>> schedule = plugrad.optim.swa_utils.SWALR(
    ...     optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear"
    ... )
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.75]
    [0.5]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """The weight of the final rate in the rate of a step."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """The rate of each group at this step."""
        self._warn_outside_of_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
