"""Gradient clipping by norm and by value."""

from __future__ import annotations

from collections.abc import Iterable

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains


@explains
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients down together so that their joint norm is at most `max_norm`.

    `foreach`, which is about speed in PyTorch, has no effect.

    Returns:
        the joint norm before scaling, a tensor of shape ().

    Raises:
        RuntimeError: the norm is infinite or NaN and `error_if_nonfinite` is set.
    """
    with plugrad.no_grad():
        grads = _gradients(parameters)
        if not grads:
            return plugrad.tensor(0.0)
        norms = [grad.norm(norm_type).to(grads[0].device) for grad in grads]
        total = norms[0] if len(norms) == 1 else plugrad.stack(norms).norm(norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        # The small number and the clamp instead of a test are PyTorch's: no wait for the device.
        scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(scale.to(grad.device))
    return total


@explains
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps every element of every gradient to [-clip_value, clip_value].

    `foreach`, which is about speed in PyTorch, has no effect.
    """
    with plugrad.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-clip_value, clip_value)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in listed if parameter.grad is not None]
