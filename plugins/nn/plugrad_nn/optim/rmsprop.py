"""RMSprop."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    State,
    Tensors,
    step_along,
    step_along_ratio,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["RMSprop"]


class RMSprop(ElementwiseOptimizer):
    """Steps by the gradient over the root of its running mean square.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        alpha: the decay of the running mean square.
        eps: added to the root.
        weight_decay: adds weight_decay * p to the gradient.
        momentum: the decay of a running sum of steps, which is then the step.
        centered: takes the variance of the gradient in place of its mean square.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Hinton 2012, lecture 6e of Neural Networks for Machine Learning; Graves 2013, eq. 38-45.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.RMSprop([p], lr=0.125)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([-0.2500,  0.7500])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_not_negative(
            lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        state: State = {
            "step": self._count(group, parameter),
            "square_avg": plugrad.zeros_like(parameter),
        }
        if group["momentum"] > 0:
            state["momentum_buffer"] = plugrad.zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = plugrad.zeros_like(parameter)
        return state

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        alpha, lr = group["alpha"], _to_scalar(group["lr"])
        mean_square = s["square_avg"].mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            mean = s["grad_avg"].lerp_(g, 1 - alpha)
            root = mean_square.addcmul(mean, mean, value=-1).sqrt_().add(group["eps"])
        else:
            root = mean_square.sqrt().add(group["eps"])
        if group["momentum"] > 0:
            velocity = s["momentum_buffer"].mul_(group["momentum"]).addcdiv_(g, root)
            step_along(p, velocity, lr, group)
        else:
            step_along_ratio(p, g, root, lr, group)
