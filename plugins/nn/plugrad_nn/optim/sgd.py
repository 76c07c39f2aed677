"""Stochastic gradient descent with momentum."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative, require_one_way
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    Pair,
    Rule,
    State,
    Tensors,
    at_once,
    step_along,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["SGD"]


class SGD(ElementwiseOptimizer):
    """p -= lr * v, where v = momentum * v + (1 - dampening) * g and g is the gradient.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        momentum: 0 for plain gradient descent; the first v is g itself.
        dampening: takes from the gradient's share in v.
        weight_decay: adds weight_decay * p to g.
        nesterov: steps along g + momentum * v (Sutskever et al. 2013).
        maximize: climbs instead.
        foreach, fused: update all parameters that are alike together.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.
        RuntimeError: `fused` together with `foreach` or `differentiable`.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.SGD([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000, 1.0000])
    """

    capturable_numbers = ("lr",)
    numbers = ()
    splits_complex = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
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
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        require_one_way(foreach=foreach, differentiable=differentiable, fused=fused)

    def _state_of(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        if not group["momentum"]:
            return {}
        state = self.state[parameter]
        if "momentum_buffer" in state:
            buffer = state["momentum_buffer"]
            if buffer is None:
                del state["momentum_buffer"]  # as PyTorch stores it
            elif buffer.device is not parameter.device:
                self._follow(state, parameter.device)
        return state

    def _update_plainly(
        self, group: ParamGroup, parameter: Tensor, grad: Tensor, rule: Rule
    ) -> None:
        # There is no count, and the rule writes to the buffer itself.
        rule(group, parameter, grad, self._state_of(group, parameter, grad))

    def _step_at_once(self, group: ParamGroup, pairs: list[Pair]) -> bool:
        lr, weight_decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        if isinstance(lr, Tensor) or isinstance(weight_decay, Tensor):
            return False
        parameters, grads = [p for p, _ in pairs], [g for _, g in pairs]
        buffers: list[Tensor] = []
        if momentum:
            for p, g in pairs:
                buffer = self._state_of(group, p, g).get("momentum_buffer")
                if buffer is None:
                    return False  # the first step makes it
                buffers.append(buffer)
        lists = (parameters, grads, buffers) if momentum else (parameters, grads)
        if not at_once("_update_sgd", *lists):
            return False
        plugrad._update_sgd(
            parameters,
            grads,
            buffers,
            lr=lr,
            momentum=momentum,
            dampening=group["dampening"],
            weight_decay=weight_decay,
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        return True

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        return {}

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        momentum = group["momentum"]
        if momentum:
            v = s.get("momentum_buffer")
            if v is None:
                v = s["momentum_buffer"] = g.detach().clone()
            else:
                v.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            g = g.add(v, alpha=momentum) if group["nesterov"] else v
        step_along(p, g, _to_scalar(group["lr"]), group)
