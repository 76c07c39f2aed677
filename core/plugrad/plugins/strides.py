"""Computes with strides, for kernels of views. For backends with arrays that can span several
devices, `set_placement` keeps written arrays in place."""

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
