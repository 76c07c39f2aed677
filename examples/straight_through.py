"""Train weights that are rounded to -1, 0 and 1: a custom autograd.Function.

Rounding has gradient zero almost everywhere. The straight-through estimator (Bengio et al. 2013)
rounds in the forward pass and passes the gradient through unchanged.
"""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor, nn, optim
from plugrad.nn import functional as F


class Ternary(plugrad.autograd.Function):
    """Rounds to the nearest of -1, 0 and 1; passes gradients where the input is in [-1.5, 1.5]."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return weight.round().clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (weight,) = ctx.saved_tensors
        return grad * (weight.abs() <= 1.5).to(grad.dtype)


class TernaryLinear(nn.Linear):
    """A linear layer that computes with rounded weights and keeps exact ones for training."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, Ternary.apply(self.weight), self.bias)


def main(steps: int = 300) -> list[list[float]]:
    """Recovers a ternary matrix from samples of its product; returns the rounded weights."""
    plugrad.manual_seed(0)
    truth = plugrad.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])
    layer = TernaryLinear(3, 2, bias=False)
    optimizer = optim.SGD(layer.parameters(), lr=0.05, momentum=0.5)
    for _ in range(steps):
        x = plugrad.randn(32, 3)
        loss = F.mse_loss(layer(x), x @ truth.t())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer.weight.detach().round().clamp(-1, 1).tolist()


if __name__ == "__main__":
    print("recovered:", main())
