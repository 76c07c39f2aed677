"""Steps of optimizers, composed of operators on one tensor; a backend's kernel gives the same
bits."""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import Any


def update_sgd(
    self: Sequence[Any],
    grads: Sequence[Any],
    momentum_buffers: Sequence[Any],
    lr: Any,
    momentum: Any,
    dampening: Any,
    weight_decay: Any,
    nesterov: bool,
    maximize: bool,
) -> None:
    for place, (p, g) in enumerate(zip(self, grads, strict=True)):
        g = _decayed(p, g, weight_decay, maximize)
        if momentum_buffers:
            v = momentum_buffers[place]
            v.mul_(momentum).add_(g, alpha=1 - dampening)
            g = g.add(v, alpha=momentum) if nesterov else v
        p.add_(g, alpha=-lr)


def update_adam(
    self: Sequence[Any],
    grads: Sequence[Any],
    exp_avgs: Sequence[Any],
    exp_avg_sqs: Sequence[Any],
    max_exp_avg_sqs: Sequence[Any],
    rates: Sequence[Any],
    epsilons: Sequence[Any],
    beta1: Any,
    beta2: Any,
    decay: Any,
    weight_decay: Any,
    maximize: bool,
) -> None:
    lists = (self, grads, exp_avgs, exp_avg_sqs, rates, epsilons)
    for place, (p, g, mean, square, rate, epsilon) in enumerate(zip(*lists, strict=True)):
        if decay:
            p.mul_(1 - decay)
        g = _decayed(p, g, weight_decay, maximize)
        mean.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if max_exp_avg_sqs:
            largest = max_exp_avg_sqs[place]
            largest.copy_(largest.maximum(square))
            square = largest
        p.addcdiv_(mean, square.sqrt().add(epsilon), value=-rate)


def _decayed(p: Any, g: Any, weight_decay: Any, maximize: bool) -> Any:
    """The gradient with weight decay, to minimize or maximize."""
    if maximize:
        g = -g
    return g.add(p, alpha=weight_decay) if weight_decay else g
