"""Kernels of pooling: images are shifted and combined, one tap of the window at a time, which XLA
makes one loop over the output of; a window of many taps gets its own loop."""

from __future__ import annotations

import functools
import math
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
    edges = [(0, 0)] * (x.ndim - len(windows.sizes)) + windows.edges()
    return lax.pad(x, jnp.asarray(fill, x.dtype), [(low, high, 0) for low, high in edges])


def _met(padded: Array, tap: tuple[Any, ...], windows: Windows) -> Array:
    """The elements that a tap of the windows meets."""
    leading = padded.ndim - len(tap)
    spread = windows.dilation
    start = [0] * leading + [number * spread[i] for i, number in enumerate(tap)]
    part = lax.dynamic_slice(padded, start, (*padded.shape[:leading], *windows.extents()))
    return part[(..., *[slice(None, None, step) for step in windows.stride])]


def _first_inside(windows: Windows) -> Any:
    """The position of the first element of each window that is not padding."""
    found: Any = np.zeros((), np.int64)
    for axis, size in enumerate(windows.sizes):
        start, spread = windows.starts(axis), windows.dilation[axis]
        inside = np.where(start < 0, start - start // spread * spread, start)
        found = found[..., None] * size + inside
    return found


def _taken_apart(number: Any, kernel: Shape) -> tuple[Any, ...]:
    """The tap of a number, as indices into the window."""
    found: list[Any] = []
    for size in reversed(kernel):
        found.insert(0, number % size)
        number = number // size
    return tuple(found)


def max_pool(x: Array, windows: Windows) -> tuple[Array, Array]:
    """Maxima, and their positions as indices into the flattened image: the first of equal ones,
    the last nan."""
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    least = jnp.array(-jnp.inf if floating else np.iinfo(x.dtype).min, x.dtype)
    kernel, sizes = windows.kernel, windows.sizes
    padded = _padded(x, windows, least)
    corners = jnp.asarray(windows.corners())

    def meet(tap: tuple[Any, ...], best: Array, where: Array) -> tuple[Array, Array]:
        found = _met(padded, tap, windows)
        better = found > best
        if floating:
            better |= jnp.isnan(found)
        offset: Any = 0
        for i, size in enumerate(sizes):
            offset = offset * size + tap[i] * windows.dilation[i]
        return jnp.where(better, found, best), jnp.where(better, corners + offset, where)

    shape = (*x.shape[: x.ndim - len(sizes)], *windows.out)
    best = jnp.full(shape, least)
    where = jnp.broadcast_to(jnp.asarray(_first_inside(windows)), shape)
    count = math.prod(kernel)
    if count > _TAPS:
        best, where = lax.fori_loop(
            0, count, lambda number, both: meet(_taken_apart(number, kernel), *both), (best, where)
        )
        return best, where
    for tap in windows.taps():
        best, where = meet(tap, best, where)
    return best, where


def _places(shape: Shape, first: int, dtype: Any) -> Array:
    """Each element's index within the flattened dimensions from `first` on."""
    found = jnp.zeros(shape, dtype)
    for dim in range(first, len(shape)):
        found = found * shape[dim] + lax.broadcasted_iota(dtype, shape, dim)
    return found


def _tiled_backward(grad: Array, shape: Shape, indices: Array, windows: Windows) -> Array:
    """For windows that do not overlap: every element is compared with its window's maximum, in one
    pass."""
    kernel, out, sizes = windows.kernel, windows.out, windows.sizes
    spatial = len(sizes)
    leading = shape[: len(shape) - spatial]
    places = jnp.zeros((), indices.dtype)
    apart: list[int] = []
    spread: list[Any] = [...]
    for i, size in enumerate(sizes):
        row = jnp.arange(out[i] * kernel[i], dtype=indices.dtype)
        places = places[..., None] * size + row
        apart += [out[i], kernel[i]]
        spread += [slice(None), None]
    chosen = indices[tuple(spread)] == places.reshape(apart)
    found = jnp.where(chosen, grad[tuple(spread)], jnp.zeros((), grad.dtype))
    extent = [out[i] * kernel[i] for i in range(spatial)]
    result = found.reshape(*leading, *extent)
    rest = [(0, 0, 0)] * len(leading) + [(0, sizes[i] - extent[i], 0) for i in range(spatial)]
    return lax.pad(result, jnp.zeros((), grad.dtype), rest)


def max_pool_backward(grad: Array, shape: Shape, indices: Array, windows: Windows) -> Array:
    """Small windows are processed tap by tap: adding at indices is slow on most devices."""
    kernel, step, pad = windows.kernel, windows.stride, windows.padding
    spread, out, sizes = windows.dilation, windows.out, windows.sizes
    leading = len(shape) - len(sizes)
    tiled = step == kernel and not any(pad) and max(spread) == 1
    if tiled and all(out[i] * kernel[i] <= size for i, size in enumerate(sizes)):
        return _tiled_backward(grad, shape, indices, windows)
    if math.prod(kernel) > _TAPS:
        flat = grad.reshape(-1, math.prod(out))
        planes = lax.broadcasted_iota(indices.dtype, flat.shape, 0)
        result = jnp.zeros((flat.shape[0], math.prod(sizes)), grad.dtype)
        return result.at[planes, indices.reshape(flat.shape)].add(flat).reshape(shape)

    def spread_out(x: Array, tap: Shape, fill: Any) -> Array:
        """What the windows have, at the places that a tap meets."""
        edges = [(0, 0, 0)] * leading
        for i, extent in enumerate(windows.extents()):
            low = tap[i] * spread[i] - pad[i]
            edges.append((low, sizes[i] - low - extent, step[i] - 1))
        return lax.pad(x, jnp.array(fill, x.dtype), edges)

    own = _places(shape, leading, indices.dtype)
    total = jnp.zeros(shape, jnp.promote_types(grad.dtype, jnp.float32))
    for tap in windows.taps():
        chosen = spread_out(indices, tap, -1) == own
        total += jnp.where(chosen, spread_out(grad, tap, 0), 0)
    return total.astype(grad.dtype)


def _window_sums(x: Array, windows: Windows) -> Array:
    """Sums along one dimension, then the next: height + width additions for height * width."""
    kernel = windows.kernel
    first = x.ndim - len(kernel)
    if kernel == windows.sizes and max(windows.out) == 1 and not any(windows.padding):
        return jnp.sum(x, tuple(range(first, x.ndim)), keepdims=True)
    total = _padded(x, windows, 0)
    for i, extent in enumerate(windows.extents()):
        taps = [
            lax.slice_in_dim(total, tap, tap + extent, windows.stride[i], first + i)
            for tap in range(kernel[i])
        ]
        total = functools.reduce(lax.add, taps)
    return total


def avg_pool(x: Array, windows: Windows, count_include_pad: bool, override: int | None) -> Array:
    divisor = windows.divisor(count_include_pad, override)
    total = _window_sums(widen(x), windows)
    if jnp.issubdtype(x.dtype, jnp.integer):
        return jnp.trunc(total / jnp.asarray(divisor, jnp.float64)).astype(x.dtype)
    return (total / jnp.asarray(divisor, total.dtype)).astype(x.dtype)


def avg_pool_backward(
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


def im2col(x: Array, windows: Windows) -> Array:
    """Windows as columns, (..., C, H, W) to (..., C * taps, windows)."""
    padded = _padded(x, windows, 0)
    shape = (*x.shape[:-3], x.shape[-3] * math.prod(windows.kernel), math.prod(windows.out))
    if math.prod(windows.kernel) <= _TAPS:
        return jnp.stack([padded[read] for read in windows.reads()], -3).reshape(shape)
    for i in range(2):
        places = jnp.asarray(windows.places(i) + windows.padding[i])
        # The first dimension has become two when it is the second one's turn.
        padded = jnp.take(padded, places, axis=x.ndim - 2 + 2 * i)
    return jnp.swapaxes(padded, -3, -2).reshape(shape)


def col2im(columns: Array, windows: Windows) -> Array:
    """Columns summed at the positions of their windows."""
    if columns.dtype == bool:
        return col2im(columns.astype(jnp.int32), windows).astype(bool)
    wide = widen(columns)
    channels = columns.shape[-2] // math.prod(windows.kernel)
    like = jnp.zeros((*columns.shape[:-2], channels, *windows.sizes), wide.dtype)
    back = jax.linear_transpose(lambda x: im2col(x, windows), like)
    return back(wide)[0].astype(columns.dtype)


# With the positions of the raw kernel's arguments that are not arrays.
_MAX: Final = (max_pool, (1, 2, 3, 4, 5))
_MAX_BACKWARD: Final = (max_pool_backward, (1, 3, 4, 5, 6, 7))
_AVG: Final = (avg_pool, (1, 2, 3, 4, 5, 6, 7))
_AVG_BACKWARD: Final = (avg_pool_backward, (1, 2, 3, 4, 5, 6, 7, 8))
_ON_WINDOWS: Final[dict[str, tuple[Callable[..., Any], Shape]]] = {
    "max_pool2d_with_indices": _MAX,
    "max_pool2d_with_indices_backward": _MAX_BACKWARD,
    "max_pool3d_with_indices": _MAX,
    "max_pool3d_with_indices_backward": _MAX_BACKWARD,
    "avg_pool2d": _AVG,
    "avg_pool2d_backward": _AVG_BACKWARD,
    "avg_pool3d": _AVG,
    "avg_pool3d_backward": _AVG_BACKWARD,
    "im2col": (im2col, (1, 2, 3, 4, 5)),
    "col2im": (col2im, (1, 2, 3, 4, 5, 6)),
}
KERNELS: Final[dict[str, Callable[..., Any]]] = {
    name: program(on_windows(name, function), *static)
    for name, (function, static) in _ON_WINDOWS.items()
}
