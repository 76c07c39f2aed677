"""Repeating, rotating and masking, composed of other operators, and imports from other modules."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import NEGATIVE_REPEATS, OTHER_OUTPUT_SIZE
from plugrad.dtype import bool_
from plugrad.memory_format import contiguous_format
from plugrad.ops.composite.arrangement.joining import atleast_1d as atleast_1d
from plugrad.ops.composite.arrangement.joining import atleast_1d_each as atleast_1d_each
from plugrad.ops.composite.arrangement.joining import atleast_2d as atleast_2d
from plugrad.ops.composite.arrangement.joining import atleast_2d_each as atleast_2d_each
from plugrad.ops.composite.arrangement.joining import atleast_3d as atleast_3d
from plugrad.ops.composite.arrangement.joining import atleast_3d_each as atleast_3d_each
from plugrad.ops.composite.arrangement.joining import cat as cat
from plugrad.ops.composite.arrangement.joining import cat_in_pairs as cat_in_pairs
from plugrad.ops.composite.arrangement.joining import column_stack as column_stack
from plugrad.ops.composite.arrangement.joining import dstack as dstack
from plugrad.ops.composite.arrangement.joining import hstack as hstack
from plugrad.ops.composite.arrangement.joining import meshgrid as meshgrid
from plugrad.ops.composite.arrangement.joining import meshgrid_indexing as meshgrid_indexing
from plugrad.ops.composite.arrangement.joining import stack as stack
from plugrad.ops.composite.arrangement.joining import vstack as vstack
from plugrad.ops.composite.conversions import clone as clone
from plugrad.ops.composite.conversions import contiguous as contiguous
from plugrad.ops.composite.conversions import cpu as cpu
from plugrad.ops.composite.conversions import to_bfloat16 as to_bfloat16
from plugrad.ops.composite.conversions import to_bool as to_bool
from plugrad.ops.composite.conversions import to_complex64 as to_complex64
from plugrad.ops.composite.conversions import to_complex128 as to_complex128
from plugrad.ops.composite.conversions import to_copy as to_copy
from plugrad.ops.composite.conversions import to_device as to_device
from plugrad.ops.composite.conversions import to_device_and_dtype as to_device_and_dtype
from plugrad.ops.composite.conversions import to_dtype as to_dtype
from plugrad.ops.composite.conversions import to_float16 as to_float16
from plugrad.ops.composite.conversions import to_float32 as to_float32
from plugrad.ops.composite.conversions import to_float64 as to_float64
from plugrad.ops.composite.conversions import to_int8 as to_int8
from plugrad.ops.composite.conversions import to_int16 as to_int16
from plugrad.ops.composite.conversions import to_int32 as to_int32
from plugrad.ops.composite.conversions import to_int64 as to_int64
from plugrad.ops.composite.conversions import to_other as to_other
from plugrad.ops.composite.conversions import to_uint8 as to_uint8
from plugrad.ops.composite.conversions import type_as as type_as
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor, zero_like
from plugrad.ops.composite.selection.sorting import argsort as argsort
from plugrad.ops.composite.selection.sorting import kthvalue as kthvalue
from plugrad.ops.composite.selection.sorting import msort as msort
from plugrad.ops.composite.selection.sorting import sort as sort
from plugrad.ops.composite.selection.sorting import topk as topk
from plugrad.ops.prepare import shape as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.ops.prepare.views import diagonal_dims
from plugrad.tensor.aliasing.strides import diagonal_sizes
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def fliplr(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return self.flip((1,))


def flipud(self: Tensor) -> Tensor:
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return self.flip((0,))


def flip(self: Tensor, dims: Sizes) -> Tensor:
    checked: tuple[Any, ...] = prepare.flip(self, dims)
    result = self
    for dim in checked[1]:
        backwards = np.arange(sizes_of(self)[dim] - 1, -1, -1)
        result = result.index_select(dim, index_tensor(backwards, self))
    return self.clone() if result is self else result


def roll(self: Tensor, shifts: Sizes, dims: Sizes) -> Tensor:
    checked: tuple[Any, ...] = prepare.roll(self, shifts, dims)
    if self.numel() == 0:
        return self.clone()
    if not dims:
        return _rolled(self.reshape((-1,)), shifts[0], 0).view(sizes_of(self))
    result = self
    for dim, shift in zip(checked[2], shifts, strict=True):
        result = _rolled(result, shift, dim)
    return result


def _rolled(self: Tensor, shift: int, dim: int) -> Tensor:
    length = sizes_of(self)[dim]
    origin = (np.arange(length) - shift) % length
    return self.index_select(dim, index_tensor(origin, self))


def tril(self: Tensor, diagonal: int) -> Tensor:
    prepare.tril(self, diagonal)
    rows, columns = sizes_of(self)[-2:]
    return _masked(self, np.tri(rows, columns, diagonal, dtype=np.bool_))


def triu(self: Tensor, diagonal: int) -> Tensor:
    prepare.triu(self, diagonal)
    rows, columns = sizes_of(self)[-2:]
    return _masked(self, ~np.tri(rows, columns, diagonal - 1, dtype=np.bool_))


def _masked(self: Tensor, kept: Any) -> Tensor:
    return F.where(mask_tensor(kept, self), self, zero_like(self))


def rot90(self: Tensor, k: int, dims: Sizes) -> Tensor:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    first = wrap_dim(dims[0], self.ndim)
    second = wrap_dim(dims[1], self.ndim)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    turns = k % 4
    if turns == 1:
        return self.flip((second,)).transpose_(first, second)
    if turns == 2:
        return self.flip((first, second))
    if turns == 3:
        return self.flip((first,)).transpose_(first, second)
    return self.clone()


def repeat(self: Tensor, repeats: Sizes) -> Tensor:
    """A new dimension of size `count` before each, expanded, then joined with it."""
    prepare.repeat(self, repeats)
    sizes = (1,) * (len(repeats) - self.ndim) + sizes_of(self)
    apart: list[int] = []
    expanded: list[int] = []
    joined: list[int] = []
    for count, size in zip(repeats, sizes, strict=True):
        apart += [1, size]
        expanded += [count, size]
        joined.append(count * size)
    spread = self.reshape(tuple(apart)).expand(tuple(expanded))
    return spread.clone(memory_format=contiguous_format).reshape(tuple(joined))


def tile(self: Tensor, dims: Sizes) -> Tensor:
    return self.repeat((1,) * (self.ndim - len(dims)) + dims)


def repeat_interleave(repeats: Tensor, output_size: int | None) -> TensorBase:
    """Runs on the host, since the length of the result depends on the elements."""
    prepare.repeat_interleave(repeats, output_size)
    counts = host_array(repeats)
    if (counts < 0).any():
        raise RuntimeError(NEGATIVE_REPEATS)
    result = np.repeat(np.arange(counts.size, dtype=counts.dtype), counts)
    if output_size is not None and output_size != result.size:
        raise RuntimeError(OTHER_OUTPUT_SIZE)
    return from_host(result, repeats.dtype, repeats.device)


def repeat_interleave_int(
    self: Tensor, repeats: int, dim: int | None, output_size: int | None
) -> Tensor:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        return repeat_interleave_int(self.reshape((-1,)), repeats, 0, output_size)
    place = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return repeat_interleave_int(self.reshape((1,)), repeats, 0, output_size)
    sizes = sizes_of(self)
    if output_size is not None and output_size != repeats * sizes[place]:
        raise RuntimeError(OTHER_OUTPUT_SIZE)
    spread = self.unsqueeze(place + 1).expand((*sizes[: place + 1], repeats, *sizes[place + 1 :]))
    copied = spread.clone(memory_format=contiguous_format)
    return copied.reshape((*sizes[:place], sizes[place] * repeats, *sizes[place + 1 :]))


def repeat_interleave_tensor(
    self: Tensor, repeats: Tensor, dim: int | None, output_size: int | None
) -> Tensor:
    if dim is None:
        return repeat_interleave_tensor(self.reshape((-1,)), repeats, 0, output_size)
    place = wrap_dim(dim, self.ndim)
    length = sizes_of(self)[place] if self.ndim else 1
    if repeats.ndim == 0 or sizes_of(repeats) == (1,):
        repeats = repeats.reshape((1,)).expand((length,))
    elif repeats.ndim == 1 and sizes_of(repeats)[0] != length:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{sizes_of(repeats)[0]} and input.size({place}) = {length}"
        )
    indices = F.repeat_interleave(repeats, output_size=output_size)
    return self.index_select(place, indices)


def diag(self: Tensor, diagonal: int) -> Tensor:
    ndim = self.ndim
    if ndim == 1:
        return F.diag_embed(self, diagonal)
    if ndim == 2:
        return self.diagonal(diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")


def diag_embed(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    ndim = self.ndim + 1
    first, second = diagonal_dims(ndim, dim1, dim2)
    sizes = diagonal_sizes(sizes_of(self), offset, first, second)
    return F.diagonal_backward(self, sizes, offset, first, second)


def _expands(size: Sizes, wanted: Sizes) -> bool:
    for length, other in zip(size, wanted, strict=True):  # noqa: SIM110  # needs no generator
        if length not in (1, other):
            return False
    return True


def sum_to_size(self: Tensor, size: tuple[int, ...]) -> Tensor:
    sizes = sizes_of(self)
    added = len(sizes) - len(size)
    if added < 0 or not _expands(size, sizes[added:]):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(sizes)}}}.")
    dims = [dim for dim in range(len(sizes)) if dim < added or size[dim - added] != sizes[dim]]
    if not size:
        return F.sum(self)
    return C.call__unsafe_view(F.sum(self, dims, True), size) if dims else self


def diagflat(self: Tensor, offset: int) -> Tensor:
    return diag(self.reshape((-1,)), offset)


def diff(self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    if self.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return self.clone()
    parts = [part for part in (prepend, self, append) if part is not None]
    result = self if len(parts) == 1 else F.cat(parts, dim)
    for _ in range(n):
        length = sizes_of(result)[dim]
        if length == 0:
            # There are no elements to take differences of, for any order.
            break
        later = F.slice(result, dim, 1, length, 1)
        earlier = F.slice(result, dim, 0, max(length - 1, 0), 1)
        result = F.logical_xor(later, earlier) if result.dtype is bool_ else later - earlier
    return result
