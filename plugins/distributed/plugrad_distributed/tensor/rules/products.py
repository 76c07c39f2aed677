"""Products of matrices, and layers that are such."""

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


def _added(self: DTensorSpec, dim: int) -> Placement:
    """How a matrix that is added lies where the product is cut along `dim`; it may be broadcast."""
    own = dim - (2 - self.ndim)
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
    last = input.ndim - 1

    def inputs(*given: Placement) -> Sequence[Any]:
        return given if bias is not None else (*given[:2], None)

    batch = [([Shard(dim)], inputs(Shard(dim), R, R)) for dim in range(last)]
    return [
        *batch,
        ([Shard(last)], inputs(R, Shard(0), Shard(0))),
        ([P], inputs(Shard(last), Shard(1), P)),
        ([P], inputs(P, R, P)),
    ]


def _linear_backward(
    self: DTensorSpec, grad_output: DTensorSpec, weight: DTensorSpec, output_mask: Any
) -> list[Choice]:
    last = self.ndim - 1
    batch = [([Shard(dim), P, P], [Shard(dim), Shard(dim), R, None]) for dim in range(last)]
    return [
        *batch,
        ([P, Shard(0), Shard(0)], [R, Shard(last), Shard(0), None]),
        ([Shard(last), Shard(1), R], [Shard(last), R, Shard(1), None]),
        ([P, P, P], [R, P, R, None]),
    ]


RULES: dict[str, Rule] = {
    "mm": Rule(_mm),
    "bmm": Rule(_bmm),
    "addmm": Rule(_addmm),
    "linear": Rule(_linear),
    "linear_backward": Rule(_linear_backward),
}
