"""Indexing: `x[index]` and `x[index] = value` by view operators, `index` and `index_put_`.

Integers select, slices slice, None unsqueezes, and Ellipsis stands for the remaining dimensions.
Tensors, lists and arrays are collected as advanced indices, one per dimension, and go to one
`index` at the end. A 0-dim integer tensor is an integer; while a function is traced or mapped over
a batch its value may be unknown, and what it selects is then a copy, which an assignment puts back.
"""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.dtype import INTEGER, bool_, int64, uint8
from plugrad.graph.history import check_inplace
from plugrad.tensor.aliasing.array_log import note_selected, note_stored
from plugrad.tensor.aliasing.overlap import check_overlap
from plugrad.tensor.base import TensorBase, ndim_of, needs_grad, sizes_of
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.overridable import OVERRIDES, find_tensor_like
from plugrad.tensor.calls.promotion import check_scalar_fits, is_scalar, to_dtype
from plugrad.tensor.creation.from_data import scalar_tensor, tensor
from plugrad.tensor.interop.arrays import host_array
from plugrad.tensor.interop.values import item
from plugrad.tensor.levels import is_mapped, is_mapped_innermost, whole_batch

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

_LONGEST_LIST_TAKEN_AS_TUPLE: Final = 32


def getitem(self: Tensor, index: object) -> Any:
    """`self[index]`: a view if `index` holds only integers, slices, None and Ellipsis, else a copy.

    Raises:
        IndexError: out of bounds, too many indices, shapes that do not match, or an index of
            another type.
        ValueError: a slice with a step below one.
        TypeError: slice bounds that are not integers.
    """
    if isinstance(index, int) and not isinstance(index, bool):
        return _select(self, 0, 0, index)
    if isinstance(index, slice):
        return _slice(self, 0, index, False)
    if index is None:
        return F.unsqueeze(self, 0)
    if isinstance(index, tuple) and _is_basic(index):
        part = _basic(self, list(index))[0]
        return F.alias(part) if part is self else part
    if not OVERRIDES.active and find_tensor_like(index if isinstance(index, tuple) else (index,)):
        public: Any = self
        return public[index]
    indices = _converted(self, _as_tuple(index))
    source = self
    place = _first_unknown(indices)
    while place >= 0:
        dim = _dim_of(source, indices, place)
        source = _select_at(source, dim, _position(source, dim, place, indices.pop(place)))
        place = _first_unknown(indices)
    view, advanced = _basic(source, indices)
    if advanced:
        return F.index(view, advanced)
    return F.alias(view) if view is self else view


def _is_basic(index: tuple[Any, ...]) -> bool:
    """Whether there are only integers, slices, None and Ellipsis of Python's own classes."""
    for entry in index:
        kind = type(entry)
        if kind is not int and kind is not slice and entry is not None and entry is not Ellipsis:
            return False
    return True


def setitem(self: Tensor, index: object, value: object) -> None:
    """`self[index] = value`, in place; `value` is a number or a tensor that broadcasts.

    Raises what `getitem` raises, and:
        TypeError: `value` is neither a number nor a tensor.
        RuntimeError: it does not broadcast or does not fit the dtype.
    """
    given = index if isinstance(index, tuple) else (index,)
    if not OVERRIDES.active and find_tensor_like((*given, value)):
        public: Any = self
        public[index] = value
        return
    if not isinstance(value, TensorBase) and not is_scalar(value):
        raise TypeError(
            f"can't assign a {type_name(value)} to a plugrad.{self.dtype.scalar_name}Tensor"
        )
    view = self
    advanced: list[Any] = []
    if isinstance(index, bool):
        if not index:
            return
    elif isinstance(index, int):
        view = _select(self, 0, 0, index)
    elif index is not None and index is not Ellipsis:
        indices = _converted(self, _as_tuple(index))
        place = _first_unknown(indices)
        if place >= 0:
            _assign_at(self, indices, place, value)
            return
        view, advanced = _basic(self, indices)
    source: Any = value
    if advanced:
        if not isinstance(value, TensorBase):
            source = scalar_tensor(value, dtype=self.dtype, device=self.device)
        view.index_put_(advanced, _without_leading_ones(source, 0))
    elif isinstance(value, TensorBase):
        # A source of the same shape may share memory with the target: x[...] = x.
        if source is not view:
            source = _without_leading_ones(source, len(sizes_of(view)))
            if sizes_of(source) != sizes_of(view):
                if not sizes_of(source) and source.device is view.device:
                    check_overlap(view, "copy_")
                    view.fill_(source)
                    return
                source = F.expand(source, sizes_of(view))
            view.copy_(source)
    else:
        check_scalar_fits(value, self.dtype)
        # `fill_` would let an expanded tensor pass; as in PyTorch, an assignment does not.
        if needs_grad(view):
            check_inplace(view)
        check_overlap(view, "copy_")
        view.fill_(source)


def _without_leading_ones(source: Tensor, ndim: int) -> Tensor:
    """`source` as a view, without its leading dimensions of size 1 if it has more than `ndim`."""
    sizes = sizes_of(source)
    extra = 0
    while extra < len(sizes) and sizes[extra] == 1:
        extra += 1
    return source if extra == 0 or len(sizes) <= ndim else F.reshape(source, sizes[extra:])


def _select(self: Tensor, dim: int, place: int, position: int) -> Tensor:
    """`self.select(dim, position)` with the errors of indexing, which name the index's `place`."""
    sizes = sizes_of(self)
    if not sizes:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    size = sizes[dim]
    if position >= size or position < -size:
        raise IndexError(
            f"index {position} is out of bounds for dimension {place} with size {size}"
        )
    if OVERRIDES.active:
        return F.select(self, dim, position)
    return C.call_select_int(self, dim, position)


def _slice(self: Tensor, dim: int, index: slice, keep_whole: bool) -> Tensor:
    """`self` sliced along `dim`; itself if the slice takes everything and `keep_whole` is set."""
    sizes = sizes_of(self)
    if not sizes:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if keep_whole and index.start is None and index.stop is None and index.step is None:
        return self
    size = sizes[dim]
    start, stop, step = index.indices(size)
    if step < 0:
        raise ValueError("step must be greater than zero")
    if keep_whole and start == 0 and stop == size and step == 1:
        return self
    if OVERRIDES.active:
        return F.slice(self, dim, start, max(start, stop), step)
    return C.call_slice_Tensor(self, dim, start, max(start, stop), step)


def _as_tuple(index: object) -> tuple[Any, ...]:
    """The indices by dimension; a short list with more than numbers in it counts as a tuple."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < _LONGEST_LIST_TAKEN_AS_TUPLE:
        for element in index:
            if element is None or isinstance(
                element, (list, tuple, slice, EllipsisType, TensorBase, np.ndarray)
            ):
                warn_at_caller(
                    "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
                    "x[tuple(seq)] instead of x[seq]. In the future this will be interpreted as "
                    "tensor index, x[plugrad.tensor(seq)], which will result either in an error "
                    "or a different result"
                )
                return tuple(index)
    return (index,)


def _index_tensor(index: Any, device: object) -> Any:
    """An advanced index as a tensor, a mask as a bool tensor; None if `index` is neither."""
    if isinstance(index, TensorBase):
        if index.dtype is not uint8:
            return index
        warn_at_caller(
            "indexing with dtype plugrad.uint8 is now deprecated, please use a dtype plugrad.bool "
            "instead."
        )
        public: Any = index
        return public.to(bool_)
    if isinstance(index, (list, tuple, range)):
        return tensor(index, dtype=None if len(index) else int64, device=device)
    if isinstance(index, np.ndarray):
        return tensor(index, device=device)
    if isinstance(index, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(index).__name__}'")
    return None


def _named_dimensions(indices: list[Any]) -> int:
    """How many dimensions of the tensor the indices take up."""
    count = 0
    for index in indices:
        if isinstance(index, TensorBase):
            count += index.ndim if index.dtype is bool_ else 1
        elif index is not None and index is not Ellipsis and not isinstance(index, bool):
            count += 1
    return count


def _converted(self: Tensor, index: tuple[Any, ...]) -> list[Any]:
    """The indices, with tensors in place of all that are advanced."""
    indices: list[Any] = []
    for entry in index:
        converted = _index_tensor(entry, self.device)
        indices.append(entry if converted is None else converted)
    return indices


def _count_named(self: Tensor, indices: list[Any]) -> int:
    """How many dimensions the indices take up; IndexError if there are fewer."""
    named = _named_dimensions(indices)
    ndim = ndim_of(self)
    if named > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    return named


def _first_unknown(indices: list[Any]) -> int:
    """The position of the first integer with a value that is not known yet; -1 if there is none."""
    for place, entry in enumerate(indices):
        if (
            isinstance(entry, TensorBase)
            and entry.ndim == 0
            and entry.dtype.category == INTEGER
            and _is_unknown(entry)
        ):
            return place
    return -1


def _is_unknown(index: TensorBase) -> bool:
    """Whether its value is unknown, because a function is traced or mapped over a batch."""
    if index._keyset & TRANSFORMS_BIT:
        return is_mapped(index)
    return not find_backend(index.device.type).backend.has_values(index._backend_array)


def _dim_of(self: Tensor, indices: list[Any], place: int) -> int:
    """The dimension that the index in a place is for."""
    named = _count_named(self, indices)
    before = indices[:place]
    dim = _named_dimensions(before)
    for entry in before:
        if entry is Ellipsis:
            dim += self.ndim - named
    return dim


def _position(self: Tensor, dim: int, place: int, index: Tensor) -> Tensor:
    """An index with an unknown value, in the form that `index_select` takes."""
    size = sizes_of(self)[dim]
    if size == 0:
        raise IndexError(f"index is out of bounds for dimension {place} with size 0")
    if index.device.type == "cpu" and is_mapped(index):
        # As in PyTorch, the dimension is counted in the whole batch.
        _check_batch(whole_batch(index), dim + is_mapped_innermost(self), size)
    wide: Any = to_dtype(index, int64)
    position: Tensor = F.where(F.lt(wide, 0), F.add(wide, size), wide)
    return F.reshape(position, (1,))


def _check_batch(index: Any, dim: int, size: int) -> None:
    """IndexError if one of the indices that are mapped over is out of bounds."""
    backend = find_backend(index.device.type).backend
    if not backend.has_values(index._backend_array):
        return
    # Read without an operator, which a capture would record.
    for number in backend.copy_to_host(index._backend_array).reshape(-1).tolist():
        if not -size <= number < size:
            raise IndexError(
                f"index {number} is out of bounds for dimension {dim} with size {size}"
            )


def _select_at(self: Tensor, dim: int, position: Tensor) -> Tensor:
    """A copy of the elements that `select` would return as a view."""
    copied: Tensor = F.squeeze(F.index_select(self, dim, position), dim)
    note_selected(copied)
    return copied


def _assign_at(self: Tensor, indices: list[Any], place: int, value: object) -> None:
    """`setitem` with an index of unknown value: writes to a copy, which is put back."""
    dim = _dim_of(self, indices, place)
    position = _position(self, dim, place, indices[place])
    part = F.squeeze(F.index_select(self, dim, position), dim)
    setitem(part, tuple(indices[:place] + indices[place + 1 :]), value)
    self.index_copy_(dim, position, F.unsqueeze(part, dim))
    note_stored(value)


def _basic(self: Tensor, indices: list[Any]) -> tuple[Tensor, list[Any]]:
    """The view that the basic indices give, and the advanced ones by its dimensions."""
    named = _count_named(self, indices)
    ndim = ndim_of(self)
    view = self
    advanced: list[Any] = []
    dim = 0
    for place, entry in enumerate(indices):
        if type(entry) is int:
            view = _select(view, dim, place, entry)
        elif entry is Ellipsis:
            dim += ndim - named
        elif entry is None:
            view = F.unsqueeze(view, dim)
            dim += 1
        elif isinstance(entry, slice):
            view = _slice(view, dim, entry, True)
            dim += 1
        elif isinstance(entry, bool):
            view = F.unsqueeze(view, dim)
            _put(advanced, dim, _flag(entry, self.device))
            dim += 1
        elif isinstance(entry, TensorBase):
            if entry.ndim > 0 or entry.dtype.category > INTEGER:
                if entry.dtype is bool_:
                    _check_mask(view, entry, dim)
                _put(advanced, dim, entry)
                # A mask covers as many dimensions as it has.
                dim += entry.ndim if entry.dtype is bool_ else 1
            elif entry.dtype is bool_:
                view = F.unsqueeze(view, dim)
                _put(advanced, dim, _flag(bool(item(entry)), self.device))
                dim += 1
            else:
                view = _select(view, dim, place, item(entry))
        else:
            view = _select(view, dim, place, _as_integer(entry))
    return view, advanced


def _put(advanced: list[Any], dim: int, index: Any) -> None:
    """Record an advanced index for `dim`; those before it without one get None."""
    last = advanced[-1] if advanced else None
    if last is not None and last.dtype is bool_ and last.ndim > 1:
        # Only the last entry of the list may cover several dimensions.
        del advanced[-1]
        advanced.extend(
            [tensor(column, device=last.device) for column in host_array(last).nonzero()]
        )
    while len(advanced) < dim:
        advanced.append(None)
    advanced.append(index)


def _check_mask(self: TensorBase, mask: TensorBase, dim: int) -> None:
    for offset, size in enumerate(sizes_of(mask)):
        if size != sizes_of(self)[dim + offset]:
            raise IndexError(
                f"The shape of the mask {list(sizes_of(mask))} at index {offset} does not match "
                f"the shape of the indexed tensor {list(sizes_of(self))} at index {dim + offset}"
            )


def _flag(value: bool, device: object) -> TensorBase:
    """What True or False selects from the dimension of size 1 that it adds."""
    made: TensorBase = tensor([0] if value else [], dtype=int64, device=device)
    return made


def _as_integer(index: Any) -> int:
    try:
        return operator.index(index)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {type_name(index)})"
        ) from None
