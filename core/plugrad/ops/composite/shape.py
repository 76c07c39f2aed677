"""Joining, repeating and converting by way of other operators."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.device import CPU, Device
from plugrad.dispatch.backends.active import canonical_device
from plugrad.dispatch.backends.kernel_errors import NEGATIVE_REPEATS, OTHER_OUTPUT_SIZE
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from plugrad.memory_format import MemoryFormat, check_rank, contiguous_format, preserve_format
from plugrad.ops.composite.memory_formats import copied, formatted
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor, zero_like
from plugrad.ops.composite.selection.sorting import argsort as argsort
from plugrad.ops.composite.selection.sorting import kthvalue as kthvalue
from plugrad.ops.composite.selection.sorting import msort as msort
from plugrad.ops.composite.selection.sorting import sort as sort
from plugrad.ops.composite.selection.sorting import topk as topk
from plugrad.ops.prepare import shape as prepare
from plugrad.ops.prepare.memory_formats import keeps_layout
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.ops.prepare.views import diagonal_dims
from plugrad.tensor.aliasing.layout import is_contiguous, strides
from plugrad.tensor.aliasing.memory_layout import suggested_format
from plugrad.tensor.aliasing.strides import diagonal_sizes
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import cast
from plugrad.tensor.creation.transfer import cast_first, moved
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def cat(tensors: list[Tensor], dim: int) -> Tensor:
    return F.cat(tensors, dim)


def cat_in_pairs(tensors: list[TensorBase], dim: int) -> Tensor:
    """For backends that cannot join: neighbours become one, until there is but one."""
    checked: tuple[Any, ...] = prepare.cat(tensors, dim)
    parts: list[Tensor] = checked[0]
    place: int = checked[1]
    if len(parts) == 1:
        return parts[0].clone()
    while len(parts) > 1:
        joined = [_joined(parts[i], parts[i + 1], place) for i in range(0, len(parts) - 1, 2)]
        if len(parts) % 2 == 1:
            joined.append(parts[-1])
        parts = joined
    return parts[0]


def _joined(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """Each place of the result takes an element of both, and keeps one of them."""
    left, right = sizes_of(a)[dim], sizes_of(b)[dim]
    if left == 0 or right == 0:
        return b if left == 0 else a
    place = np.arange(left + right)
    first = a.index_select(dim, index_tensor(np.minimum(place, left - 1), a))
    second = b.index_select(dim, index_tensor(np.maximum(place - left, 0), b))
    mask = (place < left).reshape((left + right,) + (1,) * (a.ndim - dim - 1))
    return F.where(mask_tensor(mask, first), first, second)


def stack(tensors: list[Tensor], dim: int) -> Tensor:
    prepare.check_stack([*tensors])
    place = wrap_dim(dim, tensors[0].ndim + 1)
    return F.cat([tensor.unsqueeze(place) for tensor in tensors], place)


def hstack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    rows = [F.atleast_1d(tensor) for tensor in tensors]
    return F.cat(rows, 0 if rows[0].ndim == 1 else 1)


def vstack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return F.cat([F.atleast_2d(tensor) for tensor in tensors], 0)


def dstack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return F.cat([F.atleast_3d(tensor) for tensor in tensors], 2)


def atleast_1d(self: Tensor) -> Tensor:
    return self.reshape((1,)) if self.ndim == 0 else self


def atleast_2d(self: Tensor) -> Tensor:
    if self.ndim >= 2:
        return self
    return self.reshape((1, 1)) if self.ndim == 0 else self.unsqueeze(0)


def atleast_3d(self: Tensor) -> Tensor:
    ndim = self.ndim
    if ndim >= 3:
        return self
    if ndim == 0:
        return self.reshape((1, 1, 1))
    return self.unsqueeze(0).unsqueeze(-1) if ndim == 1 else self.unsqueeze(-1)


def atleast_1d_each(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple([atleast_1d(tensor) for tensor in tensors])


def atleast_2d_each(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple([atleast_2d(tensor) for tensor in tensors])


def atleast_3d_each(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple([atleast_3d(tensor) for tensor in tensors])


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
    """Made on the host: how long the result is nobody knows beforehand."""
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


def meshgrid(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor.device is not tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError(
                "meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of shape "
                f"{list(sizes_of(tensor))}"
            )
    shape = tuple([tensor.numel() for tensor in tensors])
    grids: list[Tensor] = []
    for place, tensor in enumerate(tensors):
        column = (1,) * place + (tensor.numel(),) + (1,) * (len(tensors) - place - 1)
        grids.append(tensor.reshape(column).expand(shape))
    return tuple(grids)


def meshgrid_indexing(tensors: list[Tensor], indexing: str) -> tuple[Tensor, ...]:
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    if indexing == "ij" or len(tensors) < 2:
        return meshgrid(tensors)
    grids = meshgrid([tensors[1], tensors[0], *tensors[2:]])
    return (grids[1], grids[0], *grids[2:])


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


def contiguous(self: Tensor, memory_format: MemoryFormat) -> Tensor:
    if is_contiguous(self, memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self.clone(memory_format=memory_format)


def clone(self: Tensor, memory_format: MemoryFormat | None) -> TensorBase:
    """By way of host memory, or of a copy in row-major order."""
    prepared: Any = prepare.clone(self, memory_format)
    if prepared is DECLINED:
        assert memory_format is not None
        return copied(self, memory_format)
    made = np.array(host_array(self), order="K" if keeps_layout(memory_format) else "C")
    return from_host(made, self.dtype, self.device)


def to_copy(self: Tensor, dtype: DType, memory_format: MemoryFormat | None) -> TensorBase:
    prepare.to_copy(self, dtype, memory_format)
    return formatted(cast(self, dtype), memory_format)


def to_device(
    self: Tensor,
    device: Device,
    non_blocking: bool,
    dtype: DType | None,
    memory_format: MemoryFormat | None,
) -> TensorBase:
    if memory_format is not None:
        check_rank(memory_format, self.ndim)
    target = canonical_device(device)
    source: TensorBase = self
    if dtype is not None and dtype is not self.dtype and cast_first(self, dtype, target):
        source = cast(self, dtype)
    result = moved(source, target, non_blocking)
    if dtype is not None and result.dtype is not dtype:
        result = cast(result, dtype)
    return formatted(result, memory_format)


def _moved(
    self: Tensor,
    device: Device | None,
    dtype: DType | None,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    kind = self.dtype if dtype is None else dtype
    target = self.device if device is None else canonical_device(device)
    if target is not self.device:
        wanted = None if kind is self.dtype else kind
        return F._to_device(self, target, non_blocking, wanted, memory_format=memory_format)
    if kind is not self.dtype or copy or not _looks_like(self, memory_format):
        return F._to_copy(self, kind, memory_format=memory_format)
    return self


def _looks_like(self: Tensor, memory_format: MemoryFormat | None) -> bool:
    """Whether a tensor is in a format, or else in none of those for its rank."""
    if keeps_layout(memory_format):
        return True
    return suggested_format(sizes_of(self), strides(self)) is memory_format


def to_device_and_dtype(
    self: Tensor,
    device: Device | None,
    dtype: DType | None,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return _moved(self, device, dtype, non_blocking, copy, memory_format)


def to_dtype(
    self: Tensor,
    dtype: DType,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return _moved(self, None, dtype, non_blocking, copy, memory_format)


def to_other(
    self: Tensor,
    other: Tensor,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return _moved(self, other.device, other.dtype, non_blocking, copy, memory_format)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    return _moved(self, other.device, other.dtype, False, False, None)


def cpu(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _moved(self, CPU, None, False, False, memory_format)


def _cast(self: Tensor, dtype: DType, memory_format: MemoryFormat | None) -> Tensor:
    return _moved(self, None, dtype, False, False, memory_format)


def to_float32(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, float32, memory_format)


def to_float64(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, float64, memory_format)


def to_float16(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, float16, memory_format)


def to_bfloat16(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, bfloat16, memory_format)


def to_complex64(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, complex64, memory_format)


def to_complex128(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, complex128, memory_format)


def to_int64(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int64, memory_format)


def to_int32(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int32, memory_format)


def to_int16(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int16, memory_format)


def to_int8(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int8, memory_format)


def to_uint8(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, uint8, memory_format)


def to_bool(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, bool_, memory_format)


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
            # There is nothing left to take differences of, however often.
            break
        later = F.slice(result, dim, 1, length, 1)
        earlier = F.slice(result, dim, 0, max(length - 1, 0), 1)
        result = F.logical_xor(later, earlier) if result.dtype is bool_ else later - earlier
    return result


def column_stack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    columns = [t.reshape((t.numel(), 1)) if t.ndim < 2 else t for t in tensors]
    return hstack(columns)
