"""Pooling as plain functions, which `functional` exports."""

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
    """The largest value of each window.

    Args:
        input: (N, C, L) or (C, L).
        kernel_size: of the windows.
        stride: between windows; `kernel_size` by default.
        padding: how far windows may reach over the edges, where nothing counts; at most half of
            `kernel_size`.
        dilation: between the elements of a window.
        ceil_mode: round the number of windows up, not down.
        return_indices: whether to return as well where in its signal each value was found.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is too large, or no window
            fits.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 7.0, 5.0]])
    >>> plugrad.nn.functional.max_pool1d(signal, 2)
    tensor([[3., 7.]])
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
    """`max_pool1d` with indices, whatever `return_indices` says.

    Args:
        input, kernel_size, stride, padding, dilation, ceil_mode: see `max_pool1d`.
        return_indices: has no effect.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 7.0, 5.0]])
    >>> plugrad.nn.functional.max_pool1d_with_indices(signal, 2)
    (tensor([[3., 7.]]), tensor([[1, 2]]))
    """
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
    """The largest value of each window.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        padding: how far windows may reach over the edges, where nothing counts; at most half of
            `kernel_size`.
        dilation: between the elements of a window.
        ceil_mode: round the number of windows up, not down.
        return_indices: whether to return as well where in its image each value was found, counted
            row by row.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is too large, or no window
            fits.

    >>> import plugrad
    >>> image = plugrad.arange(16.0).reshape(1, 4, 4)
    >>> plugrad.nn.functional.max_pool2d(image, 2).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
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
    """`max_pool2d` with indices, whatever `return_indices` says.

    Args:
        input, kernel_size, stride, padding, dilation, ceil_mode: see `max_pool2d`.
        return_indices: has no effect.

    >>> import plugrad
    >>> image = plugrad.arange(4.0).reshape(1, 2, 2)
    >>> plugrad.nn.functional.max_pool2d_with_indices(image, 2)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
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
    """The largest value of each window.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        padding: how far windows may reach over the edges, where nothing counts; at most half of
            `kernel_size`.
        dilation: between the elements of a window.
        ceil_mode: round the number of windows up, not down.
        return_indices: whether to return as well where in its volume each value was found, counted
            row by row.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is too large, or no window
            fits.

    >>> import plugrad
    >>> volume = plugrad.ones(1, 3, 4, 8, 8)
    >>> plugrad.nn.functional.max_pool3d(volume, 3, stride=2, padding=1).shape
    plugrad.Size([1, 3, 2, 4, 4])
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
    """`max_pool3d` with indices, whatever `return_indices` says.

    Args:
        input, kernel_size, stride, padding, dilation, ceil_mode: see `max_pool3d`.
        return_indices: has no effect.

    >>> import plugrad
    >>> volume = plugrad.arange(8.0).reshape(1, 2, 2, 2)
    >>> plugrad.nn.functional.max_pool3d_with_indices(volume, 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
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
    """The mean of each window.

    Args:
        input: (N, C, L) or (C, L).
        kernel_size: of the windows.
        stride: between windows; `kernel_size` by default.
        padding: zeros on both sides of each dimension; at most half of `kernel_size`.
        ceil_mode: round the number of windows up, not down.
        count_include_pad: count the padding as elements of a window.
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is too large.

    >>> import plugrad
    >>> signal = plugrad.tensor([[1.0, 3.0, 7.0, 5.0]])
    >>> plugrad.nn.functional.avg_pool1d(signal, 2)
    tensor([[2., 6.]])
    """
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
    """The mean of each window.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        padding: zeros on both sides of each dimension; at most half of `kernel_size`.
        ceil_mode: round the number of windows up, not down.
        count_include_pad: count the padding as elements of a window.
        divisor_override: the divisor of sums in place of the number of elements.
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is too large, or
            `divisor_override` is 0.

    >>> import plugrad
    >>> image = plugrad.ones(1, 2, 2)
    >>> plugrad.nn.functional.avg_pool2d(image, 2, padding=1, divisor_override=1).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
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
    """The mean of each window.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        padding: zeros on both sides of each dimension; at most half of `kernel_size`.
        ceil_mode: round the number of windows up, not down.
        count_include_pad: count the padding as elements of a window.
        divisor_override: the divisor of sums in place of the number of elements.
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: `input` has another number of dimensions, `padding` is too large, or
            `divisor_override` is 0.

    >>> import plugrad
    >>> volume = plugrad.ones(1, 3, 4, 8, 8)
    >>> plugrad.nn.functional.avg_pool3d(volume, 2).shape
    plugrad.Size([1, 3, 2, 4, 4])
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
    # Where the sum is 0, the gradient is 0: the root's would be infinite.
    return (mean.sign() * plugrad.relu(mean.abs()) * count).pow(1.0 / norm_type)


@overridable
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`sum(x ** p) ** (1 / p)` of each window, p the `norm_type`.

    Args:
        input: (N, C, L) or (C, L), floating dtype.
        norm_type: p; infinity gives the greatest magnitude, -infinity the least.
        kernel_size: of the windows.
        stride: between windows; `kernel_size` by default.
        ceil_mode: round the number of windows up, not down.

    Raises:
        RuntimeError: `input` has another number of dimensions, or no window fits.

    >>> import plugrad
    >>> signal = plugrad.tensor([[3.0, 4.0, 0.0, 1.0]])
    >>> plugrad.nn.functional.lp_pool1d(signal, 2, kernel_size=2)
    tensor([[5., 1.]])
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
    """`sum(x ** p) ** (1 / p)` of each window, p the `norm_type`.

    Args:
        input: (N, C, H, W) or (C, H, W), floating dtype.
        norm_type: p; infinity gives the greatest magnitude, -infinity the least.
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        ceil_mode: round the number of windows up, not down.

    Raises:
        RuntimeError: `input` has another number of dimensions, or no window fits.

    >>> import plugrad
    >>> image = plugrad.tensor([[[3.0, 4.0], [0.0, 12.0]]])
    >>> plugrad.nn.functional.lp_pool2d(image, 2, kernel_size=2)
    tensor([[[13.]]])
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

    Args:
        input: (N, C, D, H, W) or (C, D, H, W), floating dtype.
        norm_type: p; infinity gives the greatest magnitude, -infinity the least.
        kernel_size: of the windows; one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        ceil_mode: round the number of windows up, not down.

    Raises:
        RuntimeError: `input` has another number of dimensions, or no window fits.

    >>> import plugrad
    >>> volume = plugrad.ones(1, 2, 2, 2)
    >>> plugrad.nn.functional.lp_pool3d(volume, 3, kernel_size=2)
    tensor([[[[2.]]]])
    """
    how = (() if stride is None else stride, 0, ceil_mode)
    return _lp_pool(3, input, norm_type, kernel_size, how)
