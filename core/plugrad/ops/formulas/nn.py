"""Gradients of normalisation, convolution, pooling, embedding and dropout."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated.settings import BatchNorm, Convolution, GroupNorm, LayerNorm, Pooling
from plugrad.ops.composite.layers.maxima import at_places
from plugrad.ops.prepare.normalisation import beside_groups, by_group
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def _plus(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None:
        return b
    return a if b is None else a + b


def layer_norm_gradients(
    grad: Tensor,
    input: Tensor,
    settings: LayerNorm,
    mean: Tensor,
    rstd: Tensor,
    mask: tuple[bool, bool, bool],
) -> Any:
    return C.call_native_layer_norm_backward_with(grad, input, settings, mean, rstd, mask)


def rms_norm_gradients(
    grads: Any, input: Tensor, settings: LayerNorm, rstd: Tensor, mask: tuple[bool, bool]
) -> Any:
    found: Any = (None, None)
    if grads[0] is not None:
        found = C.call__fused_rms_norm_backward_with(grads[0], input, settings, rstd, mask)
    if grads[1] is None or not mask[0]:
        return found
    first = input.ndim - len(settings.normalized_shape)
    dims = tuple(range(first, input.ndim))
    return (_plus(found[0], _through_rstd(grads[1], input, rstd, dims)), found[1])


def group_norm_gradients(
    grads: Any,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    settings: GroupNorm,
    mask: tuple[bool, bool, bool],
) -> Any:
    found: Any = (None, None, None)
    if grads[0] is not None:
        found = C.call_native_group_norm_backward_with(grads[0], input, mean, rstd, settings, mask)
    to_mean: Tensor | None = grads[1]
    to_rstd: Tensor | None = grads[2]
    if (to_mean is None and to_rstd is None) or not mask[0]:
        return found
    shape = by_group(settings)
    kept = (*shape[:2], 1, 1)
    more: Tensor | None = None
    if to_mean is not None:
        more = (to_mean / (shape[2] * shape[3])).reshape(kept).expand(shape)
    if to_rstd is not None:
        centered = input.reshape(shape) - mean.reshape(kept)
        part = _through_rstd(to_rstd.reshape(kept), centered, rstd.reshape(kept), (2, 3))
        more = _plus(more, part)
    assert more is not None
    return (_plus(found[0], more.reshape(sizes_of(input))), found[1], found[2])


def _through_rstd(grad: Tensor, centered: Tensor, rstd: Tensor, dims: Ints) -> Tensor:
    """The gradient of the reciprocal deviation toward what was centered before."""
    size = 1
    for dim in dims:
        size *= sizes_of(centered)[dim]
    return centered * (grad * rstd * rstd * rstd / -size)


def batch_norm_gradients(
    grad: Tensor,
    input: Tensor,
    settings: BatchNorm,
    mean: Tensor,
    invstd: Tensor,
    mask: tuple[bool, bool, bool],
) -> Any:
    return C.call_native_batch_norm_backward_with(grad, input, settings, mean, invstd, mask)


def layer_norm_double_backward(
    grads: Any,
    grad_out: Tensor,
    input: Tensor,
    settings: LayerNorm,
    rstd: Tensor,
    mask: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    ndim = input.ndim
    first = ndim - len(settings.normalized_shape)
    dims = tuple(range(first, ndim))
    weight = settings.weight
    centered = input - input.mean(dim=dims, keepdim=True)
    normalized, invstd = again_normalised(centered, rstd, dims)
    return _normalisation_double_backward(
        grads, grad_out, normalized, invstd, dims, weight, tuple(range(first)), mask
    )


def again_normalised(x: Tensor, rstd: Tensor, dims: Ints) -> tuple[Tensor, Tensor]:
    """x over the root of its mean square and eps, and the reciprocal of that.

    The saved reciprocal deviation determines eps, up to rounding; float64 is exact enough for this,
    and derivatives of higher order need a graph through it.
    """
    square = (x * x).mean(dim=dims, keepdim=True)
    eps = ((rstd * rstd).reciprocal() - square).detach()
    invstd = (square + eps).rsqrt()
    return x * invstd, invstd


def rms_norm_double_backward(
    grads: Any,
    grad_out: Tensor,
    input: Tensor,
    settings: LayerNorm,
    rstd: Tensor,
    mask: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    first = input.ndim - len(settings.normalized_shape)
    dims, leading = tuple(range(first, input.ndim)), tuple(range(first))
    normalized, invstd = again_normalised(input, rstd, dims)
    rest = (settings.weight, leading, mask)
    cotangents = (grads[0], grads[1], None)
    return _normalisation_double_backward(
        cotangents, grad_out, normalized, invstd, dims, *rest, centered=False
    )


def group_norm_double_backward(
    grads: Any,
    grad_out: Tensor,
    input: Tensor,
    rstd: Tensor,
    settings: GroupNorm,
    mask: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    shape, beside, dims = by_group(settings), beside_groups(settings), (2, 3)
    x = input.reshape(shape)
    centered = x - x.mean(dim=dims, keepdim=True)
    normalized, invstd = again_normalised(centered, rstd.reshape((*shape[:2], 1, 1)), dims)
    weight = None if settings.weight is None else settings.weight.reshape(beside)
    to_result: Tensor | None = grads[0]
    if to_result is not None:
        to_result = to_result.reshape(shape)
    cotangents = (to_result, grads[1], grads[2])
    to_grad_out, to_input, to_weight = _normalisation_double_backward(
        cotangents, grad_out.reshape(shape), normalized, invstd, dims, weight, (0, 3), mask, beside
    )
    if to_grad_out is not None:
        to_grad_out = to_grad_out.reshape(sizes_of(grad_out))
    if to_input is not None:
        to_input = to_input.reshape(sizes_of(input))
    return to_grad_out, to_input, to_weight


def batch_norm_double_backward(
    grads: Any, grad_out: Tensor, input: Tensor, settings: BatchNorm, mask: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    weight, running_mean, running_var = (
        settings.weight,
        settings.running_mean,
        settings.running_var,
    )
    over = (0, *range(2, input.ndim))
    shape = (1, -1) + (1,) * (input.ndim - 2)
    if weight is not None:
        weight = weight.reshape(shape)
    if settings.training or running_mean is None or running_var is None:
        centered = input - input.mean(dim=over, keepdim=True)
        variance = (centered * centered).mean(dim=over, keepdim=True)
        invstd = (variance + settings.eps).rsqrt()
        found = _normalisation_double_backward(
            grads, grad_out, centered * invstd, invstd, over, weight, over, mask, shape
        )
    else:
        invstd = (running_var + settings.eps).rsqrt().reshape(shape)
        normalized = (input - running_mean.reshape(shape)) * invstd
        found = _fixed_double_backward(
            grads, grad_out, normalized, invstd, weight, over, mask, shape
        )
    return found


def _normalisation_double_backward(
    grads: Any,
    grad_out: Tensor,
    normalized: Tensor,
    invstd: Tensor,
    dims: Ints,
    weight: Tensor | None,
    parameter_dims: Ints,
    mask: tuple[bool, ...],
    parameter_shape: Ints | None = None,
    centered: bool = True,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of a normalisation's gradients toward grad_out, input and weight.

    With x the normalised input, v = grad_out * weight and the symmetric projection
    P(v) = invstd * (v - mean(v) - x * mean(v * x)), the gradients are P(v), sum(grad_out * x) and
    sum(grad_out). `a`, `b` and `c` are their cotangents. What is not centered, as in rms_norm, has
    no mean(v) in P.
    """
    a, b, c = _cotangents(grads, parameter_shape)
    to_grad_out: Tensor | None = None
    to_input: Tensor | None = None
    to_weight: Tensor | None = None
    along: Tensor | None = None
    if a is not None:
        mean_ax = (a * normalized).mean(dim=dims, keepdim=True)
        along = _projected(a, normalized, mean_ax, invstd, dims, centered)
        if mask[2]:
            to_weight = _sum_over(grad_out * along, parameter_dims)
    if mask[0]:
        weighted = along if along is None or weight is None else along * weight
        to_grad_out = _plus(weighted, None if b is None else b * normalized)
        to_grad_out = _plus(to_grad_out, None if c is None else c.expand(sizes_of(grad_out)))
    if mask[1]:
        # Toward the normalised input first, then through the normalisation.
        toward = None if b is None else grad_out * b
        stretched: Tensor | None = None
        if a is not None:
            v = grad_out if weight is None else grad_out * weight
            mean_vx = (v * normalized).mean(dim=dims, keepdim=True)
            toward = _plus(toward, (a * mean_vx + v * mean_ax) * -invstd)
            overlap = (a * v).mean(dim=dims, keepdim=True) - mean_ax * mean_vx
            if centered:
                mean_a, mean_v = a.mean(dim=dims, keepdim=True), v.mean(dim=dims, keepdim=True)
                overlap = overlap - mean_a * mean_v
            stretched = overlap * invstd * invstd * normalized
        if toward is not None:
            mean_qx = (toward * normalized).mean(dim=dims, keepdim=True)
            to_input = _projected(toward, normalized, mean_qx, invstd, dims, centered)
            if stretched is not None:
                to_input = to_input - stretched
    if to_weight is not None and parameter_shape is not None:
        to_weight = to_weight.reshape((-1,))
    return (to_grad_out, to_input, to_weight)


def _projected(
    v: Tensor, normalized: Tensor, mean_vx: Tensor, invstd: Tensor, dims: Ints, centered: bool
) -> Tensor:
    """P(v), with mean(v * x)."""
    rest = v - v.mean(dim=dims, keepdim=True) if centered else v
    return (rest - normalized * mean_vx) * invstd


def _cotangents(
    grads: Any, parameter_shape: Ints | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    a: Tensor | None = grads[0]
    b: Tensor | None = grads[1]
    c: Tensor | None = grads[2]
    if parameter_shape is not None:
        b = None if b is None else b.reshape(parameter_shape)
        c = None if c is None else c.reshape(parameter_shape)
    return a, b, c


def _sum_over(x: Tensor, dims: Ints) -> Tensor:
    return x.sum(dim=dims) if dims else x


def _fixed_double_backward(
    grads: Any,
    grad_out: Tensor,
    normalized: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    over: Ints,
    mask: tuple[bool, ...],
    shape: Ints,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The same with statistics that do not depend on the input."""
    a, b, c = _cotangents(grads, shape)
    to_grad_out: Tensor | None = None
    scaled = None if a is None else a * invstd
    if mask[0]:
        weighted = scaled if scaled is None or weight is None else scaled * weight
        to_grad_out = _plus(weighted, None if b is None else b * normalized)
        to_grad_out = _plus(to_grad_out, None if c is None else c.expand(sizes_of(grad_out)))
    to_input = grad_out * b * invstd if mask[1] and b is not None else None
    to_weight = (grad_out * scaled).sum(dim=over) if mask[2] and scaled is not None else None
    return (to_grad_out, to_input, to_weight)


def convolution_gradients(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    settings: Convolution,
    mask: tuple[bool, bool, bool],
) -> Any:
    return C.call_convolution_backward_with(grad, input, weight, None, settings, mask)


def convolution_double_backward(
    grads: Any,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    settings: Convolution,
    mask: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """A convolution is bilinear, so this is like `linear_double_backward`: the cotangents for
    input and weight take the place of these in another `convolution_backward`."""
    to_input: Tensor | None = grads[0]
    to_weight: Tensor | None = grads[1]
    to_bias: Tensor | None = grads[2]
    to_grad_output: Tensor | None = None
    if mask[0]:
        if to_input is not None:
            to_grad_output = C.call_convolution_with(to_input, weight, None, settings)
        if to_weight is not None:
            part = C.call_convolution_with(input, to_weight, to_bias, settings)
            to_grad_output = _plus(to_grad_output, part)
        elif to_bias is not None:
            shape = (1, -1) + (1,) * (input.ndim - 2)
            part = to_bias.reshape(shape).expand(sizes_of(grad_output))
            to_grad_output = _plus(to_grad_output, part)
    wanted = (mask[1] and to_weight is not None, mask[2] and to_input is not None, False)
    found: Any = (None, None)
    if wanted[0] or wanted[1]:
        x = input if to_input is None else to_input
        w = weight if to_weight is None else to_weight
        found = C.call_convolution_backward_with(grad_output, x, w, None, settings, wanted)
    return (
        to_grad_output,
        found[0] if wanted[0] else None,
        found[1] if wanted[1] else None,
    )


def max_pool2d_gradient(grad: Tensor, x: Tensor, settings: Pooling, indices: Tensor) -> Tensor:
    return C.call_max_pool2d_with_indices_backward_with(grad, x, settings, indices)


def max_pool2d_double_backward(grad: Tensor, indices: Tensor) -> Tensor:
    """The elements of the cotangent at the positions of the maxima."""
    return at_places(grad, indices, 2)


def avg_pool2d_gradient(grad: Tensor, x: Tensor, settings: Pooling) -> Tensor:
    return C.call_avg_pool2d_backward_with(grad, x, settings)


def avg_pool2d_double_backward(grad: Tensor, settings: Pooling) -> Tensor:
    return C.call_avg_pool2d_with(grad, settings)


def embedding_gradient(
    grad: Tensor, indices: Tensor, shape: Ints, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    return C.call_embedding_dense_backward(grad, indices, shape[0], padding_idx, scale_grad_by_freq)


def embedding_double_backward(
    grad: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The rows of the cotangent that were looked up; zero for the padding."""
    if scale_grad_by_freq:
        raise NotImplementedError(
            "the second derivative of embedding with scale_grad_by_freq=True is not implemented"
        )
    rows = C.call_embedding(grad, indices)
    if padding_idx < 0:
        return rows
    return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)


def dropout_gradient(grad: Tensor, mask: Tensor, p: float, train: bool | None) -> Tensor:
    if train is False:
        return grad
    return C.call_native_dropout_backward(grad, mask, 0.0 if p == 1.0 else 1.0 / (1.0 - p))
