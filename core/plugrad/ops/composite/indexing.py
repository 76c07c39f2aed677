"""Indexing by way of other indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import int32, int64
from plugrad.ops.prepare import indexing as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of
from plugrad.tensor.kernels import broadcast_shapes

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
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
    place = wrap_dim(dim, self.ndim)
    own = list(sizes_of(self))
    wanted = list(sizes_of(indices))
    if own:
        own[place] = sizes_of(indices)[place]
        indices = indices.expand(broadcast_shapes(tuple(own), sizes_of(indices)))
        wanted[place] = sizes_of(self)[place]
        self = self.expand(broadcast_shapes(sizes_of(self), tuple(wanted)))
    return self.gather(place, indices)


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
    return flat.reshape(sizes_of(self))


def nonzero_as_tuple(self: Tensor, as_tuple: bool) -> Any:
    if not as_tuple:
        return F.nonzero(self)
    if self.ndim == 0:
        self = self.reshape((1,))
    return F.nonzero(self).unbind(1)


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
    value = F.full((), self, dtype=sorted_sequence.dtype, device=sorted_sequence.device)
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
