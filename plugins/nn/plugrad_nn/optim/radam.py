"""RAdam."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_betas, require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    Number,
    State,
    Tensors,
    step_along,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar
from plugrad_nn.optim.tensor_list import each

__all__ = ["RAdam"]


class RAdam(ElementwiseOptimizer):
    """Adam without the mean square until there are enough gradients to estimate its variance.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        betas: the decay of the running mean and of the running mean square.
        eps: added to the root.
        weight_decay: adds weight_decay * p to the gradient (or see `decoupled_weight_decay`).
        decoupled_weight_decay: shrinks p by lr * weight_decay instead, as AdamW does.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Liu et al. 2020, algorithm 2.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.RAdam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0., 0.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        return {
            "step": self._count(group, parameter),
            "exp_avg": plugrad.zeros_like(parameter),
            "exp_avg_sq": plugrad.zeros_like(parameter),
        }

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        (beta1, beta2), step = group["betas"], s["step"]
        mean = s["exp_avg"].lerp_(g, 1 - beta1)
        mean_square = s["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        correction = 1 - beta2**step
        # The effective number of gradients in the mean square: its limit and its current value.
        most = 2 / (1 - beta2) - 1
        now = most - 2 * step * beta2**step / correction
        direction = mean / (1 - beta1**step) * _to_scalar(group["lr"])
        known = now > 5.0
        if isinstance(known, bool):
            if known:
                root = mean_square.sqrt().add(group["eps"])
                direction = direction * (root.reciprocal() * correction**0.5)
                direction = direction * _rectification(now, most)
        else:
            root = mean_square.sqrt().add(group["eps"])
            adapted = root.reciprocal() * (correction**0.5 * _rectification(now, most))
            direction = direction * each(lambda rate: plugrad.where(known, rate, 1.0), adapted)
        step_along(p, direction, 1.0, group)


def _rectification(now: Number, most: Number) -> Number:
    above = (now - 4) * (now - 2) * most
    return (above / ((most - 4) * (most - 2) * now)) ** 0.5
