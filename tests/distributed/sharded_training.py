"""Training with fully_shard on ranks that are threads, for comparison with one process."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import plugrad.distributed as dist
from plugrad import Tensor, nn
from plugrad.distributed.fsdp import fully_shard
from tests.distributed.training import Make, loss_of, numbers, part, values


def sharded(model: Any, **options: Any) -> Any:
    """Each linear layer a group of its own, and the model around them."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def whole(tensor: Any) -> Any:
    """A DTensor's elements as an array, on each rank."""
    return tensor.detach().full_tensor().numpy().copy()


def wholes(model: Any) -> list[Any]:
    return [whole(parameter) for parameter in model.parameters()]


def batch(step: int, size: int = 12) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a step."""
    return values(100 + step, size, 4), values(200 + step, size, 3)


def on_ranks(ranks: int, model: Any, program: Callable[[Any], Any]) -> list[Any]:
    """What a program gives by rank for copies of a model, which are made before."""
    copies = [copy.deepcopy(model) for _ in range(ranks)]
    return dist.run_ranks(lambda: program(copies[dist.get_rank()]), ranks)


def train(
    net: Any,
    make: Make,
    steps: int = 4,
    loss: Callable[[Any, Tensor, Tensor], Tensor] | None = None,
) -> Any:
    """Train on this rank's share of the batches."""
    optimizer = make(p for p in net.parameters() if p.requires_grad)
    for step in range(steps):
        optimizer.zero_grad()
        x, y = map(part, batch(step))
        (loss_of(net(x), y) if loss is None else loss(net, x, y)).backward()
        optimizer.step()
    return optimizer


def train_alone(
    net: Any,
    make: Make,
    steps: int = 4,
    loss: Callable[[Any, Tensor, Tensor], Tensor] | None = None,
) -> Any:
    """The same training on whole batches."""
    optimizer = make(p for p in net.parameters() if p.requires_grad)
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batch(step)
        (loss_of(net(x), y) if loss is None else loss(net, x, y)).backward()
        optimizer.step()
    return optimizer


def alone(model: Any, make: Any, **options: Any) -> list[Any]:
    """Parameters after training on one process."""
    net = copy.deepcopy(model)
    train_alone(net, make, **options)
    return numbers(net.parameters())
