"""Kernels of convolution: one matrix product of the filters and the windows laid out as columns.

The input is padded and turned to (C, N, *spatial), so that the columns of a whole batch form one
matrix (C * taps, N * positions). With stride 1 a window's shift is a shift in memory: a row of the
matrix is then one contiguous run through the whole padded batch, which copies many times faster
than rows of a few elements each. Such a run also computes positions that straddle two rows; these
are left out at the end. Large batches are split into chunks, and runs into pieces with columns that
fit into the cache, from which the product reads them.

With numba, compiled loops (`numerics.correlation`) handle large convolutions, without columns.

Source of the layout: Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks
for Document Processing, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from plugrad.plugins.windows import Windows, on_windows
from plugrad_cpu.compiled import loops
from plugrad_cpu.numerics import correlation
from plugrad_cpu.numerics.adapters import wide_throughout

Array = Any
Kernel = Callable[..., Any]
Ints = tuple[int, ...]

# Elements of a chunk's columns.
_CHUNK: Final = 1 << 20
# Bytes of the columns of a piece of a run; of columns that are summed with one call per tap; and
# the least number of columns of a piece.
_PIECE: Final = 1 << 19
_FOLDED: Final = 1 << 22
_LEAST_PIECE: Final = 256
# A run may compute this many times the positions that are needed.
_WASTE: Final = 1.8
# From so many products on, compiled loops pay for loading numba, and from so many positions of a
# plane on for vectors that reach over the ends of rows; in the gradient of filters for sums over
# vectors, too.
_PRODUCTS: Final = 1 << 22
_PLANE: Final = 36
_SUMMED_PLANE: Final = 100


class _Geometry:
    """How the windows of a convolution are laid out as columns.

    Attributes:
        windows: the windows' positions.
        runs: whether windows are taken as runs through the padded batch.
        cells: spatial sizes of an image within such a batch. The padding behind a row or an image
            is also the padding in front of the next one, so it is stored once.
        lead: elements of padding in front of the first image.
        reach: how far a window's last element is behind its first.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        kernel, padding = windows.kernel, windows.padding
        self.sizes = windows.sizes
        self.out = windows.out
        self.positions = math.prod(self.out)
        self.cells = tuple(size + p for size, p in zip(self.sizes, padding, strict=True))
        self.area = math.prod(self.cells)
        self.steps = tuple(math.prod(self.cells[i + 1 :]) for i in range(len(kernel)))
        self.shifts = tuple(step * d for step, d in zip(self.steps, windows.dilation, strict=True))
        self.lead = sum(step * p for step, p in zip(self.steps, padding, strict=True))
        self.reach = sum(step * (k - 1) for step, k in zip(self.shifts, kernel, strict=True))
        # What is behind an image is the padding in front of the next, and no more of it.
        fits = all(
            out <= cells and padded <= cells + p
            for out, cells, padded, p in zip(
                self.out, self.cells, windows.padded(), padding, strict=True
            )
        )
        unit = all(s == 1 for s in windows.stride)
        self.runs = unit and fits and self.area <= _WASTE * self.positions

    def columns_per_sample(self) -> int:
        return self.area if self.runs else self.positions

    def columns(self, x: Array, groups: int) -> Array:
        """The windows of (N, C, *sizes): (groups, C / groups * taps, columns)."""
        count, channels = x.shape[:2]
        kernel = self.windows.kernel
        padded = np.zeros((channels, count, *self.windows.padded()), x.dtype)
        padded[self.windows.interior()] = x.swapaxes(0, 1)
        spatial = padded.strides[2:]
        view = as_strided(
            padded,
            (channels, *kernel, count, *self.out),
            (
                padded.strides[0],
                *(s * d for s, d in zip(spatial, self.windows.dilation, strict=True)),
                padded.strides[1],
                *(s * t for s, t in zip(spatial, self.windows.stride, strict=True)),
            ),
        )
        rows = channels * math.prod(kernel)
        return view.reshape(groups, rows // groups, -1)

    def batch(self, x: Array) -> Array:
        """(N, C, *sizes) as a padded batch (C, length) for runs."""
        batch, images = self._batch(x.shape[1], x.shape[0], x.dtype)
        images[self._inside(self.sizes)] = x.swapaxes(0, 1)
        return batch

    def run_columns(self, batch: Array, piece: slice, groups: int) -> Array:
        """Some of the columns of a padded batch: (groups, C / groups * taps, columns)."""
        channels, size = batch.shape[0], batch.itemsize
        kernel, count = self.windows.kernel, piece.stop - piece.start
        view = as_strided(
            batch[:, piece.start :],
            (channels, *kernel, count),
            (batch.strides[0], *(shift * size for shift in self.shifts), size),
        )
        return view.reshape(groups, channels // groups * math.prod(kernel), count)

    def pieces(self, rows: int, dtype: Any, length: int, size: int = _PIECE) -> Iterator[slice]:
        """Slices of the columns of a run, each with the given number of rows."""
        step = max(_LEAST_PIECE, size // max(1, rows * dtype.itemsize))
        for start in range(0, length, step):
            yield slice(start, min(start + step, length))

    def collect(self, product: Array, count: int) -> Array:
        """A product (O, columns) as a view (N, O, *out)."""
        filters = product.shape[0]
        if not self.runs:
            return product.reshape(filters, count, *self.out).swapaxes(0, 1)
        size = product.itemsize
        return as_strided(
            product,
            (count, filters, *self.out),
            (self.area * size, product.strides[0], *(step * size for step in self.steps)),
        )

    def spread(self, grad: Array, groups: int) -> Array:
        """A gradient (N, O, *out) as (groups, O / groups, columns), the inverse of `collect`."""
        count, filters = grad.shape[:2]
        turned = grad.swapaxes(0, 1)
        if not self.runs:
            return turned.reshape(groups, filters // groups, -1)
        images = np.zeros((filters, count, *self.cells), grad.dtype)
        images[self._inside(self.out)] = turned
        length = self.lead + count * self.area - self.reach
        return images.reshape(groups, filters // groups, -1)[:, :, :length]

    def fold(self, columns: Array, count: int) -> Array:
        """Sums columns (C * taps, columns) at the positions of their windows: (N, C, *sizes)."""
        windows = self.windows
        channels = columns.shape[0] // math.prod(windows.kernel)
        padded = np.zeros((channels, count, *windows.padded()), columns.dtype)
        by_tap = columns.reshape(channels, -1, count, *self.out)
        for number, read in enumerate(windows.reads()):
            padded[read] += by_tap[:, number]
        return padded[windows.interior()].swapaxes(0, 1)

    def fold_runs(self, matrix: Array, spread: Array, count: int) -> Array:
        """Sums the columns of a product of matrices (groups, taps, O / groups) and a gradient
        (groups, O / groups, columns) at the positions of their windows: (N, C, *sizes)."""
        taps = self.windows.taps()
        starts = [sum(s * t for s, t in zip(self.shifts, tap, strict=True)) for tap in taps]
        rows = matrix.shape[0] * matrix.shape[1]
        batch, images = self._batch(rows // len(taps), count, spread.dtype)
        for piece in self.pieces(rows, spread.dtype, spread.shape[2], _FOLDED):
            columns = _product(matrix, spread[:, :, piece])
            by_tap = columns.reshape(batch.shape[0], len(taps), -1)
            for number, start in enumerate(starts):
                batch[:, start + piece.start : start + piece.stop] += by_tap[:, number]
        return images[self._inside(self.sizes)].swapaxes(0, 1)

    def _batch(self, channels: int, count: int, dtype: Any) -> tuple[Array, Array]:
        """A batch of zeros (C, length) for runs, and its images as a view (C, N, *cells)."""
        batch = np.zeros((channels, self.lead + count * self.area), dtype)
        return batch, batch[:, self.lead :].reshape(channels, count, *self.cells)

    def _inside(self, sizes: Ints) -> tuple[slice, ...]:
        """The first `sizes` elements of each spatial dimension."""
        return (slice(None), slice(None), *(slice(size) for size in sizes))


def _loops(
    count: int, weight: int, dtype: Any, geometry: _Geometry, least: int
) -> tuple[Any, correlation.Correlation] | None:
    """Compiled loops, and what they do, for a batch and filters of a size; None if there are none,
    or they would not be faster."""
    products = count * geometry.positions * weight
    if products < _PRODUCTS or dtype not in (np.float32, np.float64):
        return None
    plan = correlation.Correlation.of(geometry.windows)
    compiled = loops("convolution") if plan.fits(count, least) else None
    return None if compiled is None else (compiled, plan)


def _chunks(geometry: _Geometry, rows: int, count: int) -> Iterator[slice]:
    """Slices of the batch."""
    step = max(1, _CHUNK // max(1, rows * geometry.columns_per_sample()))
    for start in range(0, count, step):
        yield slice(start, start + step)


def _product(a: Array, b: Array) -> Array:
    """Matrix products of groups; the one of a single group goes straight to BLAS."""
    if a.shape[0] == 1:
        return a[0].dot(b[0])[None]
    return np.matmul(a, b)


def _forward(x: Array, weight: Array, bias: Array | None, geometry: _Geometry, groups: int) -> Any:
    filters = weight.shape[0]
    count = x.shape[0]
    if (fast := _loops(count, weight.size, x.dtype, geometry, _PLANE)) is not None:
        found = correlation.correlate(fast[0], x, weight, bias, fast[1], groups)
        return found.reshape(count, filters, *geometry.out)
    out = np.empty((count, filters, *geometry.out), x.dtype)
    shift = None if bias is None else bias.reshape(-1, *(1 for _ in geometry.out))
    if not (x.size and weight.size):  # sums over nothing
        out[...] = 0 if shift is None else shift
        return out
    matrix = weight.reshape(groups, filters // groups, -1)
    for part in _chunks(geometry, groups * matrix.shape[2], count):
        product = _correlated(x[part], matrix, geometry, groups)
        view = geometry.collect(product.reshape(filters, -1), x[part].shape[0])
        if shift is None:
            out[part] = view
        else:
            np.add(view, shift, out[part])
    return out


def _correlated(x: Array, matrix: Array, geometry: _Geometry, groups: int) -> Array:
    """The products of filters and columns, (groups, O / groups, columns)."""
    if not geometry.runs:
        return _product(matrix, geometry.columns(x, groups))
    batch = geometry.batch(x)
    product = np.empty((*matrix.shape[:2], batch.shape[1] - geometry.reach), x.dtype)
    for piece in geometry.pieces(groups * matrix.shape[2], x.dtype, product.shape[2]):
        product[:, :, piece] = _product(matrix, geometry.run_columns(batch, piece, groups))
    return product


def _turned(geometry: _Geometry) -> _Geometry | None:
    """How the gradient is correlated with the turned filters, if both can be done in runs."""
    if not geometry.runs:
        return None
    windows = geometry.windows
    padding = [
        spread * (kernel - 1) - pad
        for kernel, spread, pad in zip(
            windows.kernel, windows.dilation, windows.padding, strict=True
        )
    ]
    if min(padding) < 0:
        return None
    steps = (windows.kernel, windows.stride, tuple(padding), windows.dilation)
    turned = _Geometry(Windows(windows.out, *steps, windows.sizes))
    return turned if turned.runs else None


def _input_gradient(grad: Array, weight: Array, geometry: _Geometry, groups: int) -> Any:
    filters = weight.shape[0]
    count = grad.shape[0]
    shape = (count, weight.shape[1] * groups, *geometry.sizes)
    if (fast := _loops(count, weight.size, grad.dtype, geometry, _PLANE)) is not None:
        found = correlation.input_gradient(fast[0], grad, weight, fast[1], groups)
        return found.reshape(shape)
    out = np.empty(shape, grad.dtype)
    if not (grad.size and weight.size):
        out[...] = 0
        return out
    # Columns to be added up are as many rows as the input has channels, those to be read as many
    # as there are filters.
    turned = _turned(geometry) if filters <= out.shape[1] else None
    if turned is not None:
        kernel = weight.shape[2:]
        by_group = weight.reshape(groups, filters // groups, -1, *kernel).swapaxes(1, 2)
        flipped = np.flip(by_group, tuple(range(3, by_group.ndim)))
        filter_bank = flipped.reshape(out.shape[1], filters // groups, *kernel)
        return _forward(grad, filter_bank, None, turned, groups)
    matrix = weight.reshape(groups, filters // groups, -1).swapaxes(1, 2)
    for part in _chunks(geometry, groups * matrix.shape[1], count):
        spread, images = geometry.spread(grad[part], groups), grad[part].shape[0]
        if geometry.runs:
            out[part] = geometry.fold_runs(matrix, spread, images)
        else:
            columns = _product(matrix, spread)
            rows = columns.reshape(columns.shape[0] * columns.shape[1], -1)
            out[part] = geometry.fold(rows, images)
    return out


def _weight_gradient(grad: Array, x: Array, shape: Ints, geometry: _Geometry, groups: int) -> Any:
    filters = shape[0]
    if not (grad.size and x.size and math.prod(shape)):
        return np.zeros(shape, grad.dtype)
    rows = math.prod(shape[1:])
    size = math.prod(shape)
    if (fast := _loops(len(x), size, x.dtype, geometry, _SUMMED_PLANE)) is not None:
        found = correlation.weight_gradient(fast[0], grad, x, shape, fast[1], groups)
        return found.reshape(shape)
    total = np.zeros((groups, filters // groups, rows), grad.dtype)
    for part in _chunks(geometry, groups * rows, grad.shape[0]):
        spread = geometry.spread(grad[part], groups)
        if geometry.runs:
            batch = geometry.batch(x[part])
            for piece in geometry.pieces(groups * rows, x.dtype, spread.shape[2]):
                columns = geometry.run_columns(batch, piece, groups)
                total += _product(spread[:, :, piece], columns.swapaxes(1, 2))
        else:
            columns = geometry.columns(x[part], groups)
            total += _product(spread, columns.swapaxes(1, 2))
    return total.reshape(shape)


def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    windows: Windows,
    transposed: bool,
    groups: int,
) -> Any:
    geometry = _Geometry(windows)
    if not transposed:
        return _forward(x, weight, bias, geometry, groups)
    out = _input_gradient(x, weight, geometry, groups)
    if bias is not None:
        out += bias.reshape(-1, *(1 for _ in windows.stride))
    return out


def convolution_backward(
    grad: Array,
    x: Array,
    weight: Array,
    windows: Windows,
    transposed: bool,
    groups: int,
    mask: tuple[bool, bool, bool],
) -> tuple[Any, Any, Any]:
    """The gradients toward input, weight and bias; None if not requested."""
    if x.dtype.kind == "c":
        x = x.conj()
        weight = weight.conj()
    read, made = (grad, x) if transposed else (x, grad)
    geometry = _Geometry(windows)
    to_input = to_weight = to_bias = None
    if mask[0] and transposed:
        to_input = _forward(grad, weight, None, geometry, groups)
    elif mask[0]:
        to_input = _input_gradient(grad, weight, geometry, groups)
    if mask[1]:
        to_weight = _weight_gradient(made, read, weight.shape, geometry, groups)
    if mask[2]:
        to_bias = np.add.reduce(grad, (0, *range(2, grad.ndim)))
    return to_input, to_weight, to_bias


KERNELS: Final[dict[str, Kernel]] = {
    "convolution": on_windows("convolution", wide_throughout(convolution)),
    "convolution_backward": on_windows(
        "convolution_backward", wide_throughout(convolution_backward)
    ),
}
