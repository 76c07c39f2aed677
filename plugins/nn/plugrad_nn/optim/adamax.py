"""Adamax."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_betas, require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    State,
    Tensors,
    step_along_ratio,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["Adamax"]


class Adamax(ElementwiseOptimizer):
    """Adam with the largest gradient so far, which decays, in place of the root mean square.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        betas: the decay of the running mean, and of the largest gradient.
        eps: added to the size of each gradient.
        weight_decay: adds weight_decay * p to the gradient.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Kingma and Ba 2015, algorithm 2.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.Adamax([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000, 1.5000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        require_not_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        return {
            "step": self._count(group, parameter),
            "exp_avg": plugrad.zeros_like(parameter),
            "exp_inf": plugrad.zeros_like(parameter),
        }

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        beta1, beta2 = group["betas"]
        mean = s["exp_avg"].lerp_(g, 1 - beta1)
        largest = s["exp_inf"].mul_(beta2).maximum(g.abs().add_(group["eps"]))
        s["exp_inf"] = largest
        step_along_ratio(
            p, mean, largest, _to_scalar(group["lr"]) / (1 - beta1 ** s["step"]), group
        )
