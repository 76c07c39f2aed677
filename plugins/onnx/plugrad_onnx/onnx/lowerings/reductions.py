"""Sums, means, extremes and other reductions; cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import NARROW, computes_in
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import product


def reduced(
    b: Builder, name: str, x: Value, dim: Sequence[int] | int | None, keepdim: bool
) -> Value:
    """A reduction over the given dimensions; over all if none are given."""
    axes = [dim] if isinstance(dim, int) else list(dim or ())
    if x.ndim == 0:
        return x
    given = b.constant([axis % x.ndim for axis in axes]) if axes else None
    return b.op(name, x, given, keepdims=int(keepdim))


@lowers("sum")
def sum_(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    wide = computes_in(b.dtype)
    return b.cast(reduced(b, "ReduceSum", b.cast(x, wide), dim, keepdim), b.dtype)


@lowers("mean")
def mean(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return reduced(b, "ReduceMean", b.cast(x, b.dtype), dim, keepdim)


@lowers("prod")
def prod(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    wide = computes_in(b.dtype)
    return b.cast(reduced(b, "ReduceProd", b.cast(x, wide), dim, keepdim), b.dtype)


def _extreme(b: Builder, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
    wide = b.cast(x, computes_in(x.dtype))
    return b.cast(reduced(b, name, wide, dim, keepdim), x.dtype)


@lowers("amax", "max")
def amax(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _extreme(b, "ReduceMax", x, dim, keepdim)


@lowers("amin", "min")
def amin(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _extreme(b, "ReduceMin", x, dim, keepdim)


def _position(b: Builder, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
    wide = b.cast(x, plugrad.int32 if x.dtype in NARROW else x.dtype)
    if dim is None or x.ndim == 0:
        flat = b.reshape(wide, [-1])
        found = b.op(name, flat, axis=0, keepdims=0, dtype=plugrad.int64)
        return b.reshape(found, [1] * x.ndim if keepdim else [])
    return b.op(name, wide, axis=dim, keepdims=int(keepdim), dtype=plugrad.int64)


@lowers("argmax")
def argmax(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _position(b, "ArgMax", x, dim, keepdim)


@lowers("argmin")
def argmin(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _position(b, "ArgMin", x, dim, keepdim)


@lowers("max.dim")
def max_dim(b: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _extreme(b, "ReduceMax", x, dim, keepdim), _position(b, "ArgMax", x, dim, keepdim)


@lowers("min.dim")
def min_dim(b: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _extreme(b, "ReduceMin", x, dim, keepdim), _position(b, "ArgMin", x, dim, keepdim)


@lowers("any")
def any_(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    ones = b.cast(b.cast(x, plugrad.bool), plugrad.int32)
    return b.cast(b.cast(reduced(b, "ReduceMax", ones, dim, keepdim), plugrad.bool), b.dtype)


@lowers("all")
def all_(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    ones = b.cast(b.cast(x, plugrad.bool), plugrad.int32)
    return b.cast(b.cast(reduced(b, "ReduceMin", ones, dim, keepdim), plugrad.bool), b.dtype)


@lowers("count_nonzero")
def count_nonzero(b: Builder, x: Value, dim: Any = None) -> Value:
    return reduced(b, "ReduceSum", b.cast(b.cast(x, plugrad.bool), plugrad.int64), dim, False)


@lowers("logsumexp")
def logsumexp(b: Builder, x: Value, dim: Any, keepdim: bool = False) -> Value:
    return reduced(b, "ReduceLogSumExp", b.cast(x, b.dtype), dim, keepdim)


@lowers("cumsum")
def cumsum(b: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    x = b.cast(x, b.dtype)
    if x.ndim == 0:
        return x
    wide = b.cast(x, computes_in(b.dtype))
    return b.cast(b.op("CumSum", wide, b.number(dim, plugrad.int64)), b.dtype)


def _count(x: Value, dim: Any) -> Any:
    axes = [dim] if isinstance(dim, int) else list(dim or ())
    return product([x.sizes[axis] for axis in axes] if axes else x.sizes)


@lowers("var_mean.correction")
def var_mean(
    b: Builder, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> tuple[Value, Value]:
    centre = reduced(b, "ReduceMean", x, dim, True)
    off = b.op("Sub", x, centre)
    squares = b.op("Mul", off, off, shape=x.shape)
    squares = reduced(b, "ReduceSum", squares, dim, keepdim)
    count = b.number(_count(x, dim), x.dtype)
    if correction is None or correction != 0:
        less = b.op("Sub", count, b.number(1 if correction is None else correction, x.dtype))
        count = b.op("Max", less, b.number(0, x.dtype))
    mean = centre if keepdim or x.ndim == 0 else b.reshape(centre, b.shape)
    return b.op("Div", squares, count), mean


@lowers("var.correction")
def var(
    b: Builder, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> Value:
    return var_mean(b, x, dim, correction, keepdim)[0]


@lowers("std.correction")
def std(
    b: Builder, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> Value:
    return b.op("Sqrt", var(b, x, dim, correction, keepdim))
