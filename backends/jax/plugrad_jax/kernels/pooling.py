"""Kernels of pooling: images are shifted and combined, one tap of the window at a time, which XLA
makes one loop over the output of; a window of many taps is gone through in a loop of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad.plugins.windows import Windows, on_windows
from plugrad_jax.kernels.programs import Array, program, widen

Shape = tuple[int, ...]

# Windows of more taps than this are not written out: the program would grow with them.
_TAPS: Final = 64


def _padded(x: Array, windows: Windows, fill: Any) -> Array:
    """The images with everything that windows reach."""
    edges = [(0, 0)] * (x.ndim - 2) + windows.edges()
    return lax.pad(x, jnp.asarray(fill, x.dtype), [(low, high, 0) for low, high in edges])


def _met(padded: Array, top: Any, left: Any, windows: Windows) -> Array:
    """The elements that the tap of a window which is `top` and `left` of its start meets."""
    start = (*(0,) * (padded.ndim - 2), top, left)
    part = lax.dynamic_slice(padded, start, (*padded.shape[:-2], *windows.extents()))
    return part[..., :: windows.stride[0], :: windows.stride[1]]


def _first_inside(windows: Windows, axis: int) -> Any:
    """Where the first element of each window lies that is no padding."""
    start, spread = windows.starts(axis), windows.dilation[axis]
    return np.where(start < 0, start - start // spread * spread, start)


def max_pool2d(x: Array, windows: Windows) -> tuple[Array, Array]:
    """Maxima, and their positions in the images as row * width + column: the first of equal ones,
    the last nan."""
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    least = jnp.array(-jnp.inf if floating else np.iinfo(x.dtype).min, x.dtype)
    kernel, spread = windows.kernel, windows.dilation
    padded = _padded(x, windows, least)
    width = x.shape[-1]
    rows, columns = (jnp.asarray(windows.starts(i)) for i in range(2))
    corner = rows[:, None] * width + columns
    first = _first_inside(windows, 0)[:, None] * width + _first_inside(windows, 1)

    def meet(i: Any, j: Any, best: Array, where: Array) -> tuple[Array, Array]:
        top, left = i * spread[0], j * spread[1]
        found = _met(padded, top, left, windows)
        better = found > best
        if floating:
            better |= jnp.isnan(found)
        position = corner + (top * width + left)
        return jnp.where(better, found, best), jnp.where(better, position, where)

    shape = (*x.shape[:-2], *windows.out)
    best = jnp.full(shape, least)
    where = jnp.broadcast_to(jnp.asarray(first), shape)
    if kernel[0] * kernel[1] > _TAPS:
        best, where = lax.fori_loop(
            0,
            kernel[0] * kernel[1],
            lambda tap, both: meet(tap // kernel[1], tap % kernel[1], *both),
            (best, where),
        )
        return best, where
    for i, j in windows.taps():
        best, where = meet(i, j, best, where)
    return best, where


def _tiled_backward(grad: Array, shape: Shape, indices: Array, windows: Windows) -> Array:
    """Windows side by side: every element asks whether it was the greatest of its own, in one
    pass."""
    kernel, out = windows.kernel, windows.out
    extent = (out[0] * kernel[0], out[1] * kernel[1])
    places = lax.broadcasted_iota(indices.dtype, extent, 0) * shape[-1]
    places += lax.broadcasted_iota(indices.dtype, extent, 1)
    places = places.reshape(out[0], kernel[0], out[1], kernel[1])
    chosen = indices[..., :, None, :, None] == places
    spread = jnp.where(chosen, grad[..., :, None, :, None], jnp.zeros((), grad.dtype))
    result = spread.reshape(*shape[:-2], *extent)
    rest = [(0, 0, 0)] * (len(shape) - 2)
    rest += [(0, shape[-2] - extent[0], 0), (0, shape[-1] - extent[1], 0)]
    return lax.pad(result, jnp.zeros((), grad.dtype), rest)


def max_pool2d_backward(grad: Array, shape: Shape, indices: Array, windows: Windows) -> Array:
    """Small windows are gone through tap by tap: adding at indices is slow on most devices."""
    height, width = shape[-2:]
    kernel, step, pad = windows.kernel, windows.stride, windows.padding
    spread, out = windows.dilation, windows.out
    tiled = step == kernel and pad == (0, 0) and spread == (1, 1)
    if tiled and out[0] * kernel[0] <= height and out[1] * kernel[1] <= width:
        return _tiled_backward(grad, shape, indices, windows)
    if kernel[0] * kernel[1] > _TAPS:
        flat = grad.reshape(-1, out[0] * out[1])
        planes = lax.broadcasted_iota(indices.dtype, flat.shape, 0)
        result = jnp.zeros((flat.shape[0], height * width), grad.dtype)
        return result.at[planes, indices.reshape(flat.shape)].add(flat).reshape(shape)

    def spread_out(x: Array, tap: Shape, fill: Any) -> Array:
        """What the windows have, at the places that a tap meets."""
        edges = [(0, 0, 0)] * (x.ndim - 2)
        for i, extent in enumerate(windows.extents()):
            low = tap[i] * spread[i] - pad[i]
            edges.append((low, shape[i - 2] - low - extent, step[i] - 1))
        return lax.pad(x, jnp.array(fill, x.dtype), edges)

    own = lax.broadcasted_iota(indices.dtype, shape, len(shape) - 2) * width
    own += lax.broadcasted_iota(indices.dtype, shape, len(shape) - 1)
    total = jnp.zeros(shape, jnp.promote_types(grad.dtype, jnp.float32))
    for tap in windows.taps():
        chosen = spread_out(indices, tap, -1) == own
        total += jnp.where(chosen, spread_out(grad, tap, 0), 0)
    return total.astype(grad.dtype)


def _window_sums(x: Array, windows: Windows) -> Array:
    """Sums of rows first, then of columns: height + width additions instead of height * width."""
    kernel = windows.kernel
    if kernel == windows.sizes and windows.out == (1, 1) and windows.padding == (0, 0):
        return jnp.sum(x, (-2, -1), keepdims=True)
    total = _padded(x, windows, 0)
    for i, extent in enumerate(windows.extents()):
        axis = x.ndim - 2 + i
        taps = [
            lax.slice_in_dim(total, tap, tap + extent, windows.stride[i], axis)
            for tap in range(kernel[i])
        ]
        total = functools.reduce(lax.add, taps)
    return total


def avg_pool2d(
    x: Array, windows: Windows, count_include_pad: bool, divisor_override: int | None
) -> Array:
    divisor = windows.divisor(count_include_pad, divisor_override)
    total = _window_sums(widen(x), windows)
    if jnp.issubdtype(x.dtype, jnp.integer):
        return jnp.trunc(total / jnp.asarray(divisor, jnp.float64)).astype(x.dtype)
    return (total / jnp.asarray(divisor, total.dtype)).astype(x.dtype)


def avg_pool2d_backward(
    grad: Array,
    shape: Shape,
    windows: Windows,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    wide = widen(grad)
    divisor = jnp.asarray(windows.divisor(count_include_pad, divisor_override), wide.dtype)
    like = jnp.zeros(shape, wide.dtype)
    back = jax.linear_transpose(lambda x: _window_sums(x, windows), like)
    return back(wide / divisor)[0].astype(grad.dtype)


# With the positions of what is no array among the arguments of the raw kernel.
_ON_WINDOWS: Final[dict[str, tuple[Callable[..., Any], Shape]]] = {
    "max_pool2d_with_indices": (max_pool2d, (1, 2, 3, 4, 5)),
    "max_pool2d_with_indices_backward": (max_pool2d_backward, (1, 3, 4, 5, 6, 7)),
    "avg_pool2d": (avg_pool2d, (1, 2, 3, 4, 5, 6, 7)),
    "avg_pool2d_backward": (avg_pool2d_backward, (1, 2, 3, 4, 5, 6, 7, 8)),
}
KERNELS: Final[dict[str, Callable[..., Any]]] = {
    name: program(on_windows(name, function), *static)
    for name, (function, static) in _ON_WINDOWS.items()
}
