"""Fractional max pooling: windows of one size that start at random positions."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, int64
from plugrad.ops.composite.layers.maxima import at_places, chosen_places, greatest_taps
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.ops.prepare.pooling import per_dimension
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]

_AXES: Final = ("time", "height", "width")


def fractional_max_pool2d(
    self: Tensor, kernel_size: Ints, output_size: Ints, random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    # In two dimensions only, the first sample is for the columns.
    return _pool(self, kernel_size, output_size, random_samples, (1, 0))


def fractional_max_pool3d(
    self: Tensor, kernel_size: Ints, output_size: Ints, random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    return _pool(self, kernel_size, output_size, random_samples, (0, 1, 2))


def _pool(
    self: Tensor, kernel_size: Ints, output_size: Ints, samples: Tensor, order: Ints
) -> tuple[Tensor, Tensor]:
    """`order` gives the index of each dimension's sample."""
    spatial = len(order)
    name = f"fractional_max_pool{spatial}d"
    kernel = per_dimension(f"{name}: kernel_size", kernel_size, spatial)
    out = per_dimension(f"{name}: output_size", output_size, spatial)
    _check_sizes(name, self, kernel, out)
    if self.ndim == spatial + 1:
        batch = _greatest(self.detach().unsqueeze(0), kernel, out, samples, order)
        indices = temporary_in_shape(batch, sizes_of(batch)[1:])
    else:
        indices = _greatest(self.detach(), kernel, out, samples, order)
    return at_places(self, indices, spatial), indices


def _check_sizes(name: str, self: Tensor, kernel: Ints, out: Ints) -> None:
    spatial = len(kernel)
    shape = sizes_of(self)
    if len(shape) != spatial + 1 and len(shape) != spatial + 2:
        raise RuntimeError(
            f"{name}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got: {list(shape)}"
        )
    # Without a batch, the channels count as one and may be missing.
    for dim in range(1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got "
                f"{list(shape)} with dimension {dim} being empty."
            )
    for i in range(spatial):
        axis, size = _AXES[i - spatial], shape[len(shape) - spatial + i]
        if kernel[i] <= 0 or out[i] < 0:
            raise RuntimeError(
                f"{name}(): expected a kernel_size above 0 and an output_size of at least 0, but "
                f"got {axis} {kernel[i]} and {out[i]}"
            )
        # PyTorch requires one more element in three dimensions.
        if out[i] + kernel[i] + spatial - 3 > size:
            raise RuntimeError(
                f"{name}(): pool {axis} {kernel[i]} too large relative to input {axis} {size}"
            )
    if self.dtype.category != FLOATING:
        raise not_implemented(f"{name}_out_frame", self.dtype)


def _check_samples(samples: Tensor, x: Tensor, spatial: int) -> None:
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.dtype is not x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    sizes, shape = sizes_of(samples), sizes_of(x)
    if sizes[0] < shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if sizes[1] != shape[1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if sizes[2] != spatial:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {spatial}, but got {sizes[2]}."
        )


def _greatest(x: Tensor, kernel: Ints, out: Ints, samples: Tensor, order: Ints) -> Tensor:
    """Where in an image the greatest element of each window is, (N, C, *out) of int64."""
    spatial = len(order)
    _check_samples(samples, x, spatial)
    planes = sizes_of(x)[:2]
    drawn = samples.detach().narrow(0, 0, planes[0])
    places: Tensor | None = None
    for i, size in enumerate(sizes_of(x)[2:]):
        starts = _starts(drawn.select(2, order[i]), size, kernel[i], out[i])
        taps, windows = [1] * spatial, [1] * spatial
        taps[i], windows[i] = kernel[i], out[i]
        ones = (1,) * spatial
        along = starts.reshape((*planes, *ones, *windows))
        within = np.arange(kernel[i]).reshape((1, 1, *taps, *ones))
        along = along + index_tensor(within, x)
        places = along if places is None else places * size + along
    assert places is not None
    count = math.prod(kernel)
    flat = x.reshape((*planes, math.prod(sizes_of(x)[2:])))
    rows = places.reshape((*planes, count * math.prod(out)))
    shape = (*planes, count, *out)
    chosen = greatest_taps(flat.gather(-1, rows).reshape(shape), 2)[1]
    return chosen_places(chosen, rows.reshape(shape), 2)


def _starts(sample: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """Where windows start along a dimension, (N, C, count): the last one ends with the image."""
    planes = sizes_of(sample)
    last = F.full((*planes, 1), size - kernel, dtype=int64, device=sample.device)
    if count < 2:
        return last.narrow(2, 0, count)
    step = (size - kernel) / (count - 1)
    apart = sample.unsqueeze(2)
    numbers = F.arange(count - 1, dtype=sample.dtype, device=sample.device)
    begin = F._to_copy((apart + numbers) * step, int64)
    return F.cat([begin - F._to_copy(apart * step, int64), last], 2)
