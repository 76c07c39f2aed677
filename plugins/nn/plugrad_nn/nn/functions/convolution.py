"""Convolutions as plain functions; `functional` shows them beside the layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable

IntOrPair: TypeAlias = int | Sequence[int]


def repeated(value: IntOrPair, count: int) -> tuple[int, ...]:
    """One integer for each of `count` dimensions; a single one stands for all."""
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
        padding: zeros on both sides of each dimension; "valid" for none, "same" to keep the length.
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
        padding: zeros on both sides of each dimension; "valid" for none, "same" to keep H and W.
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
        padding: zeros on both sides of each dimension; "valid" for none, "same" to keep D, H and W.
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
        padding: how much is cut off on both sides of each dimension.
        output_padding: how much is added at the end of each dimension.
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
        padding: how much is cut off on both sides of each dimension.
        output_padding: how much is added at the end of each dimension.
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
        padding: how much is cut off on both sides of each dimension.
        output_padding: how much is added at the end of each dimension.
    """
    return plugrad.conv_transpose3d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@overridable
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of signals whose time comes first.

    Args:
        input: (T, N, C).
        weight: (k, C, O).
        bias: (O).
        pad: zeros before and behind each signal.
    """
    return plugrad.conv_tbc(input, weight, bias, pad)
