"""Rprop."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    State,
    Tensors,
    at_hand,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar
from plugrad_nn.optim.tensor_list import each

__all__ = ["Rprop"]


class Rprop(ElementwiseOptimizer):
    """Steps by sizes that grow while a gradient keeps its sign, and shrink when it changes.

    Args:
        params: parameters or parameter groups.
        lr: the first size of steps.
        etas: the factors of a step size when the sign changes, and when it does not.
        step_sizes: the least and the largest size.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Riedmiller and Braun 1993, without backtracking: after a change of sign an element skips
    one step.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.Rprop([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000, 1.5000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_not_negative(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        size = at_hand(_to_scalar(group["lr"]), group)
        if parameter.is_complex():
            size = complex(size, size)
        return {
            "step": self._count(group, parameter),
            "prev": plugrad.zeros_like(parameter),
            "step_size": plugrad.zeros_like(parameter) + size,
        }

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        shrink, grow = group["etas"]
        sign = (g * s["prev"]).sign()
        size = each(lambda sign, size: size * _factor(sign, shrink, grow), sign, s["step_size"])
        size = s["step_size"] = size.clamp_(*group["step_sizes"])
        g = s["prev"] = each(lambda sign, g: plugrad.where(sign < 0, 0.0, g), sign, g)
        p.addcmul_(g.sign(), size, value=-1)


def _factor(sign: Tensor, shrink: float, grow: float) -> Tensor:
    grown = plugrad.where(sign > 0, plugrad.full_like(sign, grow), 1.0)
    return plugrad.where(sign < 0, shrink, grown)
