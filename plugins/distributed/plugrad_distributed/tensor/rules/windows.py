"""Convolution and pooling: sharded along the batch; pooling also along the channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad_distributed.tensor.placement import Partial, Replicate, Shard
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, aligned, alike

__all__ = ["RULES"]

R, P = Replicate(), Partial("sum")


def _convolution(input: DTensorSpec, weight: DTensorSpec, *rest: Any) -> list[Choice]:
    if not input.fills(0):
        return []
    return [([Shard(0)], [Shard(0), R, *aligned(rest, lambda _: R)])]


def _convolution_backward(
    grad_output: DTensorSpec, input: DTensorSpec, weight: DTensorSpec, *rest: Any
) -> list[Choice]:
    if not input.fills(0):
        return []
    return [([Shard(0), P, P], [Shard(0), Shard(0), R, *[None] * len(rest)])]


def _pooling(results: int, spatial: int) -> Callable[..., list[Choice]]:
    """The rule of an operator on windows of the last `spatial` dimensions."""

    def choices(*args: Any) -> list[Choice]:
        first = args[0]
        return [
            ([Shard(dim)] * results, alike(args, Shard(dim)))
            for dim in range(first.ndim - spatial)
            if first.fills(dim)
        ]

    return choices


RULES: dict[str, Rule] = {
    "convolution": Rule(_convolution),
    "convolution_backward": Rule(_convolution_backward),
    **{
        name: Rule(_pooling(results, spatial))
        for name, results, spatial in (
            ("_max_pool1d", 1, 1),
            ("avg_pool2d", 1, 2),
            ("avg_pool2d_backward", 1, 2),
            ("max_pool2d_with_indices", 2, 2),
            ("max_pool2d_with_indices_backward", 1, 2),
            ("avg_pool3d", 1, 3),
            ("avg_pool3d_backward", 1, 3),
            ("max_pool3d_with_indices", 2, 3),
            ("max_pool3d_with_indices_backward", 1, 3),
        )
    },
}
