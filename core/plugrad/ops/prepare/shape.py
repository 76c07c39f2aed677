"""Arguments of operators that join, repeat and rearrange: checked, promoted, dimensions wrapped."""

from __future__ import annotations

from typing import Final

from plugrad.dtype import BOOL, COMPLEX, INTEGER
from plugrad.ops.prepare.memory_formats import clone as clone
from plugrad.ops.prepare.memory_formats import to_copy as to_copy
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.ops.prepare.views import diagonal_dims, near_offset
from plugrad.tensor.base import TensorBase, ndim_of, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.promotion import result_type, to_dtype

Sizes = tuple[int, ...]
# Of an int64.
LARGEST: Final = (1 << 63) - 1


def is_skipped(sizes: Sizes) -> bool:
    """`cat` ignores tensors of shape [0], whatever the shape of the others."""
    return len(sizes) == 1 and sizes[0] == 0


def _is_uniform(tensors: list[TensorBase]) -> bool:
    """Whether tensors, at least one, all have one dtype and shape."""
    dtype = tensors[0].dtype
    sizes = sizes_of(tensors[0])
    for tensor in tensors:  # noqa: SIM110  # a generator is ten times as slow, compiled
        if tensor.dtype is not dtype or sizes_of(tensor) != sizes:
            return False
    return True


def cat(tensors: list[TensorBase], dim: int) -> tuple[object, ...]:
    if not tensors:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    ndim = ndim_of(tensors[0])
    if ndim > 1 and _is_uniform(tensors):
        return (tensors, wrap_dim(dim, ndim))
    shape: Sizes | None = None
    for position, tensor in enumerate(tensors):
        sizes = sizes_of(tensor)
        if not sizes:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated"
            )
        if shape is None and not is_skipped(sizes):
            shape = sizes
    dtype = result_type(*tensors)
    if shape is None:
        return ([to_dtype(tensors[0], dtype)], wrap_dim(dim, 1))
    dim = wrap_dim(dim, len(shape))
    joined: list[TensorBase] = []
    for position, tensor in enumerate(tensors):
        sizes = sizes_of(tensor)
        if is_skipped(sizes):
            continue
        if len(sizes) != len(shape):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(shape)} and {len(sizes)}"
            )
        for place, size in enumerate(sizes):
            if place != dim and size != shape[place]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size "
                    f"{shape[place]} but got size {size} for tensor number {position} in the list."
                )
        joined.append(to_dtype(tensor, dtype))
    return (joined, dim)


def check_stack(tensors: list[TensorBase]) -> None:
    """RuntimeError unless there are tensors and all have one shape."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = sizes_of(tensors[0])
    for position, tensor in enumerate(tensors):
        if sizes_of(tensor) != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(sizes_of(tensor))} at entry {position}"
            )


def stack(tensors: list[TensorBase], dim: int) -> tuple[object, ...]:
    if tensors and _is_uniform(tensors):
        return (tensors, wrap_dim(dim, ndim_of(tensors[0]) + 1))
    check_stack(tensors)
    dtype = result_type(*tensors)
    wrapped = wrap_dim(dim, ndim_of(tensors[0]) + 1)
    return ([to_dtype(tensor, dtype) for tensor in tensors], wrapped)


def flip(self: TensorBase, dims: Sizes) -> tuple[object, ...]:
    ndim = ndim_of(self)
    wrapped: list[int] = []
    for item in dims:
        dim = wrap_dim(item, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return (self, tuple(wrapped) if ndim else ())


def roll(self: TensorBase, shifts: Sizes, dims: Sizes) -> tuple[object, ...]:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if dims and ndim_of(self) == 0:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return (self, shifts, tuple([wrap_dim(dim, ndim_of(self)) for dim in dims]))


def check_counts(sizes: list[int]) -> None:
    """RuntimeError for more elements than an int64 counts: array libraries multiply without a look,
    and NumPy then writes where no array is."""
    elements = 1
    for length in sizes:
        elements *= max(length, 1)
    if elements > LARGEST:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")


def repeat(self: TensorBase, repeats: Sizes) -> tuple[object, ...]:
    sizes = sizes_of(self)
    added = len(repeats) - len(sizes)
    if added < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    target = [count * size for count, size in zip(repeats, (1,) * added + sizes, strict=True)]
    for length in target:
        if length < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: {target}"
            )
    check_counts(target)
    # Fewer than none of a dimension without elements are none.
    return (self, tuple([max(count, 0) for count in repeats]))


def repeat_interleave(repeats: TensorBase, output_size: int | None) -> tuple[object, ...]:
    if ndim_of(repeats) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype.category != INTEGER or repeats.dtype.itemsize < 4:
        raise RuntimeError("repeats has to be Long or Int tensor")
    return (repeats, output_size)


def _check_matrices(self: TensorBase, function: str) -> None:
    if ndim_of(self) < 2:
        raise RuntimeError(f"{function}: input tensor must have at least 2 dimensions")


def _inside(self: TensorBase, diagonal: int, name: str) -> int:
    """A diagonal of matrices, or the nearest one outside them."""
    _check_matrices(self, name)
    return near_offset(sizes_of(self), diagonal, -2, -1)


def tril(self: TensorBase, diagonal: int) -> tuple[object, ...]:
    return (self, _inside(self, diagonal, "tril"))


def triu(self: TensorBase, diagonal: int) -> tuple[object, ...]:
    return (self, _inside(self, diagonal, "triu"))


def sort(self: TensorBase, dim: int, descending: bool, stable: bool | None) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    if self.dtype.category == COMPLEX:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    return (self, wrapped, descending)


def topk(self: TensorBase, k: int, dim: int, largest: bool, sorted: bool) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    length = sizes_of(self)[wrapped] if ndim_of(self) else 1
    if k < 0 or k > length:
        raise RuntimeError("selected index k out of range")
    if self.dtype.category == COMPLEX:
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype.category == BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    return (self, k, wrapped, largest)


def diag_embed(self: TensorBase, offset: int, dim1: int, dim2: int) -> tuple[object, ...]:
    first, second = diagonal_dims(ndim_of(self) + 1, dim1, dim2)
    return (self, offset, first, second)


def copy_(self: TensorBase, src: TensorBase, non_blocking: bool) -> tuple[object, ...]:
    sizes = sizes_of(self)
    if sizes_of(src) != sizes:
        shape = broadcast_shapes(sizes, sizes_of(src))
        if shape != sizes:
            raise RuntimeError(
                f"output with shape {list(sizes)} doesn't match the broadcast shape {list(shape)}"
            )
    return (self, src)
