"""Adagrad."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative, require_one_way
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    State,
    Tensors,
    step_along_ratio,
    value_of,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["Adagrad"]


class Adagrad(ElementwiseOptimizer):
    """Steps by the gradient over the root of the sum of all its squares so far.

    Args:
        params: parameters or parameter groups.
        lr: the learning rate.
        lr_decay: divides the rate by 1 + lr_decay * (number of steps before).
        weight_decay: adds weight_decay * p to the gradient.
        initial_accumulator_value: the initial value of the sum.
        eps: added to the root.
        foreach, fused: update all parameters that are alike together.
        maximize: climbs instead.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Duchi, Hazan and Singer 2011.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.Adagrad([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000, 1.5000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        require_not_negative(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        require_one_way(foreach=foreach, differentiable=differentiable, fused=fused)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = self._start(group, parameter, parameter)

    def share_memory(self) -> None:
        """Moves the sums to where other processes can read them."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        value = group["initial_accumulator_value"]
        if parameter.is_complex():
            value = complex(value, value)
        with plugrad.no_grad():
            total = plugrad.full_like(parameter, value)
        return {"step": self._count(group, parameter), "sum": total}

    def _with_step(self, group: ParamGroup, state: State) -> State:
        return state  # only a rate that decays needs the count

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        rate = _to_scalar(group["lr"])
        if group["lr_decay"]:
            rate = rate / (1 + (value_of(s["step"], group) - 1) * group["lr_decay"])
        total = s["sum"].addcmul_(g, g, value=1)
        step_along_ratio(p, g, total.sqrt().add(group["eps"]), rate, group)
