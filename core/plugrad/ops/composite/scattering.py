"""Reductions over the elements that an index sends to one place, by one comparison of all places
with all indices. Memory grows with the product of both numbers."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, bool_, iinfo, int32, int64
from plugrad.graph.support import overwritten
from plugrad.memory_format import contiguous_format
from plugrad.ops.prepare.indexing import check_scatter
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.aliasing.overlap import check_operands
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

_REDUCTIONS: Final = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin.")
    if index.dtype is int32:
        index = index.to(int64)
    if index.dtype is not int64:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if self.dtype is not src.dtype:
        raise RuntimeError("scatter_reduce(): Expected self.dtype to be equal to src.dtype")
    check_scatter(self, dim, index, src)
    if index.numel() == 0:
        return self.clone()
    if self.ndim == 0:
        wrap_dim(dim, 0)
        flat = (index.reshape((-1,)), src.reshape((-1,)))
        found = scatter_reduce(self.reshape((1,)), 0, *flat, reduce, include_self)
        # Not what a node may keep: writes to the result would go unnoticed.
        return C.call__unsafe_view(C.call_clone(found, contiguous_format), ())
    place = wrap_dim(dim, self.ndim)
    # An index or a source without dimensions has one element, as in `scatter`.
    index = index.reshape((-1,)) if index.ndim == 0 else index
    taken = src.reshape((-1,)) if src.ndim == 0 else src
    part = self
    for other, size in enumerate(sizes_of(index)):
        if other != place:
            part = part.narrow(other, 0, size)
        taken = taken.narrow(other, 0, size)
    # Reading at the indices finds one that is out of range, on asynchronous devices as well.
    F.gather(self.detach(), place, index)
    last = self.ndim - 1
    reduced = _reduce(
        part.movedim(place, last),
        index.movedim(place, last),
        taken.movedim(place, last),
        reduce,
        include_self,
    )
    if place != last:
        reduced = C.call_clone(reduced.movedim(last, place), contiguous_format)
    return _grown(self, reduced)


def scatter_reduced(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> Tensor:
    """`scatter` with a `reduce`: an older spelling of sums and products."""
    if reduce == "add":
        return self.scatter_add(dim, index, src)
    if reduce == "multiply":
        return scatter_reduce(self, dim, index, src, "prod", True)
    raise RuntimeError("reduce argument must be either add or multiply.")


def scatter_value_reduced(self: Tensor, dim: int, index: Tensor, value: Any, reduce: str) -> Tensor:
    src = F.full((), value, dtype=self.dtype, device=self.device).expand(sizes_of(index))
    return scatter_reduced(self, dim, index, src, reduce)


def scatter_reduced_(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> Tensor:
    check_operands(self, (index, src), "scatter_")
    former: Any = overwritten(self)
    return self.copy_(scatter_reduced(former, dim, index, src, reduce))


def scatter_value_reduced_(
    self: Tensor, dim: int, index: Tensor, value: Any, reduce: str
) -> Tensor:
    check_operands(self, (index,), "scatter_")
    former: Any = overwritten(self)
    return self.copy_(scatter_value_reduced(former, dim, index, value, reduce))


def _grown(self: Tensor, corner: Tensor) -> Tensor:
    """A copy of a tensor with another corner at its start, made one dimension at a time."""
    for dim, size in enumerate(sizes_of(self)):
        taken = sizes_of(corner)[dim]
        if taken < size:
            band = self
            for later in range(dim + 1, self.ndim):
                band = band.narrow(later, 0, sizes_of(corner)[later])
            corner = F.slice_scatter(band, corner, dim, 0, taken)
    return corner


def _reduce(own: Tensor, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Along the last dimension: for each of its places, over itself and the sources sent there."""
    places = F.arange(sizes_of(own)[-1], device=index.device).unsqueeze(-1)
    sent = F.eq(index.unsqueeze(-2), places)
    neutral = _neutral(own, reduce)
    kept = own.unsqueeze(-1)
    if not include_self:
        kept = F.where(sent.any(-1, True), neutral, kept)
    values = F.cat([kept, F.where(sent, src.unsqueeze(-2), neutral)], -1)
    count = F.sum(sent, -1)
    count = count + 1 if include_self else F.clamp(count, 1)
    if reduce in ("amax", "amin"):
        best = F.amax(values, -1) if reduce == "amax" else F.amin(values, -1)
        if own.dtype.category < FLOATING:
            return best
        # An infinity equals the neutral element and shares its gradient with it. A factor restores
        # that part; it does not change an infinity.
        shares = sizes_of(values)[-1] / count.to(own.dtype)
        return best * F.where(best.detach() == neutral, shares, 1)
    if reduce == "prod":
        return F.prod(values, -1, dtype=own.dtype)
    total = F.sum(values, -1, dtype=own.dtype)
    if reduce == "sum":
        return total
    rounding = None if own.dtype.category >= FLOATING else "floor"
    return F.div(total, count, rounding_mode=rounding).to(own.dtype)


def _neutral(own: Tensor, reduce: str) -> Tensor:
    """The neutral element of a reduction, in the dtype of the tensor."""
    dtype = own.dtype
    value: Any = 1 if reduce == "prod" else 0
    if reduce in ("amax", "amin"):
        if dtype.category >= FLOATING:
            value = -math.inf if reduce == "amax" else math.inf
        elif dtype is bool_:
            value = reduce == "amin"
        else:
            limits = iinfo(dtype)
            value = limits.min if reduce == "amax" else limits.max
    return F.full((), value, dtype=dtype, device=own.device)
