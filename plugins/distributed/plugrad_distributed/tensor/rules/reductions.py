"""Reductions: each rank reduces its part; the remaining reduction over ranks is `Partial`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrad_distributed.tensor.placement import Partial, Replicate, Shard
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, aligned

__all__ = ["RULES", "after_reduction", "reduced_dims"]


def reduced_dims(spec: DTensorSpec, dim: Any) -> tuple[int, ...]:
    """The dimensions that an argument `dim` means; all if it is None or empty."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return tuple(range(spec.ndim))
    given = dim if isinstance(dim, (list, tuple)) else (dim,)
    return tuple(one % max(spec.ndim, 1) for one in given)


def after_reduction(dim: int, dims: Sequence[int], keepdim: bool) -> int:
    """The position of a kept dimension in the result."""
    return dim if keepdim else dim - sum(1 for one in dims if one < dim)


def _rest(*others: Any) -> list[Any]:
    return aligned(others, lambda spec: Replicate())


def _reduction(
    partial: Partial, *, even: bool, pending: Sequence[Partial] = ()
) -> Callable[..., list[Choice]]:
    """The rule of a reduction.

    Args:
        partial: the placement after ranks have reduced their parts.
        even: whether all parts must have the same size, or at least one element.
        pending: the placement that passes through unchanged.
    """

    def choices(self: DTensorSpec, dim: Any = None, keepdim: bool = False, *rest: Any) -> Any:
        dims = reduced_dims(self, dim)
        inputs = _rest(dim, keepdim, *rest)
        found: list[Choice] = []
        for one in range(self.ndim):
            if one not in dims:
                found.append(([Shard(after_reduction(one, dims, keepdim))], [Shard(one), *inputs]))
            elif not even or self.divides(one):
                found.append(([partial], [Shard(one), *inputs]))
        found.extend(([one], [one, *inputs]) for one in pending)
        return found

    return choices


def _along(results: int, keeps: bool) -> Callable[..., list[Choice]]:
    """The rule of operators that need a whole dimension and treat the others as a batch.

    Args:
        results: the number of results, which have the same shape.
        keeps: whether results keep the dimension; otherwise the argument `keepdim` decides.
    """

    def choices(self: DTensorSpec, *rest: Any) -> list[Choice]:
        dim = _dim_of(rest)
        if dim is None or self.ndim == 0:
            return []
        keepdim = keeps or any(value is True for value in rest[1:])
        dims = reduced_dims(self, dim)
        inputs = _rest(*rest)
        return [
            ([Shard(after_reduction(one, dims, keepdim))] * results, [Shard(one), *inputs])
            for one in range(self.ndim)
            if one not in dims
        ]

    return choices


def _dim_of(rest: Sequence[Any]) -> Any:
    for value in rest:
        if isinstance(value, (int, list, tuple)) and not isinstance(value, bool):
            return value
    return None


def _topk(self: DTensorSpec, k: int, dim: int = -1, *rest: Any) -> list[Choice]:
    return _along(2, True)(self, dim, None, None, None)


def _sort(self: DTensorSpec, *rest: Any) -> list[Choice]:
    return _along(2, True)(self, *rest)


SUMS = (Partial("sum"), Partial("avg"))

RULES: dict[str, Rule] = {
    "sum": Rule(_reduction(Partial("sum"), even=False, pending=SUMS)),
    "mean": Rule(_reduction(Partial("avg"), even=True, pending=SUMS)),
    "amax": Rule(_reduction(Partial("max"), even=True)),
    "amin": Rule(_reduction(Partial("min"), even=True)),
    "any": Rule(_along(1, False)),
    "all": Rule(_along(1, False)),
    "argmax": Rule(_along(1, False)),
    "argmin": Rule(_along(1, False)),
    "max.dim": Rule(_along(2, False)),
    "min.dim": Rule(_along(2, False)),
    "median.dim": Rule(_along(2, False)),
    "cumsum": Rule(_along(1, True)),
    "cumprod": Rule(_along(1, True)),
    "cummax": Rule(_along(2, True)),
    "cummin": Rule(_along(2, True)),
    "sort": Rule(_sort),
    "topk": Rule(_topk),
    "flip": Rule(_along(1, True)),
}
