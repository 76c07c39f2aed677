"""Gradient clipping by norm and by value, and norms of several tensors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains


@explains
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of the elements of all tensors together, a tensor of shape ().

    Args:
        tensors: one or several of any shapes.
        norm_type: p of the p-norm; infinity gives the largest magnitude.
        error_if_nonfinite: raise if the norm is not finite.
        foreach: is about speed in PyTorch, and has no effect.

    Raises:
        RuntimeError: the norm is infinite or NaN and `error_if_nonfinite` is set.

    >>> import plugrad
    >>> plugrad.nn.utils.get_total_norm([plugrad.tensor([3.0]), plugrad.tensor([4.0])])
    tensor(5.)
    """
    with plugrad.no_grad():
        listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        if not listed:
            return plugrad.tensor(0.0)
        norms = [tensor.norm(norm_type).to(listed[0].device) for tensor in listed]
        total = norms[0] if len(norms) == 1 else plugrad.stack(norms).norm(norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
    return total


@explains
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales all gradients by `max_norm / total_norm` if that is less than 1.

    Args:
        parameters: the tensors with gradients to scale.
        max_norm: the largest norm that is left.
        total_norm: the norm that there is, of shape ().
        foreach: is about speed in PyTorch, and has no effect.

    >>> import plugrad
    >>> weight = plugrad.nn.Parameter(plugrad.zeros(2))
    >>> weight.grad = plugrad.tensor([3.0, 4.0])
    >>> plugrad.nn.utils.clip_grads_with_norm_([weight], 1.0, plugrad.tensor(10.0))
    >>> weight.grad
    tensor([0.3000, 0.4000])
    """
    with plugrad.no_grad():
        # The small number and the clamp instead of a test are PyTorch's: no wait for the device.
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _gradients(parameters):
            grad.mul_(scale.to(grad.device))


@explains
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients down together so that their joint norm is at most `max_norm`.

    Args:
        parameters: the tensors with gradients to scale.
        max_norm: the largest norm that is left.
        norm_type: p of the p-norm.
        error_if_nonfinite: raise if the norm is not finite.
        foreach: is about speed in PyTorch, and has no effect.

    Returns:
        the joint norm before scaling, a tensor of shape ().

    Raises:
        RuntimeError: the norm is infinite or NaN and `error_if_nonfinite` is set.

    >>> import plugrad
    >>> weight = plugrad.nn.Parameter(plugrad.zeros(2))
    >>> weight.grad = plugrad.tensor([3.0, 4.0])
    >>> plugrad.nn.utils.clip_grad_norm_([weight], 1.0)
    tensor(5.)
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`clip_grad_norm_` under its old name; warns with FutureWarning.

    Args:
        parameters, max_norm, norm_type, error_if_nonfinite, foreach: see `clip_grad_norm_`.

    >>> import warnings
    >>> import plugrad
    >>> weight = plugrad.nn.Parameter(plugrad.zeros(2))
    >>> weight.grad = plugrad.tensor([3.0, 4.0])
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> plugrad.nn.utils.clip_grad_norm([weight], 1.0)
    tensor(5.)
    """
    warnings.warn(
        "`plugrad.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`plugrad.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@explains
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps every element of every gradient to [-clip_value, clip_value].

    Args:
        parameters: the tensors with gradients to clamp.
        clip_value: the largest magnitude.
        foreach: is about speed in PyTorch, and has no effect.

    >>> import plugrad
    >>> weight = plugrad.nn.Parameter(plugrad.zeros(2))
    >>> weight.grad = plugrad.tensor([3.0, 4.0])
    >>> plugrad.nn.utils.clip_grad_value_([weight], 3.5)
    >>> weight.grad
    tensor([3.0000, 3.5000])
    """
    with plugrad.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-clip_value, clip_value)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in listed if parameter.grad is not None]
