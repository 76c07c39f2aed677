"""Averaged stochastic gradient descent."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative
from plugrad_nn.optim.elementwise import (
    ElementwiseOptimizer,
    Number,
    State,
    Tensors,
    step_along,
    value_of,
)
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar
from plugrad_nn.optim.tensor_list import each

__all__ = ["ASGD"]


class ASGD(ElementwiseOptimizer):
    """Gradient descent with a decaying rate, and the average of the parameters in the state.

    Args:
        params: parameters or parameter groups.
        lr: the first learning rate.
        lambd: how fast parameters and the rate decay.
        alpha: the power of the rate's decay.
        t0: the step from which `ax` in the state is an average; before, it equals the parameters.
        weight_decay: adds weight_decay * p to the gradient.
        foreach: update all parameters that are alike together.
        maximize: climbs instead.
        capturable: counts steps on the device, so that a step can be captured.
        differentiable: autograd records the step.

    Raises:
        ValueError: an option is out of its range.

    Source: Polyak and Juditsky 1992; the rate is from Bottou 2012, section 5.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, 2.0]))
    >>> optimizer = plugrad.optim.ASGD([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000, 1.0000])
    """

    numbers = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        require_not_negative(lr=lr, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
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
            "eta": self._count(group, parameter, float(group["lr"])),
            "mu": self._count(group, parameter, 1.0),
            "ax": plugrad.zeros_like(parameter),
        }

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        lr, lambd, step = _to_scalar(group["lr"]), group["lambd"], s["step"]
        eta, mu = value_of(s["eta"], group), value_of(s["mu"], group)
        p.mul_(1 - lambd * eta)
        step_along(p, g, eta, group)
        average = s["ax"]
        if isinstance(mu, Tensor) or mu != 1:
            s["ax"] = average.add(p.sub(average) * mu)
        else:
            s["ax"] = p.clone()
        s["eta"] = _filled(s["eta"], lr / (1 + lambd * lr * step) ** group["alpha"])
        beyond = step - group["t0"]
        s["mu"] = _filled(
            s["mu"], 1 / (beyond.clamp(min=1) if isinstance(step, Tensor) else max(1, beyond))
        )


def _filled(like: Tensors, value: Number) -> Tensors:
    """0-dim tensors of a value that they share."""
    return each(lambda one: plugrad.zeros_like(one) + value, like)
