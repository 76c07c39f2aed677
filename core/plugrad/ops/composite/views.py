"""Views composed of other views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dtype import DType, int64
from plugrad.memory_format import contiguous_format
from plugrad.ops.composite.selection.view_gradients import diagonal_backward as diagonal_backward
from plugrad.ops.composite.selection.view_gradients import select_backward as select_backward
from plugrad.ops.composite.selection.view_gradients import slice_backward as slice_backward
from plugrad.ops.composite.selection.view_gradients import strided_sum as strided_sum
from plugrad.ops.prepare import views as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.aliasing.layout import is_contiguous, strides
from plugrad.tensor.aliasing.layout import storage_offset as storage_offset_of
from plugrad.tensor.aliasing.strides import diagonal_run
from plugrad.tensor.base import TensorBase, detached, ndim_of, numel_of, sizes_of, wrap
from plugrad.tensor.creation.allocation import check_memory
from plugrad.tensor.interop.arrays import host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]

# What a tensor that has no elements of its own takes at least.
_VIEW_BYTES: Final = 256


def can_view(self: TensorBase, size: Sizes) -> bool:
    """Whether strides exist that give the same elements in another shape.

    Dimensions that follow each other in memory form runs; each run must be cut into whole new
    dimensions.
    """
    if is_contiguous(self):
        return True
    old = sizes_of(self)
    steps = strides(self)
    place = len(size) - 1
    run = 1
    step = steps[-1]
    for dim in range(len(old) - 1, -1, -1):
        run *= old[dim]
        # The step along a dimension of size 1 does not matter, because it is never taken.
        joined = dim > 0 and (old[dim - 1] == 1 or steps[dim - 1] == run * step)
        if joined:
            continue
        cut = 1
        while place >= 0 and (cut < run or size[place] == 1):
            cut *= size[place]
            place -= 1
        if cut != run:
            return False
        run = 1
        step = steps[dim - 1]
    return place < 0


def reshape(self: Tensor, shape: Sizes) -> Tensor:
    size = prepare.infer_size(shape, numel_of(self))
    if can_view(self, size):
        return C.call_view(self, size)
    return C.call__unsafe_view(C.call_clone(self, contiguous_format), size)


def temporary_in_shape(x: Tensor, size: Sizes) -> Tensor:
    """A temporary in another shape; no view is recorded, because nothing else refers to its
    base."""
    return C.call__unsafe_view(x, size) if can_view(x, size) else x.reshape(size)


def unsafe_view(self: Tensor, size: Sizes) -> Tensor:
    return self.view(size)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    return self.reshape(sizes_of(other))


def view_dtype(self: Tensor, dtype: DType) -> Tensor:
    return C.call__view_dtype(self, dtype)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    return self.view(sizes_of(other))


def flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    sizes = sizes_of(self)
    start = wrap_dim(start_dim, len(sizes))
    end = wrap_dim(end_dim, len(sizes))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not sizes:
        return C.call_reshape(self, (1,))
    if start == end:
        return self
    if end - start + 1 == len(sizes):
        return C.call_reshape(self, (numel_of(self),))
    length = 1
    for size in sizes[start : end + 1]:
        length *= size
    return C.call_reshape(self, (*sizes[:start], length, *sizes[end + 1 :]))


def unflatten(self: Tensor, dim: int, sizes: Sizes) -> Tensor:
    old = sizes_of(self)
    dim = wrap_dim(dim, len(old))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length = old[dim] if old else 1
    try:
        inferred = prepare.infer_size(sizes, length)
    except RuntimeError as error:
        if sizes.count(-1) > 1:
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({length}) in the input tensor"
        ) from error
    return self.view((*old[:dim], *inferred, *old[dim + 1 :]))


def ravel(self: Tensor) -> Tensor:
    return self.contiguous().reshape((-1,))


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    ndim = self.ndim
    first = wrap_dim(dim0, ndim)
    second = wrap_dim(dim1, ndim)
    order = list(range(ndim))
    if order:
        order[first], order[second] = second, first
    return self.permute(order)


def t(self: Tensor) -> Tensor:
    prepare.t(self)
    return C.call_permute(self, tuple(range(ndim_of(self) - 1, -1, -1)))


def swapaxes(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return self.transpose(dim0, dim1)


def swapaxes_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return self.transpose_(dim0, dim1)


def movedim_int(self: Tensor, source: int, destination: int) -> Tensor:
    return movedim(self, (source,), (destination,))


def movedim(self: Tensor, source: Sizes, destination: Sizes) -> Tensor:
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should "
            f"contain the same number of dims as destination ({list(destination)} dims)"
        )
    ndim = self.ndim
    sources = [wrap_dim(dim, ndim) for dim in source]
    destinations = [wrap_dim(dim, ndim) for dim in destination]
    for name, dims, given in (
        ("source", sources, source),
        ("destination", destinations, destination),
    ):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return F.alias(self)
    order = [dim for dim in range(ndim) if dim not in sources]
    for place, dim in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, dim)
    return self.permute(order)


def numpy_T(self: Tensor) -> Tensor:
    ndim = ndim_of(self)
    dims = (1, 0) if ndim == 2 else tuple(range(ndim - 1, -1, -1))
    return C.call_permute(self, dims)


def _check_matrices(self: Tensor, name: str) -> None:
    if self.ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        )


def mT(self: Tensor) -> Tensor:
    _check_matrices(self, "mT")
    return self.transpose(-2, -1) if self.ndim else self


def mH(self: Tensor) -> Tensor:
    _check_matrices(self, "mH")
    return adjoint(self)


def adjoint(self: Tensor) -> Tensor:
    _check_matrices(self, "adjoint()")
    turned = self.transpose(-2, -1) if self.ndim else self
    return turned.conj() if self.dtype.is_complex else turned


def matrix_H(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else "")
        )
    return adjoint(self)


def _without(self: Tensor, dims: Sizes) -> Tensor:
    return self.view(tuple([size for dim, size in enumerate(sizes_of(self)) if dim not in dims]))


def squeeze(self: Tensor) -> Tensor:
    return _without(self, tuple([dim for dim, size in enumerate(sizes_of(self)) if size == 1]))


def squeeze_dim(self: Tensor, dim: int) -> Tensor:
    return squeeze_dims(self, (dim,))


def squeeze_dims(self: Tensor, dim: Sizes) -> Tensor:
    checked: tuple[Any, ...] = prepare.squeeze_dims(self, dim)
    return _without(self, checked[1])


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    sizes = sizes_of(self)
    place = wrap_dim(dim, len(sizes) + 1)
    return self.view((*sizes[:place], 1, *sizes[place:]))


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    return self.expand(sizes_of(other))


def broadcast_to(self: Tensor, size: Sizes) -> Tensor:
    return self.expand(size)


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    sizes = sizes_of(self)
    if not sizes:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, len(sizes))
    whole = sizes[dim]
    if start < -whole or start > whole:
        raise IndexError(
            f"start out of range (expected to be in range of [{-whole}, {whole}], but got {start})"
        )
    first = start + whole if start < 0 else start
    if first + length > whole:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({whole}).")
    return F.slice(self, dim, first, first + length, 1)


def select(self: Tensor, dim: int, index: int) -> Tensor:
    prepare.select(self, dim, index)
    sizes = sizes_of(self)
    dim = wrap_dim(dim, len(sizes))
    position = index % sizes[dim]
    return squeeze_dims(F.slice(self, dim, position, position + 1, 1), (dim,))


def _parts(self: Tensor, sizes: Sizes, dim: int) -> tuple[Tensor, ...]:
    parts: list[Tensor] = []
    start = 0
    for size in sizes:
        parts.append(F.slice(self, dim, start, start + size, 1))
        start += size
    return tuple(parts)


def split(self: Tensor, split_size: int, dim: int) -> tuple[Tensor, ...]:
    sizes, wrapped = prepare.equal_parts(sizes_of(self), split_size, dim)
    return _parts(self, sizes, wrapped)


def split_with_sizes(self: Tensor, split_sizes: Sizes, dim: int) -> tuple[Tensor, ...]:
    prepare.split_with_sizes(self, split_sizes, dim)
    return _parts(self, split_sizes, dim)


def split_sizes(self: Tensor, split_size: Sizes, dim: int) -> tuple[Tensor, ...]:
    return tuple(self.split_with_sizes(split_size, dim))


def chunk(self: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    sizes = sizes_of(self)
    if not sizes:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = sizes[wrap_dim(dim, len(sizes))]
    if length == 0:
        check_memory(chunks * _VIEW_BYTES)
        return tuple(self.split_with_sizes((0,) * chunks, dim))
    return tuple(C.call_split_Tensor(self, (length + chunks - 1) // chunks, dim))


def tensor_split(self: Tensor, sections: int, dim: int) -> tuple[Tensor, ...]:
    _check_tensor_split(self)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    check_memory(sections * _VIEW_BYTES)
    length = sizes_of(self)[wrap_dim(dim, self.ndim)]
    small, larger = divmod(length, sections)
    # Slices, each with a node of its own, may be written to; parts of one split may not.
    starts = [small * part + min(part, larger) for part in range(sections)]
    ends = [*starts[1:], length]
    return tuple([F.slice(self, dim, *ends_of, 1) for ends_of in zip(starts, ends, strict=True)])


def tensor_split_indices(self: Tensor, indices: Sizes, dim: int) -> tuple[Tensor, ...]:
    _check_tensor_split(self)
    dim = wrap_dim(dim, self.ndim)
    parts: list[Tensor] = []
    start = 0
    for end in indices:
        parts.append(F.slice(self, dim, start, end, 1))
        start = end
    parts.append(F.slice(self, dim, start, None, 1))
    return tuple(parts)


def tensor_split_by_tensor(
    self: Tensor, tensor_indices_or_sections: Tensor, dim: int
) -> tuple[Tensor, ...]:
    _check_tensor_split(self)
    given = tensor_indices_or_sections
    if given.dtype is not int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{given.dtype.scalar_name}"
        )
    if given.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            f"one-dimensional tensor, but got a tensor with {given.ndim} dims"
        )
    numbers: Any = host_array(given).tolist()
    if given.ndim == 0:
        return tensor_split(self, numbers, dim)
    return tensor_split_indices(self, tuple(numbers), dim)


def _check_tensor_split(self: Tensor) -> None:
    if self.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )


def unbind(self: Tensor, dim: int) -> tuple[Tensor, ...]:
    prepare.unbind(self, dim)
    length = sizes_of(self)[wrap_dim(dim, self.ndim)]
    return tuple([self.select(dim, index) for index in range(length)])


def diagonal(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Consecutive matrices form one long row, in which a diagonal is a slice."""
    ndim = self.ndim
    first, second = prepare.diagonal_dims(ndim, dim1, dim2)
    order = [dim for dim in range(ndim) if dim not in (first, second)]
    turned = self.permute((*order, first, second))
    sizes = sizes_of(turned)
    batch = sizes[:-2]
    rows, columns = sizes[-2:]
    row, column, length = diagonal_run(rows, columns, offset)
    if length == 0:
        return F.slice(turned, ndim - 2, 0, 0, 1).view((*batch, 0))
    if can_view(turned, (*batch, rows * columns)):
        flat = turned.view((*batch, rows * columns))
        start, step = row * columns + column, columns + 1
        return F.slice(flat, ndim - 2, start, start + (length - 1) * step + 1, step)
    steps = strides(turned)
    shift = storage_offset_of(self) + row * steps[-2] + column * steps[-1]
    return turned.as_strided((*batch, length), (*steps[:-2], steps[-2] + steps[-1]), shift)


def as_strided(self: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None) -> Tensor:
    start = storage_offset_of(self)
    offset = start if storage_offset is None else storage_offset
    return F._as_strided(self, size, stride, offset, strides(self), start)


def as_strided_(self: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None) -> Tensor:
    start = storage_offset_of(self)
    offset = start if storage_offset is None else storage_offset
    return C.call__as_strided_(self, size, stride, offset, strides(self), start)


def detach(self: Tensor) -> TensorBase:
    return detached(self)


def alias(self: Tensor) -> TensorBase:
    return detached(self)


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    own = strides(self)
    start = storage_offset_of(self)
    window, steps = prepare.unfolded(sizes_of(self), own, dimension, size, step)
    return F._as_strided(self, window, steps, start, own, start)


def unsafe_split(self: Tensor, split_size: int, dim: int) -> tuple[TensorBase, ...]:
    return _unrelated(split(self, split_size, dim))


def unsafe_split_with_sizes(self: Tensor, split_sizes: Sizes, dim: int) -> tuple[TensorBase, ...]:
    return _unrelated(split_with_sizes(self, split_sizes, dim))


def _unrelated(parts: tuple[Tensor, ...]) -> tuple[TensorBase, ...]:
    """The same arrays in tensors that are not views."""
    return tuple([wrap(part._backend_array, part.dtype, part.device) for part in parts])


def unsafe_chunk(self: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    sizes = tuple([sizes_of(part)[dim] for part in chunk(self.detach(), chunks, dim)])
    return tuple(self.unsafe_split_with_sizes(sizes, dim))


def _check_split(self: Tensor, name: str, least: int) -> None:
    if self.ndim < least:
        raise RuntimeError(
            f"{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{self.ndim} dimensions!"
        )


def _split_evenly(self: Tensor, name: str, sections: int, dim: int) -> tuple[Tensor, ...]:
    length = sizes_of(self)[dim]
    if sections <= 0 or length % sections != 0:
        raise RuntimeError(
            f"{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{length} is not divisible by the split_size {sections}!"
        )
    return tensor_split(self, sections, dim)


def hsplit(self: Tensor, sections: int) -> tuple[Tensor, ...]:
    _check_split(self, "hsplit", 1)
    return _split_evenly(self, "hsplit", sections, 0 if self.ndim == 1 else 1)


def hsplit_indices(self: Tensor, indices: Sizes) -> tuple[Tensor, ...]:
    _check_split(self, "hsplit", 1)
    return tensor_split_indices(self, indices, 0 if self.ndim == 1 else 1)


def vsplit(self: Tensor, sections: int) -> tuple[Tensor, ...]:
    _check_split(self, "vsplit", 2)
    return _split_evenly(self, "vsplit", sections, 0)


def vsplit_indices(self: Tensor, indices: Sizes) -> tuple[Tensor, ...]:
    _check_split(self, "vsplit", 2)
    return tensor_split_indices(self, indices, 0)


def dsplit(self: Tensor, sections: int) -> tuple[Tensor, ...]:
    _check_split(self, "dsplit", 3)
    return _split_evenly(self, "dsplit", sections, 2)


def dsplit_indices(self: Tensor, indices: Sizes) -> tuple[Tensor, ...]:
    _check_split(self, "dsplit", 3)
    return tensor_split_indices(self, indices, 2)
