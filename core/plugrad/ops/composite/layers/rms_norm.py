"""Normalisation by the root of the mean square."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated.settings import LayerNorm
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING
from plugrad.ops.composite.arrangement.memory_formats import formatted
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.prepare import normalisation as prepare
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.aliasing.memory_layout import suggested_format
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def normalised_dims(input: Tensor, settings: LayerNorm) -> Ints:
    return tuple(range(input.ndim - len(settings.normalized_shape), input.ndim))


def rms_norm(input: Tensor, settings: LayerNorm, eps: float | None) -> Tensor:
    dtype, weight, count = input.dtype, settings.weight, len(settings.normalized_shape)
    if input.ndim < count:
        raise ValueError(
            f"Input tensor must have at least {count} dimensions, but got {input.ndim}"
        )
    if dtype.category == FLOATING and (
        weight is None or prepare.is_parameter_dtype(weight.dtype, dtype)
    ):
        return C.call__fused_rms_norm_with(input, settings, eps)[0]
    prepare.check_normalized_shape(input, settings)
    if dtype.category < FLOATING:
        raise not_implemented("rms_norm", dtype)
    return in_dtype_of(_by_mean(input, settings, eps)[0], input)


def fused_rms_norm_by_mean(
    input: Tensor, settings: LayerNorm, eps: float | None
) -> tuple[Tensor, Tensor]:
    prepare.fused_rms_norm(input, settings, eps)
    out, rstd = _by_mean(input, settings, eps)
    wanted = suggested_format(sizes_of(input), strides(input))
    return formatted(in_dtype_of(out, input), wanted), rstd.contiguous()


def _by_mean(input: Tensor, settings: LayerNorm, eps: float | None) -> tuple[Tensor, Tensor]:
    """The result before it is rounded to the input's dtype."""
    x = widened(input)
    small = prepare.rms_norm_eps(input.dtype, eps)
    rstd = ((x * x).mean(dim=normalised_dims(input, settings), keepdim=True) + small).rsqrt()
    out = x * rstd
    if settings.weight is not None:
        out = out * widened(settings.weight)
    return out, rstd


def fused_rms_norm_backward_by_mean(
    grad: Tensor, input: Tensor, settings: LayerNorm, rstd: Tensor, mask: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    dims, weight = normalised_dims(input, settings), settings.weight
    leading = tuple(range(dims[0]))
    wide = widened(grad)
    normalized = widened(input) * rstd
    to_input: Tensor | None = None
    to_weight: Tensor | None = None
    if mask[0]:
        v = wide if weight is None else wide * widened(weight)
        along = normalized * (v * normalized).mean(dim=dims, keepdim=True)
        to_input = in_dtype_of((v - along) * rstd, input)
    if mask[1]:
        product = wide * normalized
        summed = product if not leading else product.sum(dim=leading)
        to_weight = in_dtype_of(summed, input if weight is None else weight)
    return to_input, to_weight
