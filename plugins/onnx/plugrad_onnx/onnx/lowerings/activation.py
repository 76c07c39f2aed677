"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.lowerings.elementwise import clamp
from plugrad_onnx.onnx.registry import lowers


@lowers("leaky_relu")
def leaky_relu(b: Builder, x: Value, negative_slope: Any = 0.01) -> Value:
    return b.op("LeakyRelu", x, alpha=float(negative_slope))


@lowers("elu")
def elu(b: Builder, x: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Value:
    if (scale, input_scale) == (1, 1):
        return b.op("Elu", x, alpha=float(alpha))
    scaled = x if input_scale == 1 else b.op("Mul", x, b.number(input_scale, x.dtype))
    grown = b.op("Elu", scaled, alpha=float(alpha))
    positive = b.op("Greater", x, b.number(0, x.dtype), dtype=plugrad.bool)
    result = b.op("Where", positive, x, grown, dtype=x.dtype)
    return result if scale == 1 else b.op("Mul", result, b.number(scale, x.dtype))


@lowers("selu")
def selu(b: Builder, x: Value) -> Value:
    return b.op("Selu", x)


@lowers("celu")
def celu(b: Builder, x: Value, alpha: Any = 1.0) -> Value:
    if x.dtype == plugrad.float32:  # the only dtype of Celu
        return b.op("Celu", x, alpha=float(alpha))
    return elu(b, x, alpha, 1, 1 / alpha)


@lowers("gelu")
def gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=approximate)
    half = b.number(0.5, x.dtype)
    one = b.number(1, x.dtype)
    if approximate == "tanh":
        cube = b.op("Mul", x, b.op("Mul", x, x))
        inner = b.op("Add", x, b.op("Mul", b.number(0.044715, x.dtype), cube))
        inner = b.op("Tanh", b.op("Mul", b.number(math.sqrt(2 / math.pi), x.dtype), inner))
    else:
        inner = b.op("Erf", b.op("Mul", x, b.number(math.sqrt(0.5), x.dtype)))
    return b.op("Mul", b.op("Mul", half, x), b.op("Add", one, inner))


@lowers("silu")
def silu(b: Builder, x: Value) -> Value:
    return b.op("Mul", x, b.op("Sigmoid", x))


@lowers("mish")
def mish(b: Builder, x: Value) -> Value:
    return b.op("Mish", x)


@lowers("hardtanh")
def hardtanh(b: Builder, x: Value, min_val: Any = -1, max_val: Any = 1) -> Value:
    return clamp(b, x, min_val, max_val)


@lowers("hardsigmoid")
def hardsigmoid(b: Builder, x: Value) -> Value:
    return b.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@lowers("hardswish")
def hardswish(b: Builder, x: Value) -> Value:
    return b.op("HardSwish", x)


@lowers("softplus")
def softplus(b: Builder, x: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    scaled = x if beta == 1 else b.op("Mul", x, b.number(beta, x.dtype))
    soft = b.op("Softplus", scaled)
    if beta != 1:
        soft = b.op("Div", soft, b.number(beta, x.dtype))
    linear = b.op("Greater", scaled, b.number(threshold, x.dtype), dtype=plugrad.bool)
    return b.op("Where", linear, x, soft, dtype=x.dtype)


@lowers("log_sigmoid", "logsigmoid")
def log_sigmoid(b: Builder, x: Value) -> Value:
    return b.op("Neg", b.op("Softplus", b.op("Neg", x)))


@lowers("threshold")
def threshold(b: Builder, x: Value, threshold: Any, value: Any) -> Value:
    below = b.op("LessOrEqual", x, b.number(threshold, x.dtype), dtype=plugrad.bool)
    return b.op("Where", below, b.number(value, x.dtype), x, dtype=x.dtype)


@lowers("prelu")
def prelu(b: Builder, x: Value, weight: Value) -> Value:
    if x.ndim > 2 and weight.ndim == 1:
        weight = b.reshape(weight, [weight.sizes[0], *[1] * (x.ndim - 2)])
    return b.op("PRelu", x, weight)


@lowers("_softmax")
def softmax(b: Builder, x: Value, dim: int, half_to_float: bool) -> Value:
    return _over(b, "Softmax", x, dim)


@lowers("_log_softmax")
def log_softmax(b: Builder, x: Value, dim: int, half_to_float: bool) -> Value:
    return _over(b, "LogSoftmax", x, dim)


def _over(b: Builder, name: str, x: Value, dim: int) -> Value:
    x = b.cast(x, b.dtype)
    if x.ndim == 0:  # of one element
        return b.reshape(b.op(name, b.reshape(x, [1]), axis=0), [])
    return b.op(name, x, axis=dim)
