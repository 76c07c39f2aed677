"""Rules of sorting and of cumulative sums, which work along one dimension."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING
from plugrad.ops.batching.dims import all_at_front, logical_rank, logical_sizes, physical, to_front

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _along(
    self: Tensor, batch_dim: int, dim: int, function: Callable[[Tensor, int], Any]
) -> tuple[Any, Any]:
    """`function` of a tensor and a dimension that stays; a number is a vector of one."""
    rank = logical_rank(self, batch_dim)
    place = physical(dim, rank)
    front = to_front(self, batch_dim)
    if rank:
        found = function(front, place)
    else:
        found = function(F.unsqueeze(front, 1), 1)
        if isinstance(found, tuple):
            found = tuple([F.squeeze(item, 1) for item in found])
        else:
            found = F.squeeze(found, 1)
    return found, all_at_front(found)


def sort(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, descending: bool, stable: bool | None
) -> tuple[Any, Any]:
    return _along(
        self, dims[0], dim, lambda x, place: F.sort(x, place, descending, stable=bool(stable))
    )


def topk(
    info: VmapInfo, dims: Dims, self: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Any, Any]:
    return _along(self, dims[0], dim, lambda x, place: F.topk(x, k, place, largest, sorted))


def median(info: VmapInfo, dims: Dims, self: Tensor) -> tuple[Any, Any]:
    count = math.prod(logical_sizes(self, dims[0]))
    flat = F.reshape(to_front(self, dims[0]), (info.batch_size, count))
    if count == 0:
        value = float("nan") if self.dtype.category >= FLOATING else 0
        return F.full((info.batch_size,), value, dtype=self.dtype, device=self.device), 0
    return F.median(flat, 1)[0], 0


def median_dim(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, keepdim: bool
) -> tuple[Any, Any]:
    kept = keepdim or logical_rank(self, dims[0]) == 0
    return _along(self, dims[0], dim, lambda x, place: F.median(x, place, kept))


def _running(function: Callable[..., Any]) -> Rule:
    def rule(info: VmapInfo, dims: Dims, self: Tensor, dim: int, dtype: Any) -> tuple[Any, Any]:
        return _along(self, dims[0], dim, lambda x, place: function(x, place, dtype=dtype))

    return rule


def running_extremum(function: Callable[..., Any]) -> Rule:
    """The rule of an operator along a dimension without other arguments."""

    def rule(info: VmapInfo, dims: Dims, self: Tensor, dim: int) -> tuple[Any, Any]:
        return _along(self, dims[0], dim, function)

    return rule


RULES: Final[dict[str, Rule]] = {
    "cummax": running_extremum(F.cummax),
    "cummin": running_extremum(F.cummin),
    "cumprod": _running(F.cumprod),
    "cumsum": _running(F.cumsum),
    "median": median,
    "median.dim": median_dim,
    "sort": sort,
    "topk": topk,
}
