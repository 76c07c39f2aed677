"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import (
    check_tensor,
    require_betas,
    require_not_negative,
    require_one_way,
)
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    Pair,
    State,
    Tensors,
    at_hand,
    at_once,
    step_along_ratio,
    value_of,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, StateDict, _to_scalar

__all__ = ["Adam", "AdamW"]


class Adam(ElementwiseOptimizer):
    """Steps by the running mean of the gradient over the root of its running mean square.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        betas: the decay of the running mean and of the running mean square.
        eps: added to the root.
        weight_decay: adds weight_decay * p to the gradient (or see `decoupled_weight_decay`).
        amsgrad: uses the largest mean square so far (Reddi et al. 2018).
        maximize: climbs instead.
        foreach, fused: update all parameters that are alike together.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.
        decoupled_weight_decay: shrinks p by lr * weight_decay instead, which is AdamW.

    Raises:
        ValueError: an option is out of its range.
        RuntimeError: `fused` together with `foreach` or `differentiable`.

    Source: Kingma and Ba 2015, algorithm 1, with both bias corrections.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.Adam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000, 1.5000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        require_not_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_not_negative(weight_decay=weight_decay)
        _check_kinds(betas, foreach and not capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(map(_to_scalar, betas)),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )
        require_one_way(foreach=foreach, differentiable=differentiable, fused=fused)

    def _check_gradient(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> None:
        if grad.is_sparse:
            raise RuntimeError(
                "Adam does not support sparse gradients, please consider SparseAdam instead"
            )
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        state: State = {
            "step": self._count(group, parameter),
            "exp_avg": plugrad.zeros_like(parameter),
            "exp_avg_sq": plugrad.zeros_like(parameter),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = plugrad.zeros_like(parameter)
        return state

    def _step_at_once(self, group: ParamGroup, pairs: list[Pair]) -> bool:
        lr, weight_decay = group["lr"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        numbers = (lr, weight_decay, beta1)
        if group["capturable"] or any(isinstance(number, Tensor) for number in numbers):
            return False
        parameters, grads = [p for p, _ in pairs], [g for _, g in pairs]
        states = [self._state_of(group, p, g) for p, g in pairs]
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]
        if not all(name in state for state in states for name in names):
            return False
        lists = [[state[name] for state in states] for name in names]
        if not at_once("_update_adam", parameters, grads, *lists):
            return False
        rates, epsilons = [], []
        for state in states:
            step = value_of(self._advance(group, state)["step"], group)
            correction = (1 - beta2**step) ** 0.5
            rates.append(lr * correction / (1 - beta1**step))
            epsilons.append(group["eps"] * correction)
        decoupled = group["decoupled_weight_decay"] and weight_decay
        plugrad._update_adam(
            parameters,
            grads,
            lists[0],
            lists[1],
            lists[2] if group["amsgrad"] else [],
            rates,
            epsilons,
            beta1=beta1,
            beta2=beta2,
            decay=lr * weight_decay if decoupled else 0.0,
            weight_decay=0.0 if decoupled else weight_decay,
            maximize=group["maximize"],
        )
        return True

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        beta1, beta2 = group["betas"]
        if isinstance(beta1, Tensor):
            beta1, beta2 = at_hand(beta1, group), at_hand(beta2, group)
        mean, mean_square = s["exp_avg"], s["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        if isinstance(beta2, Tensor):
            mean_square.lerp_(g * g, 1 - beta2)
        else:
            mean_square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if group["amsgrad"]:
            mean_square = s["max_exp_avg_sq"] = s["max_exp_avg_sq"].maximum(mean_square)
        step = s["step"]
        # lr * (m / c1) / (sqrt(v / c2) + eps) with the corrections moved into the numbers.
        correction = (1 - beta2**step) ** 0.5
        root = mean_square.sqrt().add(group["eps"] * correction)
        rate = _to_scalar(group["lr"]) * correction / (1 - beta1**step)
        step_along_ratio(p, mean, root, rate, group)


def _check_kinds(betas: tuple[Any, Any], only_numbers: bool | None) -> None:
    kinds = {isinstance(beta, Tensor) for beta in betas}
    if len(kinds) > 1 or not all(isinstance(beta, (float, Tensor)) for beta in betas):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor) and only_numbers:
            raise ValueError(
                f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_tensor(f"betas[{index}]", beta)


class AdamW(Adam):
    """Adam with weight decay that acts on the parameters, not through the gradient.

    Args:
        params, lr, betas, eps, amsgrad, maximize: see `Adam`.
        weight_decay: the fraction of each parameter that a step subtracts, times `lr`.
        foreach, capturable, differentiable, fused: see `Adam`.

    Source: Loshchilov and Hutter 2019, algorithm 2.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.ones(1))
    >>> optimizer = plugrad.optim.AdamW([p], lr=0.5, weight_decay=0.5)
    >>> p.sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.2500])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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

    def __setstate__(self, state: StateDict) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
