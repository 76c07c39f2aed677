"""Losses that validate values eagerly; a graph does not."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import product


def _reduced(b: Builder, losses: Value, reduction: str) -> Value:
    if reduction == "none":
        return losses
    name = "ReduceMean" if reduction == "mean" else "ReduceSum"
    return b.op(name, losses, keepdims=0)


@lowers("binary_cross_entropy")
def binary_cross_entropy(
    b: Builder, x: Value, target: Value, weight: Value | None = None, reduction: str = "mean"
) -> Value:
    one, least = b.number(1, x.dtype), b.number(-100, x.dtype)
    yes = b.op("Mul", target, b.op("Max", b.op("Log", x), least))
    rest = b.op("Max", b.op("Log", b.op("Sub", one, x)), least)
    no = b.op("Mul", b.op("Sub", one, target), rest)
    losses = b.op("Neg", b.op("Add", yes, no))
    if weight is not None:
        losses = b.op("Mul", losses, weight)
    return _reduced(b, losses, reduction)


@lowers("nll_loss")
def nll_loss(
    b: Builder,
    x: Value,
    target: Value,
    weight: Value | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Value:
    single = x.ndim == 1
    if single:
        x, target = b.reshape(x, [1, *x.sizes]), b.reshape(target, [1])
    losses = b.op(
        "NegativeLogLikelihoodLoss",
        x,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    return b.reshape(losses, []) if single and reduction == "none" else losses


@lowers("cross_entropy_loss")
def cross_entropy_loss(
    b: Builder,
    x: Value,
    target: Value,
    weight: Value | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Value:
    axis = 0 if x.ndim == 1 else 1
    logs = Value(b.op("LogSoftmax", x, axis=axis).name, x.shape, x.dtype)
    if target.dtype.is_floating_point:
        return _of_probabilities(b, logs, axis, target, weight, reduction, label_smoothing)
    exact = nll_loss(b, logs, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return exact
    smooth = _uniform(b, logs, axis, target, weight, reduction, ignore_index)
    share = b.number(label_smoothing / x.sizes[axis], x.dtype)
    kept = b.op("Mul", exact, b.number(1 - label_smoothing, x.dtype))
    return b.op("Add", kept, b.op("Mul", smooth, share))


def _uniform(
    b: Builder,
    logs: Value,
    axis: int,
    target: Value,
    weight: Value | None,
    reduction: str,
    ignore_index: int,
) -> Value:
    """The loss that weighs all classes equally."""
    weighted = b.op("Mul", logs, _for_classes(b, weight, logs, axis)) if weight else logs
    losses = b.op("Neg", b.op("ReduceSum", weighted, b.constant([axis]), keepdims=0))
    ignored = b.op("Equal", target, b.number(ignore_index, target.dtype), dtype=plugrad.bool)
    zero = b.number(0, logs.dtype)
    losses = b.op("Where", ignored, zero, losses, dtype=logs.dtype)
    if reduction == "none":
        return losses
    total = b.op("ReduceSum", losses, keepdims=0)
    if reduction == "sum":
        return total
    if weight is None:
        counted = b.cast(b.op("Not", ignored), logs.dtype)
    else:
        first = b.op("Where", ignored, b.number(0, target.dtype), target, dtype=target.dtype)
        counted = b.op("Gather", weight, first, axis=0)
        counted = b.op("Where", ignored, zero, counted, dtype=logs.dtype)
    return b.op("Div", total, b.op("ReduceSum", counted, keepdims=0))


def _for_classes(b: Builder, weight: Value | None, logs: Value, axis: int) -> Value:
    assert weight is not None
    return b.reshape(weight, [-1 if n == axis else 1 for n in range(logs.ndim)])


def _of_probabilities(
    b: Builder,
    logs: Value,
    axis: int,
    target: Value,
    weight: Value | None,
    reduction: str,
    label_smoothing: float,
) -> Value:
    classes = logs.sizes[axis]
    if label_smoothing:
        kept = b.op("Mul", target, b.number(1 - label_smoothing, logs.dtype))
        target = b.op("Add", kept, b.number(label_smoothing / classes, logs.dtype))
    products = b.op("Mul", logs, target)
    if weight is not None:
        products = b.op("Mul", products, _for_classes(b, weight, logs, axis))
    losses = b.op("Neg", b.op("ReduceSum", products, b.constant([axis]), keepdims=0))
    if reduction != "mean":
        return _reduced(b, losses, reduction)
    count: Any = product([size for n, size in enumerate(logs.sizes) if n != axis])
    return b.op("Div", b.op("ReduceSum", losses, keepdims=0), b.number(count, logs.dtype))
