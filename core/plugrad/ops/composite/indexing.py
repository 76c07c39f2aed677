"""Composite indexing operators; all reading and writing is based on `take`."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.device import CPU
from plugrad.dispatch.backends.kernel_errors import OUTSIDE_TABLE, TOO_FEW_ELEMENTS, unlike_values
from plugrad.dtype import FLOATING, bool_, int32, int64
from plugrad.ops.composite.scattering import scatter_reduced as scatter_reduced
from plugrad.ops.composite.scattering import scatter_reduced_ as scatter_reduced_
from plugrad.ops.composite.scattering import scatter_value_reduced as scatter_value_reduced
from plugrad.ops.composite.scattering import scatter_value_reduced_ as scatter_value_reduced_
from plugrad.ops.composite.selection import positions
from plugrad.ops.composite.selection.positions import (
    check_device,
    check_range,
    host_index,
    mask_tensor,
)
from plugrad.ops.prepare import indexing as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.operands import device_mismatch
from plugrad.tensor.calls.promotion import check_scalar_fits, scalar_fits
from plugrad.tensor.interop.arrays import host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if dim is None and indices.dtype is int32:
        indices = indices.to(int64)
    if indices.dtype is not int64:
        raise RuntimeError(
            f"take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return self.reshape((-1,)).gather(0, indices.reshape((-1,)))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    place = wrap_dim(dim, self.ndim)
    own = list(sizes_of(self))
    wanted = list(sizes_of(indices))
    own[place] = sizes_of(indices)[place]
    indices = indices.expand(broadcast_shapes(tuple(own), sizes_of(indices)))
    wanted[place] = sizes_of(self)[place]
    self = self.expand(broadcast_shapes(sizes_of(self), tuple(wanted)))
    # PyTorch counts indices from either end, and around it.
    return self.gather(place, indices.remainder(wanted[place]))


def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    if index.dtype is not int64:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if source.numel() != index.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    flat = self.reshape((-1,)).index_put([index.reshape((-1,))], source.reshape((-1,)), accumulate)
    return C.call__unsafe_view(flat, sizes_of(self))


def nonzero_as_tuple(self: Tensor, as_tuple: bool) -> Any:
    if not as_tuple:
        return F.nonzero(self)
    if self.ndim == 0:
        self = self.reshape((1,))
    return tuple(F.nonzero(self).unbind(1))


def argwhere(self: Tensor) -> Tensor:
    positions: Tensor = F.nonzero(self)
    return positions


def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Tensor | None,
) -> Tensor:
    """Counts the elements that are before each value, all of them at once."""
    prepare.searchsorted(sorted_sequence, self, right, side, sorter)
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    row = sorted_sequence.detach()
    if row.ndim > 1:
        row = row.unsqueeze(-2)
    values = self.detach().unsqueeze(-1)
    return _places(row, values, right or side == "right", out_int32)


def _places(row: Tensor, values: Any, behind: bool, out_int32: bool) -> Tensor:
    # Negated, so that nan comes last.
    before = ((row > values) if behind else (row >= values)).logical_not()
    places: Tensor = before.sum(-1).to(int32 if out_int32 else int64)
    return places


def searchsorted_number(
    sorted_sequence: Tensor,
    self: Any,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Tensor | None,
) -> Tensor:
    dtype = sorted_sequence.dtype
    if dtype.category == FLOATING and not isinstance(self, complex):
        if not scalar_fits(self, dtype):
            # It is before or behind every number that the dtype has.
            self = math.inf if self > 0 else -math.inf
    elif dtype.category == FLOATING or not isinstance(self, float):
        check_scalar_fits(self, dtype)
    value = F.zeros((), dtype=dtype, device=sorted_sequence.device)
    prepare.searchsorted(sorted_sequence, value, right, side, sorter)
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    return _places(sorted_sequence.detach(), self, right or side == "right", out_int32)


def bucketize(self: Tensor, boundaries: Tensor, out_int32: bool, right: bool) -> Tensor:
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, self, out_int32, right, None, None)


def bucketize_number(self: Any, boundaries: Tensor, out_int32: bool, right: bool) -> Tensor:
    return searchsorted_number(boundaries, self, out_int32, right, None, None)


def gather(self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    place = wrap_dim(dim, self.ndim)
    prepare.gather(self, dim, index, sparse_grad)
    return positions.read(self, positions.along(sizes_of(self), place, host_index(index, self)))


def scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    prepare.scatter(self, dim, index, src)
    return positions.write(self, _scattered(self, dim, index), _corner(src, index))


def scatter_value(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    prepare.scatter_value(self, dim, index, value)
    places = _scattered(self, dim, index)
    if places.size == 0:
        return self.clone()
    written = np.zeros(self.numel(), np.bool_)
    written[places.reshape(-1)] = True
    number = F.full((), value, dtype=self.dtype, device=self.device)
    return F.where(mask_tensor(written.reshape(sizes_of(self)), self), number, self)


def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    prepare.scatter(self, dim, index, src)
    return positions.add(self, _scattered(self, dim, index), _corner(src, index))


def _scattered(self: Tensor, dim: int, index: Tensor) -> Any:
    return positions.along(sizes_of(self), wrap_dim(dim, self.ndim), host_index(index, self))


def _corner(src: Tensor, index: Tensor) -> Tensor:
    """What an index of these sizes uses of a source."""
    for place, size in enumerate(sizes_of(index)):
        if src.ndim and sizes_of(src)[place] != size:
            src = F.slice(src, place, 0, size, 1)
    return src


def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    prepare.index_select(self, dim, index)
    sizes = sizes_of(self)
    place = wrap_dim(dim, len(sizes))
    where = host_index(index, self).reshape(-1)
    length = sizes[place] if sizes else 1
    if where.size and (where.min() < 0 or where.max() >= length):
        raise IndexError(OUTSIDE_TABLE)
    if not sizes:
        return self.clone()
    shape = (*sizes[:place], where.size, *sizes[place + 1 :])
    return positions.read(self, positions.slices(sizes, place, where).reshape(shape))


def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> Tensor:
    prepare.index_add(self, dim, index, source, alpha)
    place = wrap_dim(dim, self.ndim)
    where = host_index(index, self).reshape(-1)
    try:
        check_range(where, sizes_of(self)[place] if self.ndim else 1, place)
    except RuntimeError:
        if self.ndim > 1:
            raise
        raise IndexError(OUTSIDE_TABLE) from None
    if alpha != 1:
        source = source * F.full((), alpha, dtype=source.dtype, device=source.device)
    return positions.add(self, positions.slices(sizes_of(self), place, where), source)


def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    prepare.index_copy(self, dim, index, source)
    place = wrap_dim(dim, self.ndim)
    where = host_index(index, self).reshape(-1)
    try:
        check_range(where, sizes_of(self)[place] if self.ndim else 1, place)
    except RuntimeError as error:
        raise IndexError(f"index_copy_(): {error}") from None
    return positions.write(self, positions.slices(sizes_of(self), place, where), source)


def index_fill_scalar(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    prepare.index_fill_scalar(self, dim, index, value)
    number = F.full((), value, dtype=self.dtype, device=self.device)
    return _filled(self, dim, index, number)


def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    checked: tuple[Any, ...] = prepare.index_fill(self, dim, index, value)
    return _filled(self, dim, index, checked[3])


def _filled(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    place = wrap_dim(dim, self.ndim)
    length = sizes_of(self)[place] if self.ndim else 1
    where = host_index(index, self).reshape(-1)
    check_range(where, length, place, True)
    written = np.zeros(length, np.bool_)
    written[where] = True
    shape = (length,) + (1,) * (self.ndim - place - 1) if self.ndim else ()
    return F.where(mask_tensor(written.reshape(shape), self), value, self)


def _read_indices(self: Tensor, indices: list[Any]) -> Any:
    """The positions of `self[indices]`."""
    found: list[Any] = []
    for index in prepare.check_indices(self, indices):
        if index is None:
            found.append(None)
        else:
            found.append(host_array(index) if index.dtype is bool_ else host_index(index))
    return positions.indexed(sizes_of(self), found)


def _check_devices(self: Tensor, indices: list[Any]) -> None:
    """RuntimeError if an index is on a device that is neither the tensor's nor the CPU."""
    for index in indices:
        if index is not None and index.device is not self.device and index.device is not CPU:
            raise RuntimeError(
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({self.device})"
            )


def index(self: Tensor, indices: list[Any]) -> Tensor:
    _check_devices(self, indices)
    return positions.read(self, _read_indices(self, indices))


def index_put(self: Tensor, indices: list[Any], values: Tensor, accumulate: bool) -> Tensor:
    _check_devices(self, indices)
    if values.device is not self.device:
        if values.device is not CPU or values.ndim > 0:
            raise device_mismatch(self.device, values.device)
        values = F._to_device(values, self.device)
    checked: tuple[Any, ...] = prepare.index_put(self, indices, values, accumulate)
    values = checked[2]
    places = _read_indices(self, indices)
    try:
        spread = values.expand(places.shape)
    except RuntimeError:
        raise unlike_values(sizes_of(values), places.shape) from None
    return (positions.add if accumulate else positions.write)(self, places, spread)


def masked_fill_scalar(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    prepare.masked_fill_scalar(self, mask, value)
    return F.where(mask, F.full((), value, dtype=self.dtype, device=self.device), self)


def masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    checked: tuple[Any, ...] = prepare.masked_fill(self, mask, value)
    return F.where(mask, checked[2], self)


def _positions_of_mask(self: Tensor, mask: Tensor) -> tuple[Tensor, Any]:
    """The tensor in the common shape, and the positions that the mask selects there."""
    check_device(mask, self)
    shape = broadcast_shapes(sizes_of(self), sizes_of(mask))
    selected = np.flatnonzero(np.broadcast_to(host_array(mask), shape))
    return (self if shape == sizes_of(self) else self.expand(shape)), selected


def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    prepare.masked_select(self, mask)
    spread, selected = _positions_of_mask(self, mask)
    return positions.read(spread, selected)


def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    prepare.masked_scatter(self, mask, source)
    spread, selected = _positions_of_mask(self, mask)
    if source.numel() < selected.size:
        raise RuntimeError(TOO_FEW_ELEMENTS)
    return positions.write(spread, selected, source)


def nonzero(self: Tensor) -> TensorBase:
    """Runs on the host, since the number of results depends on the elements."""
    host = host_array(self)
    if host.ndim == 0:
        return positions.index_tensor(np.zeros((int(bool(host)), 0)), self)
    return positions.index_tensor(np.argwhere(host), self)
