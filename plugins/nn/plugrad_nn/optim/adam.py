"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.optimizer import (
    Optimizer,
    ParamGroup,
    as_number,
    check_switches,
    require_not_negative,
)


class Adam(Optimizer):
    """Steps by the running mean of the gradient over the root of its running mean square.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        betas: the decay of the running mean and of the running mean square.
        eps: added to the root.
        weight_decay: adds weight_decay * p to the gradient (or see `decoupled_weight_decay`).
        amsgrad: uses the largest mean square so far (Reddi et al. 2018).
        maximize: climbs instead.
        decoupled_weight_decay: shrinks p by lr * weight_decay instead, which is AdamW.
        foreach, capturable, fused: accepted, without effect; differentiable: only False.

    Source: Kingma and Ba 2015, algorithm 1, with both bias corrections.
    """

    capturable_numbers = ("lr", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        lr = as_number("lr", lr)
        check_switches(foreach=foreach, differentiable=differentiable, fused=fused)
        require_not_negative(lr=lr, eps=eps)
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        require_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _update(self, group: ParamGroup, pairs: list[tuple[Tensor, Tensor]]) -> None:
        lr, eps, weight_decay = group["lr"], group["eps"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        for parameter, grad in pairs:
            if group["maximize"]:
                grad = -grad
            state = self.state[parameter]
            if not state:
                state["step"] = 0
                state["exp_avg"] = plugrad.zeros_like(parameter)
                state["exp_avg_sq"] = plugrad.zeros_like(parameter)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = plugrad.zeros_like(parameter)
            elif state["exp_avg"].device is not parameter.device:
                state = self._follow(parameter)
            state["step"] += 1
            step = state["step"]
            if weight_decay:
                if group["decoupled_weight_decay"]:
                    parameter.mul_(1 - lr * weight_decay)
                else:
                    grad = grad.add(parameter, alpha=weight_decay)
            mean, mean_square = state["exp_avg"], state["exp_avg_sq"]
            mean.lerp_(grad, 1 - beta1)
            mean_square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["amsgrad"]:
                largest = state["max_exp_avg_sq"]
                mean_square = largest.copy_(plugrad.maximum(largest, mean_square))
            # lr * (m / c1) / (sqrt(v / c2) + eps) with the corrections moved into the scalars.
            correction = (1 - beta2**step) ** 0.5
            denominator = mean_square.sqrt().add_(eps * correction)
            step_size = lr * correction / (1 - beta1**step)
            if isinstance(step_size, Tensor):
                parameter.sub_(mean * step_size / denominator)
            else:
                parameter.addcdiv_(mean, denominator, value=-step_size)


class AdamW(Adam):
    """Adam with weight decay that acts on the parameters, not through the gradient.

    Source: Loshchilov and Hutter 2019, algorithm 2.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
