"""NAdam."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_betas, require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    State,
    Tensors,
    step_along_ratio,
    value_of,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["NAdam"]


class NAdam(ElementwiseOptimizer):
    """Adam with Nesterov momentum.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        betas: the decay of the running mean and of the running mean square.
        eps: added to the root.
        weight_decay: adds weight_decay * p to the gradient (or see `decoupled_weight_decay`).
        momentum_decay: how fast the momentum comes near betas[0].
        decoupled_weight_decay: shrinks p by lr * weight_decay instead, as AdamW does.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Dozat 2016, algorithm 2, with the schedule of its section 3.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.NAdam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.4718, 1.4718])
    """

    numbers = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_not_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        return {
            "step": self._count(group, parameter),
            "mu_product": self._count(group, parameter, 1.0),
            "exp_avg": plugrad.zeros_like(parameter),
            "exp_avg_sq": plugrad.zeros_like(parameter),
        }

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        beta1, beta2 = group["betas"]
        lr, step, decay = _to_scalar(group["lr"]), s["step"], group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = value_of(s["mu_product"].mul_(mu), group)
        mean = s["exp_avg"].lerp_(g, 1 - beta1)
        mean_square = s["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = (mean_square / (1 - beta2**step)).sqrt().add(group["eps"])
        step_along_ratio(p, g, root, lr * (1.0 - mu) / (1.0 - product), group)
        step_along_ratio(p, mean, root, lr * mu_next / (1.0 - product * mu_next), group)
