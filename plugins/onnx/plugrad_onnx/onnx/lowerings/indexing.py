"""Indexing: reading, writing and sorting elements by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import NARROW
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.lowerings.shape import _range
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import product

_MASKS = (
    "is asked for the elements where a mask is true, whose number depends on values: compute with "
    "plugrad.where, or leave this part out of the model"
)


def _integers(b: Builder, index: Value) -> Value:
    return index if index.dtype in (plugrad.int64, plugrad.int32) else b.cast(index, plugrad.int64)


@lowers("index_select")
def index_select(b: Builder, x: Value, dim: int, index: Value) -> Value:
    if x.ndim == 0:
        return x
    if index.ndim == 0:
        index = b.reshape(index, [1])
    return b.op("Gather", x, _integers(b, index), axis=dim)


@lowers("embedding")
def embedding(b: Builder, weight: Value, indices: Value, *args: Any) -> Value:
    return b.op("Gather", weight, _integers(b, indices), axis=0)


@lowers("take")
def take(b: Builder, x: Value, index: Value) -> Value:
    return b.op("Gather", b.reshape(x, [-1]), _integers(b, index), axis=0)


@lowers("gather")
def gather(b: Builder, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    if x.ndim == 0 or index.ndim == 0:
        flat = b.reshape(index, [-1])
        return b.reshape(b.op("Gather", b.reshape(x, [-1]), flat, axis=0), b.shape)
    if x.ndim != index.ndim:
        raise OnnxExporterError("needs an index with as many dimensions as the tensor")
    return b.op("GatherElements", x, _integers(b, index), axis=dim)


@lowers("index.Tensor")
def index(b: Builder, x: Value, indices: Sequence[Value | None]) -> Value:
    x, given, first, back = _in_front(b, x, indices)
    if len(given) == 1:
        found = b.op("Gather", x, given[0], axis=0)
    else:
        found = b.op("GatherND", x, _joined(b, given))
    rank = max(each.ndim for each in given)
    return _put_back(b, found, rank, first) if back else found


def _in_front(
    b: Builder, x: Value, indices: Sequence[Value | None]
) -> tuple[Value, list[Value], int, bool]:
    """The tensor with its indexed dimensions first, their indices, the original position of the
    first, and whether the result's indexed dimensions go back there."""
    places = [n for n, each in enumerate(indices) if each is not None]
    given = [each for each in indices if each is not None]
    if any(each.dtype in (plugrad.bool, plugrad.uint8) for each in given):
        raise OnnxExporterError(_MASKS)
    given = [_integers(b, each) for each in given]
    together = places == list(range(places[0], places[0] + len(places)))
    if places != list(range(len(places))):
        others = [axis for axis in range(x.ndim) if axis not in places]
        x = b.transpose(x, [*places, *others])
    return x, given, places[0], together and places[0] > 0


def _put_back(b: Builder, found: Value, rank: int, first: int) -> Value:
    """Move the dimensions that an index made behind the dimensions that preceded it."""
    total = len(b.shape)
    order = [*range(rank, rank + first), *range(rank), *range(rank + first, total)]
    return b.op("Transpose", found, perm=order)


def _joined(b: Builder, given: Sequence[Value]) -> Value:
    """Broadcast indices, combined into rows of positions."""
    total: Value | None = None
    for each in given:
        total = each if total is None else b.op("Add", total, each)
    assert total is not None
    shape = b.op("Shape", total, dtype=plugrad.int64)
    columns = [
        b.op("Unsqueeze", b.op("Expand", b.cast(each, plugrad.int64), shape), b.constant([-1]))
        for each in given
    ]
    return b.op("Concat", *columns, axis=-1)


@lowers("index_put")
def index_put(
    b: Builder,
    x: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
) -> Value:
    given = [each for each in indices if each is not None]
    if len(given) == 1 and given[0].dtype == plugrad.bool and indices[0] is given[0]:
        return _masked_put(b, x, given[0], values, accumulate)
    shape = x.sizes
    places = [n for n, each in enumerate(indices) if each is not None]
    front, found, first, back = _in_front(b, x, indices)
    rank = max(each.ndim for each in found)
    positions = _joined(b, found)
    others = [axis for axis in range(x.ndim) if axis not in places]
    rest = [shape[axis] for axis in others]
    index_shape = b.op("Shape", positions, dtype=plugrad.int64, start=0, end=rank)
    before = rest[:first] if back else []
    after = rest[first:] if back else rest
    target = b.op("Concat", *_parts(b, before), index_shape, *_parts(b, after), axis=0)
    updates = b.op("Expand", b.cast(values, x.dtype), target)
    if before:
        count = len(before)
        total = count + rank + len(after)
        order = [*range(count, count + rank), *range(count), *range(count + rank, total)]
        updates = b.op("Transpose", updates, perm=order)
    result = b.op("ScatterND", front, positions, updates, reduction="add" if accumulate else None)
    if places == list(range(len(places))):
        return result
    order = [*places, *others]
    return b.op("Transpose", result, perm=[order.index(axis) for axis in range(x.ndim)])


def _parts(b: Builder, sizes: Sequence[Any]) -> list[Value]:
    return [b.integers(sizes)] if sizes else []


def _masked_put(b: Builder, x: Value, mask: Value, values: Value, accumulate: bool) -> Value:
    """`x[mask] = value` with one value for all."""
    if values.ndim and product(values.sizes) != 1:
        raise OnnxExporterError(_MASKS)
    for _ in range(x.ndim - mask.ndim):
        mask = Value(b.unsqueeze(mask, mask.ndim).name, (*mask.sizes, 1), mask.dtype)
    value = b.reshape(b.cast(values, x.dtype), [])
    if accumulate:
        value = b.op("Add", x, value)
    return b.op("Where", mask, value, x, dtype=x.dtype)


def _scatter(
    b: Builder, x: Value, dim: int, index: Value, src: Value, reduction: str | None
) -> Value:
    src = b.cast(src, x.dtype)
    index = _integers(b, index)
    if x.ndim == 0:
        parts = [b.reshape(each, [1]) for each in (x, index, src)]
        return b.reshape(b.op("ScatterElements", *parts, axis=0, reduction=reduction), [])
    if src.sizes != index.sizes:
        for axis in range(src.ndim):
            if src.sizes[axis] != index.sizes[axis]:
                src = b.slice(src, axis, 0, index.sizes[axis])
    return b.op("ScatterElements", x, index, src, axis=dim, reduction=reduction)


@lowers("scatter.src")
def scatter_src(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _scatter(b, x, dim, index, src, None)


@lowers("scatter.value")
def scatter_value(b: Builder, x: Value, dim: int, index: Value, value: Any) -> Value:
    src = b.number(value, x.dtype)
    return _scatter(b, x, dim, index, b.expand(src, index.sizes) if index.ndim else src, None)


@lowers("scatter_add")
def scatter_add(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _scatter(b, x, dim, index, src, "add")


_REDUCED = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@lowers("scatter_reduce.two")
def scatter_reduce(
    b: Builder,
    x: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    include_self: bool = True,
) -> Value:
    if reduce not in _REDUCED or not include_self:
        raise OnnxExporterError(
            f"reduce={reduce!r} with include_self={include_self} has no counterpart in ONNX: use "
            "sum, prod, amax or amin, with include_self"
        )
    return _scatter(b, x, dim, index, src, _REDUCED[reduce])


@lowers("index_add")
def index_add(b: Builder, x: Value, dim: int, index: Value, source: Value, alpha: Any = 1) -> Value:
    if alpha != 1:
        source = Value(
            b.op("Mul", source, b.number(alpha, source.dtype)).name, source.shape, source.dtype
        )
    return _by_rows(b, x, dim, index, source, "add")


@lowers("index_copy")
def index_copy(b: Builder, x: Value, dim: int, index: Value, source: Value) -> Value:
    return _by_rows(b, x, dim, index, source, None)


def _by_rows(
    b: Builder, x: Value, dim: int, index: Value, source: Value, reduction: str | None
) -> Value:
    if x.ndim == 0 or source.ndim != x.ndim:
        raise OnnxExporterError("is for tensors with dimensions: reshape them before")
    axis = dim % x.ndim
    column = b.reshape(_integers(b, index), [-1 if n == axis else 1 for n in range(x.ndim)])
    return _scatter(b, x, axis, b.expand(column, source.sizes), source, reduction)


@lowers("select_scatter")
def select_scatter(b: Builder, x: Value, src: Value, dim: int, index: Any) -> Value:
    axis = dim % x.ndim
    size = x.sizes[axis]
    begin = index + size if index < 0 else index
    row = b.unsqueeze(b.cast(src, x.dtype), axis)
    before, after = b.slice(x, axis, 0, begin), b.slice(x, axis, begin + 1, None)
    return b.op("Concat", before, row, after, axis=axis)


@lowers("tril")
def tril(b: Builder, x: Value, diagonal: Any = 0) -> Value:
    return _triangle(b, x, diagonal, 0)


@lowers("triu")
def triu(b: Builder, x: Value, diagonal: Any = 0) -> Value:
    return _triangle(b, x, diagonal, 1)


def _triangle(b: Builder, x: Value, diagonal: Any, upper: int) -> Value:
    wide = b.cast(x, plugrad.int32) if x.dtype in NARROW else x
    return b.cast(b.op("Trilu", wide, b.number(diagonal, plugrad.int64), upper=upper), x.dtype)


@lowers("one_hot")
def one_hot(b: Builder, x: Value, num_classes: Any = -1) -> Value:
    if num_classes == -1:
        raise OnnxExporterError(
            "finds the number of classes from the values, and a graph has fixed shapes: give "
            "num_classes"
        )
    values = b.constant([0, 1])
    depth = b.number(num_classes, plugrad.int64)
    return b.op("OneHot", _integers(b, x), depth, values, dtype=plugrad.int64)


@lowers("topk")
def topk(
    b: Builder, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    return _sorted(b, x, k, dim, largest)


def _sorted(b: Builder, x: Value, k: Any, dim: int, largest: bool) -> tuple[Value, Value]:
    if x.ndim == 0:
        return x, b.number(0, plugrad.int64)
    wide = b.cast(x, plugrad.int32) if x.dtype in NARROW else x
    values, places = b.op(
        "TopK", wide, b.integers([k]), outputs=2, axis=dim, largest=int(largest), sorted=1
    )
    return b.cast(values, x.dtype), Value(places.name, None, plugrad.int64)


@lowers("sort")
def sort(
    b: Builder, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[Value, Value]:
    return _sorted(b, x, x.sizes[dim] if x.ndim else 1, dim, descending)


@lowers("argsort")
def argsort(
    b: Builder, x: Value, dim: int = -1, descending: bool = False, stable: bool = False
) -> Value:
    return sort(b, x, dim, descending)[1]


@lowers("nonzero")
def nonzero(b: Builder, x: Value) -> Value:
    raise OnnxExporterError(_MASKS)


@lowers("masked_select")
def masked_select(b: Builder, x: Value, mask: Value) -> Value:
    raise OnnxExporterError(_MASKS)


@lowers("eye")
def eye(b: Builder, n: Any, m: Any = None, **kwargs: Any) -> Value:
    rows = b.unsqueeze(_range(b, b.shape[0]), 1)
    same = b.op("Equal", rows, _range(b, b.shape[1]), dtype=plugrad.bool)
    return b.cast(same, b.dtype)


@lowers("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(b: Builder, x: Value, dim: int, index: Value, value: Any) -> Value:
    if x.ndim == 0:
        return b.operand(value, x.dtype)
    axis = dim % x.ndim
    column = b.reshape(_integers(b, index), [-1 if n == axis else 1 for n in range(x.ndim)])
    count = index.sizes[0] if index.ndim else 1
    shape = [count if n == axis else size for n, size in enumerate(x.sizes)]
    rows = b.expand(column, shape)
    filling = b.expand(b.operand(value, x.dtype), shape)
    return b.op("ScatterElements", x, rows, filling, axis=axis)
