"""Gradients of convolutions as plain functions, with the signatures of torch.nn.grad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.convolution import IntOrPair, repeated

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradient(
    wanted: int, dims: int, grad_output: Tensor, input: Tensor, weight: Tensor, *options: Any
) -> Tensor:
    """The gradient toward `input`, 0, or `weight`, 1; only the shape of that tensor matters."""
    *settings, groups = options
    stride, padding, dilation = (repeated(value, dims) for value in settings)
    mask = [wanted == 0, wanted == 1, False]
    found: Any = plugrad.convolution_backward(
        grad_output,
        input,
        weight,
        None,
        stride,
        padding,
        dilation,
        False,
        (0,) * dims,
        groups,
        mask,
    )
    return found[wanted]  # type: ignore[no-any-return]  # one of several results


def _of_size(size: Sequence[int], like: Tensor) -> Tensor:
    return like.new_zeros(1).expand(tuple(size))


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` toward its input, of shape `input_size`, (N, C, L).

    >>> import plugrad
    >>> from plugrad.nn.grad import conv1d_input
    >>> conv1d_input((1, 1, 3), plugrad.ones(1, 1, 2), plugrad.ones(1, 1, 2)).tolist()
    [[[1.0, 2.0, 1.0]]]
    """
    input = _of_size(input_size, grad_output)
    return _gradient(0, 1, grad_output, input, weight, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` toward its filters, of shape `weight_size`, (O, C / groups, k)."""
    weight = _of_size(weight_size, grad_output)
    return _gradient(1, 1, grad_output, input, weight, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` toward its input, of shape `input_size`, (N, C, H, W)."""
    input = _of_size(input_size, grad_output)
    return _gradient(0, 2, grad_output, input, weight, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` toward its filters, of shape `weight_size`."""
    weight = _of_size(weight_size, grad_output)
    return _gradient(1, 2, grad_output, input, weight, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` toward its input, of shape `input_size`, (N, C, D, H, W)."""
    input = _of_size(input_size, grad_output)
    return _gradient(0, 3, grad_output, input, weight, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` toward its filters, of shape `weight_size`."""
    weight = _of_size(weight_size, grad_output)
    return _gradient(1, 3, grad_output, input, weight, stride, padding, dilation, groups)
