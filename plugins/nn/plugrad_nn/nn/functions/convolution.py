"""Convolutions as plain functions, which `functional` exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable

IntOrPair: TypeAlias = int | Sequence[int]


def repeated(value: IntOrPair, count: int) -> tuple[int, ...]:
    """One integer for each of `count` dimensions; a single integer applies to all."""
    values = tuple(value) if isinstance(value, Iterable) else (value,)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise ValueError(f"expected one integer or {count}, got {values}")
    return values


@overridable
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair | str = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlates signals with filters.

    Args:
        input: (N, C, L) or (C, L).
        weight: (O, C / groups, k).
        bias: (O).
        stride: the distance between positions of a filter.
        padding: zeros on both sides of each dimension; "valid" for none, "same" to keep the length.
        dilation: the distance between the elements of a filter.
        groups: the number of blocks of channels that are convolved separately.

    Raises:
        RuntimeError: shapes do not fit, or "same" is combined with a stride.

    >>> import plugrad
    >>> signal, weight = plugrad.tensor([[[1.0, 2.0, 4.0]]]), plugrad.tensor([[[-1.0, 1.0]]])
    >>> plugrad.nn.functional.conv1d(signal, weight)
    tensor([[[1., 2.]]])
    """
    return plugrad.conv1d(input, weight, bias, stride, padding, dilation, groups)


@overridable
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair | str = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlates images with filters.

    Args:
        input: (N, C, H, W) or (C, H, W).
        weight: (O, C / groups, kH, kW).
        bias: (O).
        stride: the distance between positions of a filter.
        padding: zeros on both sides of each dimension; "valid" for none, "same" to keep H and W.
        dilation: the distance between the elements of a filter.
        groups: the number of blocks of channels that are convolved separately.

    Raises:
        RuntimeError: shapes do not fit, or "same" is combined with a stride.

    >>> import plugrad
    >>> images, weight = plugrad.ones(1, 3, 8, 8), plugrad.ones(6, 3, 3, 3)
    >>> plugrad.nn.functional.conv2d(images, weight, stride=2, padding=1).shape
    plugrad.Size([1, 6, 4, 4])
    """
    return plugrad.conv2d(input, weight, bias, stride, padding, dilation, groups)


@overridable
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair | str = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlates volumes with filters.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        weight: (O, C / groups, kD, kH, kW).
        bias: (O).
        stride: the distance between positions of a filter.
        padding: zeros on both sides of each dimension; "valid" for none, "same" to keep D, H and W.
        dilation: the distance between the elements of a filter.
        groups: the number of blocks of channels that are convolved separately.

    Raises:
        RuntimeError: shapes do not fit, or "same" is combined with a stride.

    >>> import plugrad
    >>> volumes, weight = plugrad.ones(1, 3, 4, 8, 8), plugrad.ones(6, 3, 3, 3, 3)
    >>> plugrad.nn.functional.conv3d(volumes, weight, padding="same").shape
    plugrad.Size([1, 6, 4, 8, 8])
    """
    return plugrad.conv3d(input, weight, bias, stride, padding, dilation, groups)


@overridable
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    output_padding: IntOrPair = 0,
    groups: int = 1,
    dilation: IntOrPair = 1,
) -> Tensor:
    """The transpose of `conv1d`, that is its gradient toward signals.

    Args:
        input: (N, C, L) or (C, L).
        weight: (C, O / groups, k).
        bias: (O).
        stride: the distance between positions of a filter in the result.
        padding: the number of elements cut off on both sides of each dimension.
        output_padding: the number of elements added at the end of each dimension.
        groups: the number of blocks of channels that are convolved separately.
        dilation: the distance between the elements of a filter.

    Raises:
        RuntimeError: shapes do not fit, or `output_padding` is too large.

    >>> import plugrad
    >>> signal, weight = plugrad.tensor([[[1.0, 2.0]]]), plugrad.tensor([[[1.0, 10.0]]])
    >>> plugrad.nn.functional.conv_transpose1d(signal, weight)
    tensor([[[ 1., 12., 20.]]])
    """
    return plugrad.conv_transpose1d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@overridable
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    output_padding: IntOrPair = 0,
    groups: int = 1,
    dilation: IntOrPair = 1,
) -> Tensor:
    """The transpose of `conv2d`, that is its gradient toward images.

    Args:
        input: (N, C, H, W) or (C, H, W).
        weight: (C, O / groups, kH, kW).
        bias: (O).
        stride: the distance between positions of a filter in the result.
        padding: the number of elements cut off on both sides of each dimension.
        output_padding: the number of elements added at the end of each dimension.
        groups: the number of blocks of channels that are convolved separately.
        dilation: the distance between the elements of a filter.

    Raises:
        RuntimeError: shapes do not fit, or `output_padding` is too large.

    >>> import plugrad
    >>> images, weight = plugrad.ones(1, 6, 4, 4), plugrad.ones(6, 3, 2, 2)
    >>> plugrad.nn.functional.conv_transpose2d(images, weight, stride=2).shape
    plugrad.Size([1, 3, 8, 8])
    """
    return plugrad.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@overridable
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    output_padding: IntOrPair = 0,
    groups: int = 1,
    dilation: IntOrPair = 1,
) -> Tensor:
    """The transpose of `conv3d`, that is its gradient toward volumes.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        weight: (C, O / groups, kD, kH, kW).
        bias: (O).
        stride: the distance between positions of a filter in the result.
        padding: the number of elements cut off on both sides of each dimension.
        output_padding: the number of elements added at the end of each dimension.
        groups: the number of blocks of channels that are convolved separately.
        dilation: the distance between the elements of a filter.

    Raises:
        RuntimeError: shapes do not fit, or `output_padding` is too large.

    >>> import plugrad
    >>> volumes, weight = plugrad.ones(1, 6, 2, 4, 4), plugrad.ones(6, 3, 2, 2, 2)
    >>> plugrad.nn.functional.conv_transpose3d(volumes, weight, stride=2).shape
    plugrad.Size([1, 3, 4, 8, 8])
    """
    return plugrad.conv_transpose3d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@overridable
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of signals with time as the first dimension.

    Args:
        input: (T, N, C).
        weight: (k, C, O).
        bias: (O).
        pad: the number of zeros before and after each signal.

    Raises:
        RuntimeError: shapes do not fit.

    >>> import plugrad
    >>> signal = plugrad.tensor([1.0, 2.0, 4.0]).reshape(3, 1, 1)
    >>> weight, bias = plugrad.tensor([-1.0, 1.0]).reshape(2, 1, 1), plugrad.zeros(1)
    >>> plugrad.nn.functional.conv_tbc(signal, weight, bias).flatten()
    tensor([1., 2.])
    """
    return plugrad.conv_tbc(input, weight, bias, pad)
