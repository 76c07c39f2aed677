"""Kernels of pooling: images are shifted and combined, one tap of the window at a time, which XLA
makes one loop over the output of; a window of many taps is gone through in a loop of its own."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad_jax.kernels.programs import Array, compiled

Pair = tuple[int, int]
Shape = tuple[int, ...]

# Windows of more taps than this are not written out: the program would grow with them.
_TAPS: Final = 64


def _extents(step: Pair, out: Pair) -> list[int]:
    """From the first window's start to the last one's, for each of height and width."""
    return [(out[i] - 1) * step[i] + 1 for i in range(2)]


def _edges(sizes: Shape, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair) -> Any:
    """What has to be added around the images, for `lax.pad`."""
    edges = [(0, 0, 0)] * (len(sizes) - 2)
    for i, extent in enumerate(_extents(step, out)):
        reach = extent + (kernel[i] - 1) * spread[i]
        edges.append((pad[i], max(0, reach - pad[i] - sizes[i - 2]), 0))
    return edges


def _taps(kernel: Pair) -> Any:
    return itertools.product(range(kernel[0]), range(kernel[1]))


def _met(padded: Array, top: Any, left: Any, step: Pair, out: Pair) -> Array:
    """The elements that the tap of a window which is `top` and `left` of its start meets."""
    down, across = _extents(step, out)
    start = (*(0,) * (padded.ndim - 2), top, left)
    part = lax.dynamic_slice(padded, start, (*padded.shape[:-2], down, across))
    return part[..., :: step[0], :: step[1]]


def _starts(size: int, step: int, pad: int, spread: int, out: int) -> Any:
    """Where the first element of each window lies that is no padding."""
    start = np.arange(out) * step - pad
    return np.where(start < 0, start - start // spread * spread, start)


@compiled(1, 2, 3, 4, 5)
def max_pool2d(
    x: Array, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
) -> tuple[Array, Array]:
    """Maxima, and their positions in the images as row * width + column: the first of equal ones,
    the last nan."""
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    least = jnp.array(-jnp.inf if floating else np.iinfo(x.dtype).min, x.dtype)
    padded = lax.pad(x, least, _edges(x.shape, kernel, step, pad, spread, out))
    width = x.shape[-1]
    rows, columns = (jnp.arange(out[i]) * step[i] - pad[i] for i in range(2))
    corner = rows[:, None] * width + columns
    first = [_starts(x.shape[i - 2], step[i], pad[i], spread[i], out[i]) for i in range(2)]

    def meet(i: Any, j: Any, best: Array, where: Array) -> tuple[Array, Array]:
        top, left = i * spread[0], j * spread[1]
        found = _met(padded, top, left, step, out)
        better = found > best
        if floating:
            better |= jnp.isnan(found)
        position = corner + (top * width + left)
        return jnp.where(better, found, best), jnp.where(better, position, where)

    shape = (*x.shape[:-2], *out)
    best = jnp.full(shape, least)
    where = jnp.broadcast_to(jnp.asarray(first[0][:, None] * width + first[1]), shape)
    if kernel[0] * kernel[1] > _TAPS:
        best, where = lax.fori_loop(
            0,
            kernel[0] * kernel[1],
            lambda tap, both: meet(tap // kernel[1], tap % kernel[1], *both),
            (best, where),
        )
        return best, where
    for i, j in _taps(kernel):
        best, where = meet(i, j, best, where)
    return best, where


def _tiled_backward(grad: Array, shape: Shape, indices: Array, kernel: Pair, out: Pair) -> Array:
    """Windows side by side: every element asks whether it was the greatest of its own, in one
    pass."""
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


@compiled(1, 3, 4, 5, 6, 7)
def max_pool2d_backward(
    grad: Array,
    shape: Shape,
    indices: Array,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
) -> Array:
    """Small windows are gone through tap by tap: adding at indices is slow on most devices."""
    height, width = shape[-2:]
    tiled = step == kernel and pad == (0, 0) and spread == (1, 1)
    if tiled and out[0] * kernel[0] <= height and out[1] * kernel[1] <= width:
        return _tiled_backward(grad, shape, indices, kernel, out)
    if kernel[0] * kernel[1] > _TAPS:
        flat = grad.reshape(-1, out[0] * out[1])
        planes = lax.broadcasted_iota(indices.dtype, flat.shape, 0)
        result = jnp.zeros((flat.shape[0], height * width), grad.dtype)
        return result.at[planes, indices.reshape(flat.shape)].add(flat).reshape(shape)

    def spread_out(x: Array, tap: Pair, fill: Any) -> Array:
        """What the windows have, at the places that a tap meets."""
        edges = [(0, 0, 0)] * (x.ndim - 2)
        for i, extent in enumerate(_extents(step, out)):
            low = tap[i] * spread[i] - pad[i]
            edges.append((low, shape[i - 2] - low - extent, step[i] - 1))
        return lax.pad(x, jnp.array(fill, x.dtype), edges)

    own = lax.broadcasted_iota(indices.dtype, shape, len(shape) - 2) * width
    own += lax.broadcasted_iota(indices.dtype, shape, len(shape) - 1)
    total = jnp.zeros(shape, jnp.promote_types(grad.dtype, jnp.float32))
    for tap in _taps(kernel):
        chosen = spread_out(indices, tap, -1) == own
        total += jnp.where(chosen, spread_out(grad, tap, 0), 0)
    return total.astype(grad.dtype)


def _counts(size: int, kernel: int, step: int, pad: int, out: int, count_include_pad: bool) -> Any:
    """How many elements each window averages, along one dimension."""
    start = np.arange(out) * step - pad
    end = np.minimum(start + kernel, size + pad)
    if count_include_pad:
        return end - start
    return np.minimum(end, size) - np.maximum(start, 0)


def _divisor(
    shape: Shape,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """What each window's sum is divided by: one number if it is the same for all."""
    if divisor_override is not None:
        return divisor_override
    rows, columns = (
        _counts(shape[i - 2], kernel[i], step[i], pad[i], out[i], count_include_pad)
        for i in range(2)
    )
    if (rows == kernel[0]).all() and (columns == kernel[1]).all():
        return kernel[0] * kernel[1]
    return rows[:, None] * columns


def _window_sums(x: Array, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair) -> Array:
    """Sums of rows first, then of columns: height + width additions instead of height * width."""
    if kernel == x.shape[-2:] and out == (1, 1) and pad == (0, 0):
        return jnp.sum(x, (-2, -1), keepdims=True)
    padded = lax.pad(x, jnp.zeros((), x.dtype), _edges(x.shape, kernel, step, pad, spread, out))
    for i, extent in enumerate(_extents(step, out)):
        axis = x.ndim - 2 + i
        taps = [
            lax.slice_in_dim(padded, tap, tap + extent, step[i], axis) for tap in range(kernel[i])
        ]
        padded = functools.reduce(lax.add, taps)
    return padded


@compiled(1, 2, 3, 4, 5, 6, 7)
def avg_pool2d(
    x: Array,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    divisor = _divisor(x.shape, kernel, step, pad, out, count_include_pad, divisor_override)
    if jnp.issubdtype(x.dtype, jnp.integer):
        total = _window_sums(x, kernel, step, pad, spread, out)
        return jnp.trunc(total / jnp.asarray(divisor, jnp.float64)).astype(x.dtype)
    total = _window_sums(_widened(x), kernel, step, pad, spread, out)
    return (total / jnp.asarray(divisor, total.dtype)).astype(x.dtype)


@compiled(1, 2, 3, 4, 5, 6, 7, 8)
def avg_pool2d_backward(
    grad: Array,
    shape: Shape,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    divisor = _divisor(shape, kernel, step, pad, out, count_include_pad, divisor_override)
    wide = _widened(grad)
    share = wide / jnp.asarray(divisor, wide.dtype)
    like = jnp.zeros(shape, wide.dtype)
    back = jax.linear_transpose(lambda x: _window_sums(x, kernel, step, pad, spread, out), like)
    return back(share)[0].astype(grad.dtype)


def _widened(x: Array) -> Array:
    """16-bit floats in float32: many of them are added up."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "max_pool2d_with_indices": max_pool2d,
    "max_pool2d_with_indices_backward": max_pool2d_backward,
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
}
