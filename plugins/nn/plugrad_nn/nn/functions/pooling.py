"""Pooling as plain functions; `functional` shows them beside the layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.convolution import IntOrPair, repeated
from plugrad_nn.nn.overridable import overridable


@overridable
def max_pool1d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window; input (N, C, L) or (C, L).

    With `return_indices` also where in its signal each value was found.
    """
    step = () if stride is None else stride
    pool = plugrad.max_pool1d_with_indices if return_indices else plugrad.max_pool1d
    return pool(input, kernel_size, step, padding, dilation, ceil_mode)


@overridable
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` with indices, whatever `return_indices` says."""
    step = () if stride is None else stride
    return plugrad.max_pool1d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


@overridable
def max_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window; input (N, C, H, W) or (C, H, W).

    With `return_indices` also where in its image each value was found, counted row by row.
    """
    step = () if stride is None else stride
    pool = plugrad.max_pool2d_with_indices if return_indices else plugrad.max_pool2d
    return pool(input, kernel_size, step, padding, dilation, ceil_mode)


@overridable
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` with indices, whatever `return_indices` says."""
    step = () if stride is None else stride
    return plugrad.max_pool2d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


@overridable
def max_pool3d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window; input (N, C, D, H, W) or (C, D, H, W).

    With `return_indices` also where in its volume each value was found, counted row by row.
    """
    step = () if stride is None else stride
    pool = plugrad.max_pool3d_with_indices if return_indices else plugrad.max_pool3d
    return pool(input, kernel_size, step, padding, dilation, ceil_mode)


@overridable
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` with indices, whatever `return_indices` says."""
    step = () if stride is None else stride
    return plugrad.max_pool3d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


@overridable
def avg_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window; input (N, C, L) or (C, L)."""
    step = () if stride is None else stride
    return plugrad.avg_pool1d(
        input, kernel_size, step, padding, ceil_mode, count_include_pad, out=out
    )


@overridable
def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window; input (N, C, H, W) or (C, H, W).

    `divisor_override` replaces the number of elements that sums are divided by.
    """
    step = () if stride is None else stride
    return plugrad.avg_pool2d(
        input, kernel_size, step, padding, ceil_mode, count_include_pad, divisor_override, out=out
    )


@overridable
def avg_pool3d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window; input (N, C, D, H, W) or (C, D, H, W).

    `divisor_override` replaces the number of elements that sums are divided by.
    """
    step = () if stride is None else stride
    return plugrad.avg_pool3d(
        input, kernel_size, step, padding, ceil_mode, count_include_pad, divisor_override, out=out
    )


def _lp_pool(spatial: int, input: Tensor, norm_type: float, kernel: IntOrPair, how: Any) -> Tensor:
    """`how` is the stride, the padding and `ceil_mode`."""
    if isinstance(norm_type, (int, float)) and math.isinf(norm_type):
        pool = (plugrad.max_pool1d, plugrad.max_pool2d, plugrad.max_pool3d)[spatial - 1]
        step, padding, ceil_mode = how
        if norm_type > 0:
            return pool(input.abs(), kernel, step, padding, 1, ceil_mode)
        return -pool(-input.abs(), kernel, step, padding, 1, ceil_mode)
    count = math.prod(repeated(kernel, spatial))
    mean_pool = (plugrad.avg_pool1d, plugrad.avg_pool2d, plugrad.avg_pool3d)[spatial - 1]
    mean = mean_pool(input.pow(norm_type), kernel, *how)
    # Where the sum is 0, so is the gradient: that of a root would be infinite.
    return (mean.sign() * plugrad.relu(mean.abs()) * count).pow(1.0 / norm_type)


@overridable
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`sum(x ** p) ** (1 / p)` of each window, p the `norm_type`; input (N, C, L) or (C, L).

    An infinite `norm_type` gives the greatest or, if negative, the least magnitude.
    """
    how = (() if stride is None else stride, 0, ceil_mode)
    return _lp_pool(1, input, norm_type, kernel_size, how)


@overridable
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`sum(x ** p) ** (1 / p)` of each window, p the `norm_type`; input (N, C, H, W) or (C, H, W).

    An infinite `norm_type` gives the greatest or, if negative, the least magnitude.
    """
    how = (() if stride is None else stride, 0, ceil_mode)
    return _lp_pool(2, input, norm_type, kernel_size, how)


@overridable
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`sum(x ** p) ** (1 / p)` of each window, p the `norm_type`.

    The input is (N, C, D, H, W) or (C, D, H, W). An infinite `norm_type` gives the greatest or, if
    negative, the least magnitude.
    """
    how = (() if stride is None else stride, 0, ceil_mode)
    return _lp_pool(3, input, norm_type, kernel_size, how)
