"""New tensors, casts, and writes of whole tensors."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.registry import lowers


def _filled(b: Builder, number: Any) -> Value:
    value = b.number(number, b.dtype)
    return b.expand(value, b.shape) if b.shape else value


@lowers("full", "full_like", "new_full")
def full(b: Builder, *args: Any, **kwargs: Any) -> Value:
    return _filled(b, args[-1])


@lowers("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty")
def zeros(b: Builder, *args: Any, **kwargs: Any) -> Value:
    return _filled(b, 0)


@lowers("ones", "ones_like", "new_ones")
def ones(b: Builder, *args: Any, **kwargs: Any) -> Value:
    return _filled(b, 1)


@lowers("arange")
def arange(b: Builder, start: Any = None, end: Any = None, step: Any = 1, **kwargs: Any) -> Value:
    if end is None:
        start, end = 0, start
    whole = not any(isinstance(number, float) for number in (start, end, step))
    dtype = plugrad.int64 if whole else plugrad.float64
    numbers = [b.number(0 if n is None else n, dtype) for n in (start, end, step)]
    return b.cast(b.op("Range", *numbers, dtype=dtype), b.dtype)


@lowers("_to_copy", "to.dtype")
def to_copy(b: Builder, x: Value, *args: Any, **kwargs: Any) -> Value:
    return b.cast(x, b.dtype)


@lowers("_to_device")
def to_device(b: Builder, x: Value, *args: Any, **kwargs: Any) -> Value:
    return b.cast(x, b.dtype)


@lowers("copy_")
def copy_(b: Builder, x: Value, src: Value, non_blocking: bool = False) -> Value:
    return b.expand(b.cast(src, x.dtype), x.sizes)


@lowers("fill_.Scalar", "fill_.Tensor", "fill.Scalar", "fill.Tensor")
def fill(b: Builder, x: Value, value: Any) -> Value:
    return b.expand(b.operand(value, x.dtype), x.sizes)


@lowers("zero_")
def zero(b: Builder, x: Value) -> Value:
    return b.expand(b.number(0, x.dtype), x.sizes)
