"""What the programs have in common: one model is trained for some steps, and every number kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

STEPS = 3


def numbers(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers, in order."""
    if isinstance(value, torch.Tensor):
        return [value.detach()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in numbers(part)]
    if isinstance(value, (bool, int, float)):
        return [torch.tensor(value, dtype=torch.float64)]
    return []


def train(
    model: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    optimizer: Any = None,
    steps: int = STEPS,
) -> list[torch.Tensor]:
    """Losses of some steps, the first step's gradients, and the parameters at the end."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        found.append(value.detach())
        if step == 0:
            found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        optimizer.step()
    return found + [parameter.detach() for parameter in model.parameters()]


def small_net() -> torch.nn.Module:
    """A network of two layers with weights determined by the seed."""
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def fit(optimizer: Callable[[Any], Any], steps: int = 10) -> list[torch.Tensor]:
    """The small network, fitted to points at random by an optimizer."""
    model, x, y = small_net(), torch.randn(16, 4), torch.randn(16, 3)
    return train(
        model, lambda: (model(x) - y).square().mean(), optimizer(model.parameters()), steps
    )
