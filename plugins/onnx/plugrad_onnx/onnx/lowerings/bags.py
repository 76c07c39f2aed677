"""Bags of rows of a table."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.registry import lowers

SUM, MEAN, MAX = range(3)


@lowers("embedding_bag.padding_idx")
def embedding_bag_padding_idx(
    b: Builder, weight: Value, *rest: Any
) -> tuple[Value, None, None, None]:
    padding_idx = rest[-1]
    padding = -1 if padding_idx is None else padding_idx % weight.sizes[0]
    settings: Any = (*rest[:-1], padding)
    return embedding_bag(b, weight, *settings)


@lowers("embedding_bag", "_embedding_bag")
def embedding_bag(
    b: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int = -1,
) -> tuple[Value, None, None, None]:
    (count,) = indices.sizes
    bags, width = b.shape
    index, begins = b.cast(indices, plugrad.int64), b.cast(offsets, plugrad.int64)
    if include_last_offset:
        begins = b.slice(begins, 0, 0, -1)
    # Position i belongs to the last bag that begins at or before i.
    numbers = [b.number(n, plugrad.int64) for n in (0, count, 1)]
    places = b.unsqueeze(b.op("Range", *numbers), 1)
    begun = b.cast(b.op("GreaterOrEqual", places, begins, dtype=plugrad.bool), plugrad.int64)
    bag = b.op("Sub", b.op("ReduceSum", begun, b.constant([1]), keepdims=1), b.constant([1]))

    rows = b.op("Gather", weight, index, axis=0)
    if per_sample_weights is not None:
        rows = b.op("Mul", rows, b.unsqueeze(per_sample_weights, 1))
    ones = b.expand(b.number(1, weight.dtype), [count, 1])
    nothing = b.number(-math.inf if mode == MAX else 0, weight.dtype)
    if padding_idx >= 0:
        padding = b.number(padding_idx, plugrad.int64)
        left_out = b.unsqueeze(b.op("Equal", index, padding, dtype=plugrad.bool), 1)
        rows = b.op("Where", left_out, nothing, rows, dtype=weight.dtype)
        ones = b.op("Where", left_out, b.number(0, weight.dtype), ones, dtype=weight.dtype)
    empty = b.expand(nothing, [bags, width])
    reduction = "max" if mode == MAX else "add"
    result = b.op("ScatterND", empty, bag, rows, reduction=reduction)
    if mode == SUM:
        return result, None, None, None
    zeros = b.expand(b.number(0, weight.dtype), [bags, 1])
    sizes = b.op("ScatterND", zeros, bag, ones, reduction="add")
    if mode == MEAN:
        divisor = b.op("Max", sizes, b.number(1, weight.dtype))
        return b.op("Div", result, divisor), None, None, None
    none = b.op("Equal", sizes, b.number(0, weight.dtype), dtype=plugrad.bool)
    result = b.op("Where", none, b.number(0, weight.dtype), result, dtype=weight.dtype)
    return result, None, None, None
