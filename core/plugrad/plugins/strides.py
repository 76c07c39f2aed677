"""Strided memory in numbers: what kernels of views have to find out about it. And, for backends
whose arrays can be spread over several devices, `set_placement`: what is written stays in place."""

from plugrad.tensor.aliasing.placement import set_placement
from plugrad.tensor.aliasing.strides import (
    check_reach,
    contiguous_strides,
    copy_order,
    diagonal_run,
    diagonal_sizes,
    may_overlap,
    reach,
    strided_positions,
    summed_positions,
    viewed_strides,
)

__all__ = [
    "check_reach",
    "contiguous_strides",
    "copy_order",
    "diagonal_run",
    "diagonal_sizes",
    "may_overlap",
    "strided_positions",
    "reach",
    "set_placement",
    "summed_positions",
    "viewed_strides",
]
