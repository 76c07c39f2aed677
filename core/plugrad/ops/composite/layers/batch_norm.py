"""Batch normalisation by means over all dimensions except the channels."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import BatchNorm
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.prepare import normalisation as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _over(x: Tensor) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _beside(x: Tensor, parameter: Tensor) -> Tensor:
    """A channel's parameter in a shape that broadcasts with the input."""
    shape = (sizes_of(x)[1],) + (1,) * (x.ndim - 2)
    return in_dtype_of(parameter, x).reshape(shape)


def _count(x: Tensor) -> int:
    """How many values a channel has."""
    return x.numel() // max(sizes_of(x)[1], 1)


def native_batch_norm(
    input: Tensor, settings: BatchNorm, bias: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Below autograd the writes are not counted, as a kernel's would not be."""
    out, mean, invstd, new_mean, new_var = C.call__native_batch_norm_legit_functional_with(
        input, settings, bias, momentum
    )
    if settings.training and settings.running_mean is not None:
        settings.running_mean.copy_(new_mean)
    if settings.training and settings.running_var is not None:
        settings.running_var.copy_(new_var)
    return out, mean, invstd


def native_batch_norm_functional(
    input: Tensor, settings: BatchNorm, bias: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    prepare.native_batch_norm(input, settings, bias, momentum)
    weight, eps = settings.weight, settings.eps
    running_mean, running_var = settings.running_mean, settings.running_var
    x = widened(input)
    if settings.training:
        mean = x.mean(dim=_over(x))
        out = x - _beside(x, mean)
        variance = (out * out).mean(dim=_over(x))
        invstd = (variance + eps).rsqrt()
        if running_mean is not None:
            running_mean = _moved(running_mean, mean, momentum)
        if running_var is not None:
            # PyTorch keeps the unbiased variance; of a single value that is nan.
            count = _count(x)
            unbiased = variance * (count / (count - 1) if count != 1 else math.nan)
            running_var = _moved(running_var, unbiased, momentum)
        deviation = invstd
    else:
        assert running_mean is not None
        assert running_var is not None
        out = x - _beside(x, running_mean)
        deviation = (in_dtype_of(running_var, x) + eps).rsqrt()
        mean = F.empty((0,), dtype=x.dtype, device=x.device)
        invstd = F.empty((0,), dtype=x.dtype, device=x.device)
    scale = deviation if weight is None else deviation * in_dtype_of(weight, x)
    out = out * _beside(x, scale)
    if bias is not None:
        out = out + _beside(x, bias)
    return in_dtype_of(out, input), mean, invstd, running_mean, running_var


def _moved(running: Tensor, observed: Tensor, momentum: float) -> Tensor:
    known = in_dtype_of(running, observed)
    return in_dtype_of(known + (observed - known) * momentum, running)


def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    settings: BatchNorm,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    mask: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x, grad = widened(input), widened(grad_out)
    weight = settings.weight
    center, deviation = save_mean, save_invstd
    if not settings.training:
        assert settings.running_var is not None
        deviation = (in_dtype_of(settings.running_var, x) + settings.eps).rsqrt()
        center = settings.running_mean
    assert center is not None
    assert deviation is not None
    normalized = (x - _beside(x, center)) * _beside(x, deviation)
    to_bias = grad.sum(dim=_over(x))
    to_weight = (grad * normalized).sum(dim=_over(x))
    to_input: Tensor | None = None
    if mask[0]:
        scale = deviation if weight is None else deviation * in_dtype_of(weight, x)
        rest = grad
        if settings.training:
            count = _count(x)
            rest = grad - (normalized * _beside(x, to_weight / count) + _beside(x, to_bias / count))
        to_input = in_dtype_of(rest * _beside(x, in_dtype_of(scale, x)), input)
    like = input if weight is None else weight
    return (
        to_input,
        in_dtype_of(to_weight, like) if mask[1] else None,
        in_dtype_of(to_bias, like) if mask[2] else None,
    )
