"""Partial inverses of max pooling: maxima are written back to the positions where they were
found."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, int64
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def max_unpool2d(self: Tensor, indices: Tensor, output_size: Ints) -> Tensor:
    if len(output_size) != 2:
        raise RuntimeError(
            "There should be exactly two elements (height, width) in output_size, but got "
            f"{len(output_size)} elements."
        )
    return _unpool(self, indices, output_size)


def max_unpool3d(
    self: Tensor, indices: Tensor, output_size: Ints, stride: Ints, padding: Ints
) -> Tensor:
    for name, values in (("output_size", output_size), ("stride", stride), ("padding", padding)):
        if len(values) != 3:
            raise RuntimeError(
                f"There should be exactly three elements (depth, height, width) in {name}, but got "
                f"{len(values)} elements."
            )
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return _unpool(self, indices, output_size)


def _unpool(self: Tensor, indices: Tensor, out: Ints) -> Tensor:
    spatial = len(out)
    name = f"max_unpooling{spatial}d"
    shape = sizes_of(self)
    if indices.dtype is not int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {indices.dtype.scalar_name}"
        )
    if len(shape) != spatial + 1 and len(shape) != spatial + 2:
        raise RuntimeError(
            f"Input to {name} should be a {spatial + 1}d or {spatial + 2}d Tensor, but got a "
            f"tensor with {len(shape)} dimensions."
        )
    if sizes_of(indices) != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but "
            f"got indices tensor with shape: {list(sizes_of(indices))}"
        )
    # Without a batch, the channels count as one and may be missing.
    for dim in range(1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(shape)} with dimension {dim} being empty."
            )
    if min(out) < 0:
        raise RuntimeError(f"output_size should be non-negative, but got: {list(out)}")
    if self.dtype.category != FLOATING:
        raise not_implemented(f"max_unpool{spatial}d", self.dtype)
    leading = shape[: len(shape) - spatial]
    rows = (*leading, math.prod(shape[len(shape) - spatial :]))
    flat = F.zeros((*leading, math.prod(out)), dtype=self.dtype, device=self.device)
    places = indices.reshape(rows)
    try:
        filled = flat.scatter(-1, places, self.reshape(rows))
    except (RuntimeError, IndexError):
        _check_places(places, out)
        raise
    return temporary_in_shape(filled, (*leading, *out))


def _check_places(places: Tensor, out: Ints) -> None:
    """RuntimeError that names an index outside the result, after something has gone wrong."""
    outside = places.masked_select((places < 0) | (places >= math.prod(out)))
    if outside.numel() > 0:
        first = outside.narrow(0, 0, 1).item()
        volume = "x".join([str(size) for size in out])
        raise RuntimeError(
            f"Found an invalid max index: {first} (output volumes are of size {volume})"
        ) from None
