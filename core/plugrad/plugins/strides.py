"""Strided memory in numbers: what kernels of views have to find out about it."""

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
    "summed_positions",
    "viewed_strides",
]
