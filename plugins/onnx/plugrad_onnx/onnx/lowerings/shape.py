"""Views and other rearrangements of elements; joining and repeating tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import computes_in
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import product


@lowers("view", "_unsafe_view", "reshape", "flatten.using_ints", "unflatten.int")
def view(b: Builder, x: Value, *sizes: Any) -> Value:
    return b.reshape(x, b.shape)


@lowers("expand")
def expand(b: Builder, x: Value, size: Sequence[Any], implicit: bool = False) -> Value:
    return b.expand(x, b.shape)


@lowers("permute")
def permute(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    return b.transpose(x, [dim % x.ndim for dim in dims])


@lowers("transpose.int")
def transpose(b: Builder, x: Value, dim0: int, dim1: int) -> Value:
    if x.ndim == 0:
        return x
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.transpose(x, order)


@lowers("t")
def t(b: Builder, x: Value) -> Value:
    return b.transpose(x, [1, 0]) if x.ndim == 2 else x


@lowers("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(b: Builder, x: Value, dim: Any = None) -> Value:
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = sorted({axis % x.ndim for axis in dims if x.sizes[axis] == 1} if x.ndim else ())
    return b.squeeze(x, *axes) if axes else x


@lowers("unsqueeze")
def unsqueeze(b: Builder, x: Value, dim: int) -> Value:
    return b.unsqueeze(x, dim % (x.ndim + 1))


@lowers("select.int")
def select(b: Builder, x: Value, dim: int, index: Any) -> Value:
    return b.op("Gather", x, b.number(index, plugrad.int64), axis=dim)


@lowers("slice.Tensor")
def slice_(
    b: Builder, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    return b.slice(x, dim, 0 if start is None else start, end, step)


@lowers("split.Tensor", "split_with_sizes", "unsafe_split.Tensor", "unsafe_split_with_sizes")
def split(b: Builder, x: Value, size: Any, dim: int = 0) -> tuple[Value, ...]:
    sizes = [shape[dim] for shape in b.shapes]
    if len(sizes) == 1:
        return (b.op("Identity", x),)
    found = b.op("Split", x, b.integers(sizes), outputs=len(sizes), axis=dim)
    return tuple(found)


@lowers("unbind.int")
def unbind(b: Builder, x: Value, dim: int = 0) -> tuple[Value, ...]:
    return tuple(select(b, x, dim, place) for place in range(len(b.shapes)))


@lowers("cat", "concat", "concatenate")
def cat(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    # Legacy of PyTorch: empty vectors are ignored.
    parts = [b.cast(x, b.dtype) for x in tensors if x.ndim == len(b.shape)]
    return b.op("Concat", *parts, axis=dim) if len(parts) > 1 else parts[0]


@lowers("stack")
def stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = dim % len(b.shape)
    parts = [b.unsqueeze(b.cast(x, b.dtype), axis) for x in tensors]
    return b.op("Concat", *parts, axis=axis)


@lowers("clone", "detach", "alias", "contiguous", "_conj", "conj", "conj_physical")
def same(b: Builder, x: Value, memory_format: Any = None) -> Value:
    return x


@lowers("diagonal")
def diagonal(b: Builder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    first, second = dim1 % x.ndim, dim2 % x.ndim
    order = [axis for axis in range(x.ndim) if axis not in (first, second)]
    last = b.transpose(x, [first, second, *order])
    down, right = max(-offset, 0), max(offset, 0)
    count = b.shape[-1]
    steps = _range(b, count)
    rows = b.op("Add", steps, b.number(down, plugrad.int64))
    columns = b.op("Add", steps, b.number(right, plugrad.int64))
    pairs = b.op("Concat", b.unsqueeze(rows, 1), b.unsqueeze(columns, 1), axis=1)
    found = b.op("GatherND", last, pairs)
    return b.transpose(found, [*range(1, len(b.shape)), 0])


def _range(b: Builder, count: Any) -> Value:
    """0, 1, ... `count` - 1."""
    if isinstance(count, int):
        return b.constant(list(range(count)))
    zero, one = b.number(0, plugrad.int64), b.number(1, plugrad.int64)
    return b.op("Range", zero, b.number(count, plugrad.int64), one, shape=(count,))


@lowers("flip")
def flip(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    for dim in dims if x.ndim else ():
        x = Value(b.slice(x, dim, -1, None, -1).name, x.shape, x.dtype)
    return x


@lowers("roll")
def roll(b: Builder, x: Value, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Value:
    shape = x.sizes
    if not dims:
        shape = (product(x.sizes),)
        x, dims = b.reshape(x, shape), [0]
    for shift, dim in zip(shifts, dims, strict=True):
        size = shape[dim]
        if size == 0:
            continue
        by = shift % size if isinstance(size, int) else shift
        parts = b.slice(x, dim, -by, None), b.slice(x, dim, 0, -by)
        if by != 0:
            x = Value(b.op("Concat", *parts, axis=dim).name, shape, x.dtype)
    return b.reshape(x, b.shape)


@lowers("repeat", "tile")
def repeat(b: Builder, x: Value, repeats: Sequence[Any]) -> Value:
    more = len(repeats) - x.ndim
    if more > 0:
        x = b.reshape(x, [*[1] * more, *x.sizes])
    given = [*[1] * max(-more, 0), *repeats]
    return b.op("Tile", x, b.integers(given)) if given else x


@lowers("unfold")
def unfold(b: Builder, x: Value, dimension: int, size: int, step: int) -> Value:
    if x.ndim == 0:
        return b.reshape(x, b.shape)
    axis = dimension % x.ndim
    count = b.shape[axis]
    starts = b.op("Mul", _range(b, count), b.number(step, plugrad.int64))
    offsets = b.constant(list(range(size)))
    places = b.op("Add", b.unsqueeze(starts, 1), offsets)
    found = b.op("Gather", x, places, axis=axis)
    order = [n for n in range(x.ndim + 1) if n != axis + 1]
    return b.transpose(found, [*order, axis + 1])


@lowers("_as_strided")
def as_strided(
    b: Builder,
    x: Value,
    size: Sequence[Any],
    stride: Sequence[Any],
    storage_offset: Any,
    input_stride: Sequence[Any],
    input_offset: Any,
) -> Value:
    expected = 1
    for length, step in zip(reversed(x.sizes), reversed(list(input_stride)), strict=True):
        if length != 1 and step != expected:
            raise OnnxExporterError(
                "as_strided of a tensor whose elements do not lie row by row has no counterpart "
                "in ONNX: call it on x.contiguous()"
            )
        expected = expected * length
    places: Value = b.number(storage_offset - input_offset, plugrad.int64)
    rank = len(size)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        steps = b.op("Mul", _range(b, length), b.number(step, plugrad.int64))
        column = b.reshape(steps, [-1 if n == axis else 1 for n in range(rank)])
        places = b.op("Add", places, column)
    return b.op("Gather", b.reshape(x, [-1]), places, axis=0)


@lowers("pixel_shuffle")
def pixel_shuffle(b: Builder, x: Value, upscale_factor: int) -> Value:
    if x.ndim != 4:
        *batch, channels, height, width = x.sizes
        image = b.reshape(x, [product(batch), channels, height, width])
        return b.reshape(_shuffled(b, image, upscale_factor), b.shape)
    return _shuffled(b, x, upscale_factor)


def _shuffled(b: Builder, x: Value, factor: int) -> Value:
    return b.op("DepthToSpace", x, blocksize=factor, mode="CRD")


@lowers("constant_pad_nd")
def constant_pad(b: Builder, x: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    return padded(b, x, pad, "constant", value)


@lowers("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(b: Builder, x: Value, padding: Sequence[Any]) -> Value:
    return padded(b, x, padding, "reflect")


@lowers("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(b: Builder, x: Value, padding: Sequence[Any]) -> Value:
    return padded(b, x, padding, "edge")


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


@lowers("plugrad_onnx::pad")
def pad_(b: Builder, x: Value, pad: Sequence[Any], mode: str, value: Any) -> Value:
    if mode != "circular":
        return padded(b, x, pad, _MODES[mode], value if mode == "constant" else None)
    for place in range(len(pad) // 2):
        axis = x.ndim - 1 - place
        before, after = pad[2 * place : 2 * place + 2]
        parts = [x]
        if before > 0:
            parts.insert(0, b.slice(x, axis, -before, None))
        if after > 0:
            parts.append(b.slice(x, axis, 0, after))
        shape = [size + before + after if n == axis else size for n, size in enumerate(x.sizes)]
        x = Value(b.op("Concat", *parts, axis=axis).name, tuple(shape), x.dtype)
    return x


def padded(b: Builder, x: Value, pad: Sequence[Any], mode: str, value: Any = None) -> Value:
    """Pad the last dimensions; `pad` begins with the last one, as in PyTorch."""
    count = len(pad) // 2
    if mode != "constant":
        return _cropped(b, x, pad, mode)
    begins, ends = list(pad[::2])[::-1], list(pad[1::2])[::-1]
    kept = x.ndim - count
    pads = b.integers([*[0] * kept, *begins, *[0] * kept, *ends])
    wide = b.cast(x, computes_in(x.dtype)) if x.dtype == plugrad.int16 else x
    fill = None if value is None else b.number(value, wide.dtype)
    return b.cast(b.op("Pad", wide, pads, fill, mode=mode), x.dtype)


def _cropped(b: Builder, x: Value, pad: Sequence[Any], mode: str) -> Value:
    """Padding with elements of the tensor; negative numbers crop afterwards."""
    count = len(pad) // 2
    sizes = list(reversed(x.sizes[x.ndim - count :]))
    margins = [margin if margin > 0 else 0 for margin in pad]
    if mode == "reflect" and any(m >= sizes[n // 2] for n, m in enumerate(margins)):
        raise OnnxExporterError("reflects more elements than ONNX allows: pad by less")
    begins, ends = margins[::2][::-1], margins[1::2][::-1]
    kept = x.ndim - count
    pads = b.integers([*[0] * kept, *begins, *[0] * kept, *ends])
    result: Value = b.op("Pad", x, pads, mode=mode)
    for place in range(count):
        begin, end = pad[2 * place], pad[2 * place + 1]
        if begin < 0 or end < 0:
            last = end if end < 0 else None
            first = -begin if begin < 0 else 0
            result = b.slice(result, x.ndim - 1 - place, first, last)
    return result
