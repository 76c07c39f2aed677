"""Models and data for tests of data parallel training, the same on all ranks and on one process."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
import plugrad.distributed as dist
from plugrad import Tensor, nn
from plugrad.nn.parallel import DistributedDataParallel

Make = Callable[[Any], Any]


def values(seed: int, *shape: int) -> Tensor:
    """Numbers that do not depend on the global generator, which ranks that are threads share."""
    made = np.random.default_rng(seed).standard_normal(shape)
    return plugrad.tensor(made, dtype=plugrad.float64)


def filled(model: Any) -> Any:
    """The model in float64, with parameters that depend on their places only."""
    model = model.double()
    with plugrad.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            parameter.copy_(0.5 * values(seed, *parameter.shape))
    return model


def mlp() -> Any:
    return filled(
        nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    )


def part(batch: Tensor) -> Tensor:
    """This rank's share of a batch."""
    return batch.chunk(dist.get_world_size())[dist.get_rank()]


def loss_of(output: Any, target: Tensor) -> Tensor:
    return ((output - target) ** 2).mean()


def numbers(tensors: Any) -> list[Any]:
    return [tensor.detach().numpy().copy() for tensor in tensors]


def agree(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-12) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def sgd(parameters: Any) -> Any:
    return plugrad.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters: Any) -> Any:
    return plugrad.optim.Adam(parameters, lr=0.05)


def trained_on_one(model: Any, make: Make, steps: int = 4, size: int = 12) -> list[Any]:
    """Parameters after training on whole batches."""
    optimizer = make(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model(values(100 + step, size, 4)), values(200 + step, size, 3)).backward()
        optimizer.step()
    return numbers(model.parameters())


def trained_on_ranks(
    model: Any,
    make: Make,
    ranks: int,
    steps: int = 4,
    size: int = 12,
    after: Callable[[DistributedDataParallel], Any] | None = None,
    **options: Any,
) -> list[Any]:
    """By rank, parameters after the same training on shares of the batches; or what `after` says of
    the wrapped model."""
    copies = [copy.deepcopy(model) for _ in range(ranks)]

    def program() -> Any:
        net = DistributedDataParallel(copies[dist.get_rank()], **options)
        optimizer = make(net.parameters())
        for step in range(steps):
            optimizer.zero_grad()
            x, y = part(values(100 + step, size, 4)), part(values(200 + step, size, 3))
            loss_of(net(x), y).backward()
            optimizer.step()
        return numbers(net.parameters()) if after is None else after(net)

    return dist.run_ranks(program, ranks)
