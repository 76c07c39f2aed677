"""Group normalisation as normalisation of rows; computations per channel come before or after
it."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated.settings import GroupNorm
from plugrad.ops.composite.arrangement.memory_formats import formatted
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.prepare import normalisation as prepare
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.aliasing.memory_layout import suggested_format
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    shape = sizes_of(input)
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    size = 1
    for extent in shape[2:]:
        size *= extent
    settings = GroupNorm(weight, bias, shape[0], shape[1], size, num_groups)
    return C.call_native_group_norm_with(input, settings, eps)[0]


def native_group_norm(
    input: Tensor, settings: GroupNorm, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    prepare.native_group_norm(input, settings, eps)
    shape = prepare.by_group(settings)
    weight, bias = settings.weight, settings.bias
    size = shape[2] * shape[3]
    rows = widened(input).reshape((shape[0], shape[1], size))
    out, mean, rstd = C.call_native_layer_norm(rows, (size,), None, None, eps)
    out = out.reshape(shape)
    if weight is not None:
        out = out * widened(weight).reshape(prepare.beside_groups(settings))
    if bias is not None:
        out = out + widened(bias).reshape(prepare.beside_groups(settings))
    out = in_dtype_of(out.reshape(sizes_of(input)), input)
    kept = input if weight is None else weight
    kept = kept if bias is None else bias
    return (
        formatted(out, suggested_format(sizes_of(input), strides(input))),
        in_dtype_of(mean.reshape(shape[:2]), kept),
        in_dtype_of(rstd.reshape(shape[:2]), kept),
    )


def native_group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    settings: GroupNorm,
    mask: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    shape, beside = prepare.by_group(settings), prepare.beside_groups(settings)
    rows, channels = (shape[0], shape[1], shape[2] * shape[3]), (settings.C,)
    kept = (shape[0], shape[1], 1, 1)
    grad, x = widened(grad_out).reshape(shape), widened(input).reshape(shape)
    center, deviation = widened(mean).reshape(kept), widened(rstd).reshape(kept)
    to_input: Tensor | None = None
    to_weight: Tensor | None = None
    to_bias: Tensor | None = None
    if mask[0]:
        v = grad
        if settings.weight is not None:
            v = grad * widened(settings.weight).reshape(beside)
        found = C.call_native_layer_norm_backward(
            v.reshape(rows),
            x.reshape(rows),
            rows[2:],
            center.reshape((*rows[:2], 1)),
            deviation.reshape((*rows[:2], 1)),
            None,
            None,
            (True, False, False),
        )[0]
        to_input = in_dtype_of(found.reshape(sizes_of(input)), input)
    if mask[1]:
        product = grad * ((x - center) * deviation)
        to_weight = in_dtype_of(product.sum(dim=(0, 3)).reshape(channels), mean)
    if mask[2]:
        to_bias = in_dtype_of(grad.sum(dim=(0, 3)).reshape(channels), mean)
    return to_input, to_weight, to_bias
