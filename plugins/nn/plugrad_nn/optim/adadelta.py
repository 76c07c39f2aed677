"""Adadelta."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    State,
    Tensors,
    step_along,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["Adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Steps by the gradient times the ratio of two running roots: of past steps and of gradients.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate, by which the step is multiplied at the end.
        rho: the decay of both running mean squares.
        eps: added to both mean squares.
        weight_decay: adds weight_decay * p to the gradient.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Zeiler 2012, algorithm 1.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.Adadelta([p], lr=1.0)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.9968, 1.9968])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_not_negative(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        require_not_negative(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        return {
            "step": self._count(group, parameter),
            "square_avg": plugrad.zeros_like(parameter),
            "acc_delta": plugrad.zeros_like(parameter),
        }

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        rho, eps = group["rho"], group["eps"]
        gradients, steps = s["square_avg"], s["acc_delta"]
        gradients.mul_(rho).addcmul_(g, g, value=1 - rho)
        delta = (steps.add(eps).sqrt_() / gradients.add(eps).sqrt_()) * g
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        step_along(p, delta, _to_scalar(group["lr"]), group)
