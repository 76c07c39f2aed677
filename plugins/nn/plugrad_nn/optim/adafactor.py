"""Adafactor."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import check_tensor
from plugrad_nn.optim.elementwise import ElementwiseOptimizer, State, at_hand
from plugrad_nn.optim.optimizer import ParamGroup, ParamsT, _to_scalar

__all__ = ["Adafactor"]


class Adafactor(ElementwiseOptimizer):
    """Adam with the second moment of a matrix stored as a row and a column, and relative step
    sizes.

    Args:
        params: parameters or parameter groups; real.
        lr: the largest size of a step, as a share of the parameter's root mean square.
        beta2_decay: the mean square after step t has a share of t**beta2_decay of the new one.
        eps: the least root of a mean square (None: the dtype's epsilon), and the least root mean
            square that is taken for the parameter's.
        d: the root mean square that an update is cut down to.
        weight_decay: shrinks p by lr * weight_decay first, as AdamW does.
        foreach: accepted; factors are computed one parameter after the other.
        maximize: climbs instead.

    Raises:
        ValueError: an option is out of its range.

    Source: Shazeer and Stern 2018, algorithms 4 and 5, with means in place of sums, and with eps
    at the end only, as PyTorch has it.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.ones(2, 2))
    >>> optimizer = plugrad.optim.Adafactor([p], lr=0.5)
    >>> p.sum().backward()
    >>> optimizer.step()
    >>> p.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> [tuple(optimizer.state[p][name].shape) for name in ("row_var", "col_var")]
    [(2, 1), (1, 2)]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_tensor("lr", lr)
        for holds, what, value in (
            (lr >= 0.0, "Learning rate should be >= 0", lr),
            (beta2_decay <= 0.0, "beta2_decay should be <= 0", beta2_decay),
            (eps[0] is None or eps[0] >= 0.0, "epsilon1 should be >= 0", eps[0]),
            (eps[1] >= 0.0, "epsilon2 should be >= 0", eps[1]),
            (d >= 1.0, "Clipping threshold d should be >= 1", d),
            (weight_decay >= 0.0, "weight_decay should be >= 0", weight_decay),
        ):
            if not holds:
                raise ValueError(f"{what} but is: {value}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _check_gradient(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> None:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        super()._check_gradient(group, parameter, grad)

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        state: State = {"step": self._count(group, parameter)}
        if grad.ndim < 2:
            state["variance"] = plugrad.zeros_like(grad)
        else:
            state["row_var"] = plugrad.zeros_like(grad[..., :1])
            state["col_var"] = plugrad.zeros_like(grad[..., :1, :])
        return state

    def _update_lists(self, group: ParamGroup, pairs: list[tuple[Tensor, Tensor]]) -> None:
        for pair in pairs:
            self._update(group, *pair)

    def _apply(self, group: ParamGroup, p: Any, g: Any, s: State) -> None:
        g = -g if group.get("maximize") else g
        lr = at_hand(_to_scalar(group["lr"]), group)
        eps1, eps2 = group["eps"]
        if eps1 is None:
            eps1 = plugrad.finfo(p.dtype).eps
        step = s["step"]
        new_share = step ** group["beta2_decay"]
        size = max(eps2, _root_mean_square(p)) * min(lr, 1 / step**0.5)
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        if "variance" in s:
            variance = s["variance"].lerp_(g * g, new_share).clone()
        else:
            rows, columns = s["row_var"], s["col_var"]
            rows.lerp_(g.norm(dim=-1, keepdim=True).square_().div_(g.shape[-1]), new_share)
            columns.lerp_(g.norm(dim=-2, keepdim=True).square_().div_(g.shape[-2]), new_share)
            variance = rows @ columns
            variance.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(g)
        cut = max(1.0, _root_mean_square(update) / group["d"])
        p.add_(update, alpha=-size / cut)


def _root_mean_square(tensor: Tensor) -> float:
    norm: Any = tensor.norm(2).item()
    return float(norm) / float(tensor.numel() ** 0.5)
