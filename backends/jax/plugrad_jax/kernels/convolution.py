"""Kernels of convolution: XLA's own, over any number of spatial dimensions.

The gradients come from `jax.linear_transpose` and are convolutions again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from plugrad.plugins.windows import Windows, on_windows, transposed_sizes
from plugrad_jax.kernels.programs import Array, program


def _correlate(x: Array, weight: Array, windows: Windows, groups: int) -> Array:
    return lax.conv_general_dilated(
        x,
        weight,
        windows.stride,
        [(p, p) for p in windows.padding],
        rhs_dilation=windows.dilation,
        feature_group_count=groups,
    )


def _transposed(x: Array, weight: Array, windows: Windows, groups: int) -> Array:
    """The input spread out by the stride meets the turned filters (C, O / groups, *kernel)."""
    channels, filters, *kernel = weight.shape
    turned = lax.rev(weight, tuple(range(2, weight.ndim)))
    by_group = turned.reshape(groups, channels // groups, filters, *kernel).swapaxes(1, 2)
    dilation, padding = windows.dilation, windows.padding
    least = transposed_sizes(windows.out, windows.kernel, windows.stride, padding, dilation)
    edges: list[tuple[int, int]] = []
    for i, size in enumerate(windows.sizes):
        low = dilation[i] * (kernel[i] - 1) - padding[i]
        edges.append((low, low + size - least[i]))
    return lax.conv_general_dilated(
        x,
        by_group.reshape(groups * filters, channels // groups, *kernel),
        (1,) * len(kernel),
        edges,
        lhs_dilation=windows.stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )


def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    windows: Windows,
    transposed: bool,
    groups: int,
) -> Array:
    out = (_transposed if transposed else _correlate)(x, weight, windows, groups)
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(windows.stride))


def convolution_backward(
    grad: Array,
    x: Array,
    weight: Array,
    windows: Windows,
    transposed: bool,
    groups: int,
    mask: tuple[bool, bool, bool],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients toward input, weight and bias; None if not requested."""

    def forward(x: Array, weight: Array) -> Array:
        return (_transposed if transposed else _correlate)(x, weight, windows, groups)

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
    name: program(on_windows(name, function), 3, 4, 5, 6, 7, 8)
    for name, function in (
        ("convolution", convolution),
        ("convolution_backward", convolution_backward),
    )
}
