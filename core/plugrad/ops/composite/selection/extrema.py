"""Largest and smallest elements, where they are, and those in the middle."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dtype import FLOATING, int64
from plugrad.ops.prepare import reductions as prepare
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.schema_facts import named_results

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def operator_called(name: str) -> Operator:
    """One of plugrad's own operators."""
    op = find_operator(f"plugrad::{name}")
    assert op is not None
    return op


def _reversed(x: Any) -> Any:
    """A map of numbers that reverses their order and loses none of them."""
    return F.neg(x) if x.dtype.category >= FLOATING else F.bitwise_not(x)


def amin(self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    prepare.amin(self, dim, keepdim)
    return _reversed(F.amax(_reversed(self), dim, keepdim))


def aminmax(self: Tensor, dim: int | None, keepdim: bool) -> Any:
    checked: Any = prepare.aminmax(self, dim, keepdim)
    dims = checked[1]
    least, most = F.amin(self, dims, keepdim), F.amax(self, dims, keepdim)
    return named_results(operator_called("aminmax"), least, most)


def max_all(self: Tensor) -> Tensor:
    prepare.max_all(self)
    return F.amax(self)


def min_all(self: Tensor) -> Tensor:
    prepare.min_all(self)
    return F.amin(self)


def _first(x: Any, best: Any, dim: int, keepdim: bool) -> Any:
    """Index of the first element that is the best, or nan."""
    last = sizes_of(x)[dim] - 1
    shape = [1] * x.ndim
    shape[dim] = last + 1
    from_end = last - F.arange(last + 1, dtype=int64, device=x.device).view(tuple(shape))
    found = F.logical_or(F.eq(x, best), F.isnan(x))
    return last - F.amax(F.where(found, from_end, -1), (dim,), keepdim)


def _position(x: Any, dim: int | None, keepdim: bool, largest: bool) -> Any:
    if dim is None or x.ndim == 0:
        flat = x.reshape((-1,))
        place = _position(flat, 0, False, largest)
        return place.reshape((1,) * x.ndim) if keepdim else place
    best = F.amax(x, (dim,), True) if largest else F.amin(x, (dim,), True)
    return _first(x, best, dim, keepdim)


def argmax(self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    checked: Any = prepare.argmax(self, dim, keepdim)
    return _position(self, checked[1], keepdim, True)


def argmin(self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    checked: Any = prepare.argmin(self, dim, keepdim)
    return _position(self, checked[1], keepdim, False)


def max_dim(self: Tensor, dim: int, keepdim: bool) -> Any:
    checked: Any = prepare.max_dim(self, dim, keepdim)
    return _with_indices(self, checked[1], keepdim, True)


def min_dim(self: Tensor, dim: int, keepdim: bool) -> Any:
    checked: Any = prepare.min_dim(self, dim, keepdim)
    return _with_indices(self, checked[1], keepdim, False)


def _with_indices(self: Tensor, dim: int, keepdim: bool, largest: bool) -> Any:
    reduce = F.amax if largest else F.amin
    values = reduce(self, (dim,), keepdim)
    indices = _position(self, dim, keepdim, largest)
    return named_results(operator_called("max.dim" if largest else "min.dim"), values, indices)


def median_all(self: Tensor) -> Tensor:
    prepare.median_all(self)
    if self.numel() == 0:
        nan = float("nan") if self.dtype.category >= FLOATING else 0
        return F.full((), nan, dtype=self.dtype, device=self.device)
    return _median(self.reshape((-1,)), 0, False)[0]


def median_dim(self: Tensor, dim: int, keepdim: bool) -> Any:
    checked: Any = prepare.median_dim(self, dim, keepdim)
    values, indices = _median(self, checked[1], keepdim)
    return named_results(operator_called("median.dim"), values, indices)


def _median(x: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if x.ndim == 0:
        return x.clone(), F.zeros((), dtype=int64, device=x.device)
    values, order = F.sort(x, stable=True, dim=dim, descending=False)
    size = sizes_of(x)[dim]
    # Sorted, nan is behind all numbers: where there is one, the first of them is the middle.
    missing = F.sum(F.isnan(x), (dim,), True)
    place = F.where(F.eq(missing, 0), (size - 1) // 2, size - missing)
    found = values.gather(dim, place), order.gather(dim, place)
    if keepdim:
        return found
    return found[0].squeeze(dim), found[1].squeeze(dim)
