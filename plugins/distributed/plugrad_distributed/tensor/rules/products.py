"""Matrix products, and layers that compute them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule

__all__ = ["RULES"]

R, P = Replicate(), Partial("sum")


def _mm(self: DTensorSpec, mat2: DTensorSpec, *rest: Any) -> list[Choice]:
    none = [None] * len(rest)
    return [
        ([Shard(0)], [Shard(0), R, *none]),
        ([Shard(1)], [R, Shard(1), *none]),
        ([P], [Shard(1), Shard(0), *none]),
        ([P], [P, R, *none]),
        ([P], [R, P, *none]),
    ]


def _bmm(self: DTensorSpec, mat2: DTensorSpec) -> list[Choice]:
    return [
        ([Shard(0)], [Shard(0), Shard(0)]),
        ([Shard(1)], [Shard(1), R]),
        ([Shard(2)], [R, Shard(2)]),
        ([P], [Shard(2), Shard(1)]),
        ([P], [P, R]),
        ([P], [R, P]),
    ]


def _added(self: DTensorSpec, dim: int, ndim: int = 2) -> Placement:
    """The placement of the added tensor if the product, with `ndim` dimensions, is sharded along
    `dim`; the tensor may be broadcast."""
    own = dim - (ndim - self.ndim)
    return R if own < 0 or self.shape[own] == 1 else Shard(own)


def _addmm(self: DTensorSpec, mat1: DTensorSpec, mat2: DTensorSpec, *rest: Any) -> list[Choice]:
    none = [None] * len(rest)
    return [
        ([Shard(0)], [_added(self, 0), Shard(0), R, *none]),
        ([Shard(1)], [_added(self, 1), R, Shard(1), *none]),
        ([P], [P, Shard(1), Shard(0), *none]),
        ([P], [P, P, R, *none]),
        ([P], [P, R, P, *none]),
    ]


def _linear(input: DTensorSpec, weight: DTensorSpec, bias: Any = None) -> list[Choice]:
    ndim = input.ndim + weight.ndim - 2
    last = input.ndim - 1

    def inputs(one: Placement, other: Placement, added: Any) -> Sequence[Any]:
        return one, other, None if bias is None else added(bias)

    def cut(dim: int) -> Any:
        return lambda spec: _added(spec, dim, ndim)

    found: list[Choice] = [([Shard(dim)], inputs(Shard(dim), R, cut(dim))) for dim in range(last)]
    if weight.ndim == 2:
        found.append(([Shard(last)], inputs(R, Shard(0), cut(last))))
        found.append(([P], inputs(Shard(last), Shard(1), lambda spec: P)))
        found.append(([P], inputs(P, R, lambda spec: P)))
    return found


def _linear_backward(
    self: DTensorSpec, grad_output: DTensorSpec, weight: DTensorSpec, output_mask: Any
) -> list[Choice]:
    last = self.ndim - 1
    found: list[Choice] = [
        ([Shard(dim), P, P], [Shard(dim), Shard(dim), R, None]) for dim in range(last)
    ]
    if weight.ndim == 2:
        found.append(([P, Shard(0), Shard(0)], [R, Shard(last), Shard(0), None]))
        found.append(([Shard(last), Shard(1), R], [Shard(last), R, Shard(1), None]))
        found.append(([P, P, P], [R, P, R, None]))
    return found


RULES: dict[str, Rule] = {
    "mm": Rule(_mm),
    "bmm": Rule(_bmm),
    "addmm": Rule(_addmm),
    "linear": Rule(_linear),
    "linear_backward": Rule(_linear_backward),
}
