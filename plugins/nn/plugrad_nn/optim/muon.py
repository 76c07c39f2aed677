"""Muon."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import check_tensor
from plugrad_nn.optim.elementwise import loss_of, step_along
from plugrad_nn.optim.optimizer import Closure, Optimizer, ParamGroup, ParamsT, _to_scalar

__all__ = ["Muon"]


class Muon(Optimizer):
    """Momentum with an approximately orthogonalized matrix as the step.

    Args:
        params: matrices; embeddings, biases and output layers are for another optimizer.
        lr: the learning rate.
        weight_decay: shrinks p by lr * weight_decay first, as AdamW does.
        momentum: the decay of the running mean of gradients.
        nesterov: looks one step ahead.
        ns_coefficients: of the polynomial a x + b x^3 + c x^5 of the iteration.
        eps: the least norm that the matrix is divided by.
        ns_steps: how often the polynomial is applied; less than 100.
        adjust_lr_fn: "original" (also None) multiplies the rate by sqrt(max(1, rows / columns)),
            "match_rms_adamw" by 0.2 sqrt(max(rows, columns)).

    Raises:
        ValueError: an option is out of its range, or a parameter is not a matrix.

    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon); the second rate is from Liu et
    al. 2025, arXiv:2502.16982. The iteration is in bfloat16, as in PyTorch.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.zeros(2, 2))
    >>> optimizer = plugrad.optim.Muon([p], lr=0.5)
    >>> (p - plugrad.eye(2)).square().sum().backward()
    >>> optimizer.step()
    >>> bool(p[0, 0] > 0.3), p[0, 1].item()
    (True, 0.0)
    """

    capturable_numbers = ("lr",)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_tensor("lr", lr)
        for what, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not value >= 0.0:
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{parameter.size()}"
                    )

    @plugrad.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once; see `Optimizer.step`."""
        loss = loss_of(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(group, parameter, parameter.grad)
        return loss

    def _update(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> None:
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if grad.is_sparse:
            raise RuntimeError("Muon does not support sparse gradients")
        state, momentum, lr = self.state[parameter], group["momentum"], _to_scalar(group["lr"])
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = plugrad.zeros_like(grad)
        mean = state["momentum_buffer"] = state["momentum_buffer"].to(parameter.device)
        mean.lerp_(grad, 1 - momentum)
        update = grad.lerp(mean, momentum) if group["nesterov"] else mean
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        parameter.mul_(1 - lr * group["weight_decay"])
        step_along(parameter, update, lr * _ratio(group["adjust_lr_fn"], *parameter.shape), group)


def _orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """U V^T of the singular value decomposition U S V^T, roughly: S is between 0.5 and 1.5."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = matrix.shape[0] > matrix.shape[1]
    if tall:
        x = x.T
    # All singular values are at most 1 then.
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = plugrad.addmm(x, plugrad.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _ratio(adjustment: str | None, rows: int, columns: int) -> float:
    if adjustment == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
