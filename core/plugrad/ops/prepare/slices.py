"""Arguments of operators that replace a part of a tensor: checked, dimensions wrapped."""

from __future__ import annotations

from plugrad.ops.prepare import views
from plugrad.tensor.aliasing.strides import check_reach, diagonal_run
from plugrad.tensor.base import TensorBase, numel_of, sizes_of
from plugrad.tensor.calls.promotion import to_dtype

Sizes = tuple[int, ...]


def _fitting(self: TensorBase, src: TensorBase, part: Sizes) -> TensorBase:
    """The source in the dtype of the tensor that it is written to; RuntimeError if it has another
    shape."""
    if sizes_of(src) != part:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(sizes_of(src))}, slice size = {list(part)}"
        )
    return to_dtype(src, self.dtype)


def select_scatter(self: TensorBase, src: TensorBase, dim: int, index: int) -> tuple[object, ...]:
    _, place, position = views.wrapped_select(self, dim, index)
    sizes = sizes_of(self)
    return (self, _fitting(self, src, (*sizes[:place], *sizes[place + 1 :])), place, position)


def slice_scatter(
    self: TensorBase, src: TensorBase, dim: int, start: int | None, end: int | None, step: int
) -> tuple[object, ...]:
    place, first, last = views.wrapped_slice(self, dim, start, end, step)
    sizes = sizes_of(self)
    length = (last - first + step - 1) // step
    part = _fitting(self, src, (*sizes[:place], length, *sizes[place + 1 :]))
    return (self, part, place, first, last, step)


def diagonal_scatter(
    self: TensorBase, src: TensorBase, offset: int, dim1: int, dim2: int
) -> tuple[object, ...]:
    sizes = sizes_of(self)
    first, second = views.diagonal_dims(len(sizes), dim1, dim2)
    offset = views.near_offset(sizes, offset, first, second)
    _, _, length = diagonal_run(sizes[first], sizes[second], offset)
    batch = tuple([size for dim, size in enumerate(sizes) if dim not in (first, second)])
    return (self, _fitting(self, src, (*batch, length)), offset, first, second)


def as_strided_scatter(
    self: TensorBase, src: TensorBase, size: Sizes, stride: Sizes, storage_offset: int
) -> tuple[object, ...]:
    views.check_geometry(size, stride, storage_offset)
    itemsize = self.dtype.itemsize
    check_reach(size, stride, storage_offset, itemsize, numel_of(self) * itemsize)
    return (self, _fitting(self, src, size), size, stride, storage_offset)
