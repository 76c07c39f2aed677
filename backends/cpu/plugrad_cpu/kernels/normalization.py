"""Kernels of normalisation: of layers, groups, batches, and by the root of the mean square."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from plugrad_cpu.kernels.linalg import is_narrow, widen

Array = Any
Kernel = Callable[..., Any]
Mask = tuple[bool, bool, bool]

# Elements of the rows that are normalised at a time.
_BLOCK: Final = 1 << 15

_total: Final[Kernel] = np.add.reduce


def _wide(a: Array | None) -> Array | None:
    return None if a is None else widen(a)


def _narrowed(parts: tuple[Any, ...], like: tuple[Any, ...]) -> Any:
    """Results in the dtypes of what they are gradients of; None stays."""
    return tuple(
        part if part is None or other is None else part.astype(other.dtype, copy=False)
        for part, other in zip(parts, like, strict=True)
    )


def _row_blocks(count: int, size: int) -> Iterator[slice]:
    """Slices of rows, so small that temporary arrays stay in the cache."""
    step = max(1, _BLOCK // max(size, 1))
    for start in range(0, count, step):
        yield slice(start, start + step)


def _reciprocal_root(rows: Array, size: int, eps: float, out: Array) -> None:
    """1 / the root of each row's mean square and eps, in a column."""
    np.vecdot(rows, rows, out[:, 0])
    out /= rows.dtype.type(size)
    out += rows.dtype.type(eps)
    np.sqrt(out, out)
    np.reciprocal(out, out)


def layer_norm(
    x: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Any, Any, Any]:
    """The normalised input, and mean and 1 / deviation with the normalised dimensions kept as 1.

    Those stay in float32 for 16-bit inputs.
    """
    if is_narrow(x):
        out, mean, rstd = layer_norm(widen(x), shape, _wide(weight), _wide(bias), eps)
        return out.astype(x.dtype), mean, rstd
    leading = x.shape[: x.ndim - len(shape)]
    count, size = math.prod(leading), math.prod(shape)
    divisor = x.dtype.type(size)
    rows = x.reshape(count, size)
    out = np.empty((count, size), x.dtype)
    mean = _total(rows, 1, None, None, True)
    mean /= divisor
    rstd = np.empty((count, 1), x.dtype)
    for part in _row_blocks(count, size):
        centered = np.subtract(rows[part], mean[part], out[part])
        deviation = rstd[part]
        _reciprocal_root(centered, size, eps, deviation)
        centered *= deviation
        if weight is not None:
            centered *= weight.reshape(-1)
        if bias is not None:
            centered += bias.reshape(-1)
    kept = leading + (1,) * len(shape)
    return out.reshape(x.shape), mean.reshape(kept), rstd.reshape(kept)


def layer_norm_backward(
    grad: Array,
    x: Array,
    shape: tuple[int, ...],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    mask: Mask,
) -> tuple[Any, Any, Any]:
    if is_narrow(x):
        found = layer_norm_backward(
            widen(grad), widen(x), shape, widen(mean), widen(rstd), _wide(weight), _wide(bias), mask
        )
        return _narrowed(found, (x, weight, bias))  # type: ignore[no-any-return]  # three in, three out
    size = math.prod(shape)
    count = math.prod(x.shape[: x.ndim - len(shape)])
    divisor = x.dtype.type(size)
    grads = grad.reshape(count, size)
    inputs = x.reshape(count, size)
    center, deviation = mean.reshape(count, 1), rstd.reshape(count, 1)
    factor = None if weight is None else weight.reshape(-1)
    to_input = np.empty((count, size), x.dtype)
    to_weight = np.zeros(size, x.dtype)
    for part in _row_blocks(count, size):
        normalized = np.subtract(inputs[part], center[part], to_input[part])
        normalized *= deviation[part]
        if mask[1]:
            to_weight += np.einsum("ij,ij->j", grads[part], normalized)
        if mask[0]:
            weighted = grads[part] if factor is None else grads[part] * factor
            along = np.vecdot(weighted, normalized)[:, None]
            along /= divisor
            shift = _total(weighted, 1, None, None, True)
            shift /= divisor
            normalized *= along
            normalized += shift
            np.subtract(weighted, normalized, normalized)
            normalized *= deviation[part]
    return (
        to_input.reshape(x.shape) if mask[0] else None,
        to_weight.reshape(shape) if mask[1] else None,
        _total(grads, 0).reshape(shape) if mask[2] else None,
    )


def rms_norm(x: Array, shape: tuple[int, ...], weight: Array | None, eps: float) -> tuple[Any, Any]:
    """The input over the root of its mean square, and the reciprocal of that root with the
    normalised dimensions kept as 1. It stays in float32 for 16-bit inputs."""
    if is_narrow(x):
        out, rstd = rms_norm(widen(x), shape, _wide(weight), eps)
        return out.astype(x.dtype), rstd
    leading = x.shape[: x.ndim - len(shape)]
    count, size = math.prod(leading), math.prod(shape)
    rows = x.reshape(count, size)
    out = np.empty((count, size), x.dtype)
    rstd = np.empty((count, 1), x.dtype)
    for part in _row_blocks(count, size):
        _reciprocal_root(rows[part], size, eps, rstd[part])
        normalized = np.multiply(rows[part], rstd[part], out[part])
        if weight is not None:
            normalized *= weight.reshape(-1)
    return out.reshape(x.shape), rstd.reshape(leading + (1,) * len(shape))


def rms_norm_backward(
    grad: Array,
    x: Array,
    shape: tuple[int, ...],
    rstd: Array,
    weight: Array | None,
    mask: tuple[bool, bool],
) -> tuple[Any, Any]:
    if is_narrow(x):
        wide = rms_norm_backward(widen(grad), widen(x), shape, rstd, _wide(weight), mask)
        return _narrowed(wide, (x, x if weight is None else weight))  # type: ignore[no-any-return]  # two in, two out
    size = math.prod(shape)
    count = math.prod(x.shape[: x.ndim - len(shape)])
    grads, inputs = grad.reshape(count, size), x.reshape(count, size)
    deviation = rstd.reshape(count, 1)
    factor = None if weight is None else weight.reshape(-1)
    to_input = np.empty((count, size), x.dtype)
    to_weight = np.zeros(size, x.dtype)
    for part in _row_blocks(count, size):
        normalized = np.multiply(inputs[part], deviation[part], to_input[part])
        if mask[1]:
            to_weight += np.einsum("ij,ij->j", grads[part], normalized)
        if mask[0]:
            weighted = grads[part] if factor is None else grads[part] * factor
            along = np.vecdot(weighted, normalized)[:, None]
            along /= x.dtype.type(size)
            normalized *= along
            np.subtract(weighted, normalized, normalized)
            normalized *= deviation[part]
    return (
        to_input.reshape(x.shape) if mask[0] else None,
        to_weight.reshape(shape) if mask[1] else None,
    )


def group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    samples: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[Any, Any, Any]:
    """The normalised input, and mean and 1 / deviation of each group (samples, groups).

    Those have the dtype of the parameters.
    """
    if is_narrow(x):
        wide = (widen(x), _wide(weight), _wide(bias))
        out, mean, rstd = group_norm(*wide, samples, channels, size, groups, eps)
        kept = np.result_type(*(a for a in (x, weight, bias) if a is not None))
        return out.astype(x.dtype), mean.astype(kept), rstd.astype(kept)
    rows = x.reshape(samples, groups, channels // groups * size)
    normalized, mean, rstd = layer_norm(rows, rows.shape[2:], None, None, eps)
    out = normalized.reshape(samples, channels, size)
    if weight is not None:
        out *= weight.reshape(channels, 1)
    if bias is not None:
        out += bias.reshape(channels, 1)
    return out.reshape(x.shape), mean.reshape(samples, groups), rstd.reshape(samples, groups)


def group_norm_backward(
    grad: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    samples: int,
    channels: int,
    size: int,
    groups: int,
    mask: Mask,
) -> tuple[Any, Any, Any]:
    sizes = (samples, channels, size, groups)
    if is_narrow(x):
        given = (widen(grad), widen(x), widen(mean), widen(rstd), _wide(weight))
        found = group_norm_backward(*given, *sizes, mask)
        return _narrowed(found, (x, mean, mean))  # type: ignore[no-any-return]  # three in, three out
    count = channels // groups * size
    rows, by_channel = (samples, groups, count), (samples, channels, size)
    grads, inputs = grad.reshape(by_channel), x.reshape(rows)
    center, deviation = mean.reshape(samples, groups, 1), rstd.reshape(samples, groups, 1)
    if size == 1:
        each = (grads[:, :, 0], inputs, center, deviation, weight, mask)
        to_input, to_weight, to_bias = _group_norm_backward_of_rows(*each)
        return to_input if to_input is None else to_input.reshape(x.shape), to_weight, to_bias
    factor = None if weight is None else weight.reshape(channels, 1)
    if factor is None and mask == (True, False, False):
        wanted = (grads.reshape(rows), inputs, (count,), center, deviation, None, None, mask)
        return (layer_norm_backward(*wanted)[0].reshape(x.shape), None, None)
    to_input = np.empty(rows, x.dtype)
    to_weight, to_bias = np.zeros((2, channels), x.dtype)
    for part in _row_blocks(samples, channels * size):
        normalized = np.subtract(inputs[part], center[part], to_input[part])
        normalized *= deviation[part]
        along = np.vecdot(grads[part], normalized.reshape(grads[part].shape))
        shift = _total(grads[part], 2)
        to_weight += _total(along, 0)
        to_bias += _total(shift, 0)
        if mask[0]:
            weighted = grads[part]
            if factor is not None:
                weighted = weighted * factor
                along *= weight
                shift *= weight
            normalized *= _means_of_groups(along, groups, count)
            normalized += _means_of_groups(shift, groups, count)
            np.subtract(weighted.reshape(normalized.shape), normalized, normalized)
            normalized *= deviation[part]
    return (
        to_input.reshape(x.shape) if mask[0] else None,
        to_weight if mask[1] else None,
        to_bias if mask[2] else None,
    )


def _group_norm_backward_of_rows(
    grads: Array,
    inputs: Array,
    center: Array,
    deviation: Array,
    weight: Array | None,
    mask: Mask,
) -> tuple[Any, Any, Any]:
    """The gradients for channels with one element each, (N, C) and (N, groups, channels of one)."""
    to_input = to_weight = None
    if mask[0]:
        weighted = (grads if weight is None else grads * weight).reshape(inputs.shape)
        rest = (center, deviation, None, None, (True, False, False))
        to_input = layer_norm_backward(weighted, inputs, inputs.shape[2:], *rest)[0]
    if mask[1]:
        normalized = inputs - center
        normalized *= deviation
        to_weight = np.einsum("ij,ij->j", grads, normalized.reshape(grads.shape))
    return to_input, to_weight, _total(grads, 0) if mask[2] else None


def _means_of_groups(sums: Array, groups: int, count: int) -> Array:
    """(N, groups, 1) from the sums of channels (N, C)."""
    apart = sums.reshape(len(sums), groups, sums.shape[1] // groups)
    return _total(apart, 2, None, None, True) / sums.dtype.type(max(count, 1))


def _beside(x: Array) -> tuple[int, ...]:
    """The shape in which a channel's parameter broadcasts with the input."""
    return (-1, *(1,) * (x.ndim - 2))


def _per_channel(x: Array) -> Any:
    """How many values a channel has."""
    return x.dtype.type(x.size // max(x.shape[1], 1))


def _channel_sums(x: Array) -> Array:
    """Sums over all dimensions but channels, rows first: products with ones run in BLAS."""
    count, channels = x.shape[:2]
    if x.ndim > 2:
        area = math.prod(x.shape[2:])
        flat = x.reshape(count * channels, area)
        x = flat.dot(np.ones(area, x.dtype)).reshape(count, channels)
    return np.asarray(_total(x, 0))


def _channel_products(x: Array, y: Array) -> Array:
    """The same of `x * y`."""
    count, channels = x.shape[:2]
    if x.ndim == 2:
        return np.asarray(np.einsum("nc,nc->c", x, y))
    shape = (count, channels, math.prod(x.shape[2:]))
    return np.asarray(_total(np.vecdot(x.reshape(shape), y.reshape(shape)), 0))


def batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, Any, Any]:
    """The normalised input and, when training, mean and 1 / deviation of each channel.

    The running statistics are updated in place; when training they may be None.
    """
    if is_narrow(x):
        out, mean, invstd = batch_norm(
            widen(x), weight, bias, running_mean, running_var, training, momentum, eps
        )
        return out.astype(x.dtype), mean, invstd
    shape = _beside(x)
    if training:
        count = _per_channel(x)
        mean = _channel_sums(x) / count
        out = x - mean.reshape(shape)
        variance = _channel_products(out, out) / count
        if running_mean is not None:
            running_mean += momentum * (mean - running_mean)
        if running_var is not None:
            # PyTorch keeps the unbiased variance; of a single value that is nan.
            unbiased = variance * np.divide(count, count - 1)
            running_var += momentum * (unbiased - running_var)
        invstd = 1 / np.sqrt(variance + x.dtype.type(eps))
    else:
        mean = np.empty(0, x.dtype)
        out = x - running_mean.astype(x.dtype, copy=False).reshape(shape)
        invstd = 1 / np.sqrt(running_var.astype(x.dtype, copy=False) + x.dtype.type(eps))
    scale = invstd if weight is None else invstd * widen(weight)
    out *= scale.reshape(shape)
    if bias is not None:
        out += widen(bias).reshape(shape)
    return out, mean, invstd if training else mean.copy()


def batch_norm_backward(
    grad: Array,
    x: Array,
    weight: Array | None,
    running_mean: Array,
    running_var: Array,
    mean: Array,
    invstd: Array,
    training: bool,
    eps: float,
    mask: Mask,
) -> tuple[Any, Any, Any]:
    if is_narrow(x):
        found = batch_norm_backward(
            widen(grad),
            widen(x),
            _wide(weight),
            running_mean,
            running_var,
            mean,
            invstd,
            training,
            eps,
            mask,
        )
        return _narrowed(found, (x, weight, weight))  # type: ignore[no-any-return]  # three in, three out
    shape = _beside(x)
    if training:
        center, deviation = mean, invstd
    else:
        center = running_mean.astype(x.dtype, copy=False)
        deviation = 1 / np.sqrt(running_var.astype(x.dtype, copy=False) + x.dtype.type(eps))
    normalized = x - center.reshape(shape)
    normalized *= deviation.reshape(shape)
    scale = deviation if weight is None else deviation * weight
    to_bias = _channel_sums(grad)
    to_weight = _channel_products(grad, normalized) if mask[1] or training else None
    to_input = None
    if mask[0]:
        if training:
            count = _per_channel(x)
            normalized *= (to_weight / count).reshape(shape)
            normalized += (to_bias / count).reshape(shape)
            to_input = np.subtract(grad, normalized, normalized)
            to_input *= scale.reshape(shape)
        else:
            to_input = grad * scale.reshape(shape)
    return to_input, to_weight if mask[1] else None, to_bias if mask[2] else None


KERNELS: Final[dict[str, Kernel]] = {
    "_fused_rms_norm": rms_norm,
    "_fused_rms_norm_backward": rms_norm_backward,
    "native_group_norm": group_norm,
    "native_group_norm_backward": group_norm_backward,
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "native_batch_norm": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
}
