"""Kernels of convolution: XLA's own, over any number of spatial dimensions.

The gradients are those of `jax.linear_transpose`, which are convolutions again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from plugrad.plugins.windows import transposed_sizes
from plugrad_jax.kernels.programs import Array, compiled

Ints = tuple[int, ...]


def _correlate(
    x: Array, weight: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    return lax.conv_general_dilated(
        x,
        weight,
        stride,
        [(p, p) for p in padding],
        rhs_dilation=dilation,
        feature_group_count=groups,
    )


def _transposed(
    x: Array,
    weight: Array,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    output_padding: Ints,
    groups: int,
) -> Array:
    """The input spread out by the stride meets the turned filters (C, O / groups, *kernel)."""
    channels, filters, *kernel = weight.shape
    turned = lax.rev(weight, tuple(range(2, weight.ndim)))
    by_group = turned.reshape(groups, channels // groups, filters, *kernel).swapaxes(1, 2)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return lax.conv_general_dilated(
        x,
        by_group.reshape(groups * filters, channels // groups, *kernel),
        (1,) * len(kernel),
        [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True)],
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )


@compiled(3, 4, 5, 6, 7, 8)
def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Array:
    if transposed:
        out = _transposed(x, weight, stride, padding, dilation, output_padding, groups)
    else:
        out = _correlate(x, weight, stride, padding, dilation, groups)
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(stride))


@compiled(3, 4, 5, 6, 7, 8)
def convolution_backward(
    grad: Array,
    x: Array,
    weight: Array,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    groups: int,
    mask: tuple[bool, bool, bool],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients toward input, weight and bias; None where not wanted."""
    needed = transposed_sizes(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    # By how much the output of a transposed convolution is longer.
    output_padding = tuple(n - least for n, least in zip(grad.shape[2:], needed, strict=True))

    def forward(x: Array, weight: Array) -> Array:
        if transposed:
            return _transposed(x, weight, stride, padding, dilation, output_padding, groups)
        return _correlate(x, weight, stride, padding, dilation, groups)

    if jnp.iscomplexobj(x):
        x, weight = x.conj(), weight.conj()
    to_input = to_weight = to_bias = None
    if mask[0]:
        (to_input,) = jax.linear_transpose(lambda given: forward(given, weight), x)(grad)
    if mask[1]:
        (to_weight,) = jax.linear_transpose(lambda given: forward(x, given), weight)(grad)
    if mask[2]:
        to_bias = jnp.sum(grad, (0, *range(2, grad.ndim)))
    return to_input, to_weight, to_bias


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "convolution": convolution,
    "convolution_backward": convolution_backward,
}
