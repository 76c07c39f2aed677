"""Normalisation of batches, layers, groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.registry import lowers


def _filled(b: Builder, value: Value | None, number: int, x: Value, size: Any) -> Value:
    """A parameter, or a substitute for a missing one."""
    if value is not None:
        return value
    return b.constant(plugrad.full((size,), float(number), dtype=x.dtype))


@lowers("native_batch_norm")
def native_batch_norm(
    b: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, Value | None, Value | None]:
    return _batch_norm(b, x, weight, bias, mean, var, training, eps), None, None


@lowers("batch_norm")
def batch_norm(
    b: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Value:
    return _batch_norm(b, x, weight, bias, mean, var, training, eps)


def _batch_norm(
    b: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    var: Value | None,
    training: bool,
    eps: float,
) -> Value:
    channels = x.sizes[1]
    if training or mean is None or var is None:
        axes = [0, *range(2, x.ndim)]
        normal = _normalized(b, x, axes, eps)
        return _scaled(b, normal, weight, bias, [channels, *[1] * (x.ndim - 2)])
    return b.op(
        "BatchNormalization",
        x,
        _filled(b, weight, 1, x, channels),
        _filled(b, bias, 0, x, channels),
        mean,
        var,
        epsilon=eps,
    )


def _normalized(b: Builder, x: Value, axes: Sequence[int], eps: float) -> Value:
    """Elements minus their mean, over their standard deviation."""
    off, _, deviation = _centered(b, x, axes, eps)
    return b.op("Div", off, deviation)


def _centered(b: Builder, x: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value, Value]:
    """Elements minus their mean, that mean, and the standard deviation."""
    over = b.constant(list(axes))
    mean = b.op("ReduceMean", x, over, keepdims=1)
    off = b.op("Sub", x, mean)
    var = b.op("ReduceMean", b.op("Mul", off, off), over, keepdims=1)
    return off, mean, b.op("Sqrt", b.op("Add", var, b.number(eps, x.dtype)))


def _scaled(
    b: Builder, x: Value, weight: Value | None, bias: Value | None, shape: Sequence[Any]
) -> Value:
    if weight is not None:
        x = b.op("Mul", x, b.reshape(weight, shape))
    if bias is not None:
        x = b.op("Add", x, b.reshape(bias, shape))
    return x


@lowers("layer_norm")
def layer_norm(
    b: Builder,
    x: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:
    scale = weight
    if scale is None:
        scale = b.expand(b.number(1, x.dtype), normalized_shape)
    return b.op("LayerNormalization", x, scale, bias, axis=-len(normalized_shape), epsilon=eps)


@lowers("native_layer_norm")
def native_layer_norm(
    b: Builder,
    x: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, Value | None, Value | None]:
    return layer_norm(b, x, normalized_shape, weight, bias, eps), None, None


@lowers("rms_norm")
def rms_norm(
    b: Builder,
    x: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    small = plugrad.finfo(x.dtype).eps if eps is None else eps
    first = -len(normalized_shape)
    if b.opset >= 23 and weight is not None:
        return b.op("RMSNormalization", x, weight, axis=first, epsilon=small)
    over = b.constant(list(range(first, 0)))
    mean = b.op("ReduceMean", b.op("Mul", x, x), over, keepdims=1)
    normal = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, b.number(small, x.dtype))))
    return normal if weight is None else b.op("Mul", normal, weight)


@lowers("group_norm")
def group_norm(
    b: Builder,
    x: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:
    return _group_norm(b, x, num_groups, weight, bias, eps)[0]


@lowers("native_group_norm")
def native_group_norm(
    b: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    out, mean, deviation = _group_norm(b, x, group, weight, bias, eps)
    rstd = b.op("Reciprocal", deviation)
    return out, b.reshape(mean, [N, group]), b.reshape(rstd, [N, group])


def _group_norm(
    b: Builder, x: Value, groups: int, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    """The result, and the means and standard deviations of groups, (N, groups, 1)."""
    batch, channels = x.sizes[:2]
    off, mean, deviation = _centered(b, b.reshape(x, [batch, groups, -1]), [2], eps)
    normal = b.reshape(b.op("Div", off, deviation), x.sizes)
    shape = [channels, *[1] * (x.ndim - 2)]
    return _scaled(b, normal, weight, bias, shape), mean, deviation


@lowers("instance_norm")
def instance_norm(
    b: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    if not use_input_stats:
        return _batch_norm(b, x, weight, bias, mean, var, False, eps)
    channels = x.sizes[1]
    return b.op(
        "InstanceNormalization",
        x,
        _filled(b, weight, 1, x, channels),
        _filled(b, bias, 0, x, channels),
        epsilon=eps,
    )
