"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plugrad import Tensor
from plugrad_nn.optim.optimizer import (
    Optimizer,
    ParamGroup,
    as_number,
    check_switches,
    require_not_negative,
)


class SGD(Optimizer):
    """p -= lr * v, where v = momentum * v + (1 - dampening) * g and g is the gradient.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        momentum: 0 for plain gradient descent; the first v is g itself.
        dampening: takes from the gradient's share in v.
        weight_decay: adds weight_decay * p to g.
        nesterov: steps along g + momentum * v (Sutskever et al. 2013).
        maximize: climbs instead.
        foreach, fused: accepted, without effect; differentiable: only False.
    """

    capturable_numbers = ("lr",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        lr = as_number("lr", lr)
        check_switches(foreach=foreach, differentiable=differentiable, fused=fused)
        require_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _update(self, group: ParamGroup, pairs: list[tuple[Tensor, Tensor]]) -> None:
        descent = -group["lr"]
        momentum, weight_decay = group["momentum"], group["weight_decay"]
        for parameter, grad in pairs:
            direction = -grad if group["maximize"] else grad
            if weight_decay:
                direction = direction.add(parameter, alpha=weight_decay)
            if momentum:
                direction = self._with_momentum(parameter, direction, group)
            if isinstance(descent, Tensor):
                parameter.add_(direction * descent)
            else:
                parameter.add_(direction, alpha=descent)

    def _with_momentum(self, parameter: Tensor, direction: Tensor, group: ParamGroup) -> Tensor:
        state = self.state[parameter]
        velocity: Tensor | None = state.get("momentum_buffer")
        if velocity is None:
            velocity = state["momentum_buffer"] = direction.detach().clone()
        else:
            if velocity.device is not parameter.device:
                velocity = self._follow(parameter)["momentum_buffer"]
            velocity.mul_(group["momentum"]).add_(direction, alpha=1 - group["dampening"])
        if group["nesterov"]:
            return direction.add(velocity, alpha=group["momentum"])
        return velocity
