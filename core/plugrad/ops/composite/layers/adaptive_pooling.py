"""Adaptive pooling: one window for each element of the result; together they cover the input.

Window i of n covers floor(i * size / n) to ceil((i + 1) * size / n) - 1. If all windows have one
size, this is ordinary pooling.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import Pooling
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import FLOATING, int64
from plugrad.ops.composite.layers.maxima import at_places
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.ops.prepare.pooling import check_ranks
from plugrad.tensor.base import sizes_of
from plugrad.tensor.creation.allocation import check_memory

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def adaptive_avg_pool1d(self: Tensor, output_size: Ints) -> Tensor:
    check_ranks("adaptive_avg_pool1d", self)
    return _adaptive_avg("adaptive_avg_pool1d", self, _one_size("avg", output_size))


def adaptive_avg_pool2d(self: Tensor, output_size: Ints) -> Tensor:
    return _adaptive_avg("adaptive_avg_pool2d", self, _sizes("adaptive_avg_pool2d", output_size, 2))


def adaptive_avg_pool3d(self: Tensor, output_size: Ints) -> Tensor:
    return _adaptive_avg("adaptive_avg_pool3d", self, _sizes("adaptive_avg_pool3d", output_size, 3))


def adaptive_max_pool1d(self: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    check_ranks("adaptive_max_pool1d", self)
    return _adaptive_max("adaptive_max_pool1d", self, _one_size("max", output_size))


def adaptive_max_pool2d(self: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    return _adaptive_max("adaptive_max_pool2d", self, _sizes("adaptive_max_pool2d", output_size, 2))


def adaptive_max_pool3d(self: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    return _adaptive_max("adaptive_max_pool3d", self, _sizes("adaptive_max_pool3d", output_size, 3))


def _one_size(kind: str, output_size: Ints) -> Ints:
    if len(output_size) != 1:
        raise RuntimeError(
            f"adaptive_{kind}_pool1d() argument 'output_size' should contain one int (got "
            f"{len(output_size)})"
        )
    return output_size


def _sizes(operator: str, output_size: Ints, spatial: int) -> Ints:
    """A size for each dimension; one number applies to all."""
    if len(output_size) == 1:
        return output_size * spatial
    if len(output_size) != spatial:
        raise RuntimeError(f"{operator}: output_size must be {spatial}")
    return output_size


def _adaptive_avg(operator: str, self: Tensor, out: Ints) -> Tensor:
    spatial = len(out)
    if min(out) < 0:
        words = ", ".join([str(size) for size in out])
        raise RuntimeError(
            f"{operator}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{words}}}"
        )
    if max(out) == 1 and min(out) == 1:
        # The mean of each image, however many dimensions there are before it.
        return self.mean(dim=tuple(range(-spatial, 0)), keepdim=True)
    # PyTorch's means of signals and images need no channels; those of volumes need some.
    _check_input(operator, self, spatial, self.ndim - spatial if spatial < 3 else 1)
    sizes = sizes_of(self)[self.ndim - spatial :]
    if 0 in sizes_of(self):
        return (
            self.mean(dim=tuple(range(-spatial, 0)), keepdim=True)
            .expand((*sizes_of(self)[: self.ndim - spatial], *out))
            .clone()
        )
    window = _even_window(sizes, out)
    if window is not None:
        how = Pooling(window, window, (0,) * spatial, (1,) * spatial, False, True, None)
        if spatial == 1:
            how = Pooling((1, *window), (1, *window), (0, 0), (1, 1), False, True, None)
            return C.call_avg_pool2d_with(self.unsqueeze(-2), how).squeeze(-2)
        if spatial == 2:
            return C.call_avg_pool2d_with(self, how)
        return C.call_avg_pool3d_with(self, how)
    # The result, and the indices that make it of the different bands.
    images = self.numel() // max(math.prod(sizes), 1)
    check_memory(images * math.prod(out) * self.dtype.itemsize + 32 * sum(out))
    # Resampling to the means of areas has the same windows, but cannot have zero of them.
    resample = find_operator("plugrad::_resample")
    assert resample is not None
    some = tuple([max(count, 1) for count in out])
    found: Any = resample(self, some, "area", False, (0.0,) * spatial)
    for i in range(spatial):
        if out[i] == 0:
            found = found.narrow(i - spatial, 0, 0)
    return found


def _check_input(operator: str, self: Tensor, spatial: int, first: int) -> None:
    """RuntimeError unless there are elements along the dimensions from `first` on."""
    shape = list(sizes_of(self))
    if spatial > 1 and self.ndim != spatial + 1 and self.ndim != spatial + 2:
        got = "but got" if "avg" in operator else "but got:"
        raise RuntimeError(
            f"{operator}(): Expected {spatial + 1}D or {spatial + 2}D tensor, {got} {shape}"
        )
    for dim in range(first, self.ndim):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{operator}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {shape} with dimension {dim} being empty"
            )
    if self.dtype.category != FLOATING:
        raise not_implemented(operator, self.dtype)


def _even_window(sizes: Ints, out: Ints) -> Ints | None:
    """The size of all windows, if they are of one and side by side."""
    for i, count in enumerate(out):
        if count == 0 or sizes[i] % count != 0:
            return None
    return tuple([sizes[i] // count for i, count in enumerate(out)])


def _bounds(size: int, count: int) -> tuple[Any, Any]:
    """Where windows begin, and where they end, of int64."""
    places = np.arange(count, dtype=np.int64)
    return places * size // count, -(-(places + 1) * size // count)


def _adaptive_max(operator: str, self: Tensor, out: Ints) -> tuple[Tensor, Tensor]:
    spatial = len(out)
    # Without a batch, the channels count as one and may be missing.
    _check_input(operator, self, spatial, 1)
    leading = sizes_of(self)[: self.ndim - spatial]
    if min(out) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(out)}: {[*leading, *out]}"
        )
    sizes = sizes_of(self)[self.ndim - spatial :]
    window = _even_window(sizes, out)
    if 0 in leading:
        indices = F.zeros((*leading, *out), dtype=int64, device=self.device)
        return at_places(self, indices, spatial), indices
    if window is not None:
        return _max_of_tiles(self, window)
    check_memory(math.prod((*leading, *out)) * (self.dtype.itemsize + 8) + 32 * sum(out))
    indices = _greatest(self.detach(), sizes, out)
    return at_places(self, indices, spatial), indices


def _max_of_tiles(self: Tensor, window: Ints) -> tuple[Tensor, Tensor]:
    """Max pooling with windows side by side."""
    spatial = len(window)
    how = Pooling(window, window, (0,) * spatial, (1,) * spatial, False, True, None)
    if spatial == 3:
        return C.call_max_pool3d_with_indices_with(self, how)
    if spatial == 2:
        return C.call_max_pool2d_with_indices_with(self, how)
    how = Pooling((1, *window), (1, *window), (0, 0), (1, 1), False, True, None)
    found, where = C.call_max_pool2d_with_indices_with(self.unsqueeze(-2), how)
    return found.squeeze(-2), where.squeeze(-2)


def _greatest(x: Tensor, sizes: Ints, out: Ints) -> Tensor:
    """Where the greatest element of each window is, as an index into the flattened dimensions.

    Windows are laid side by side, each of the largest one's size.
    """
    if 0 in out:
        leading = sizes_of(x)[: x.ndim - len(sizes)]
        return F.zeros((*leading, *out), dtype=int64, device=x.device)
    window: list[int] = []
    places: Any = np.zeros((), np.int64)
    for i, size in enumerate(sizes):
        starts, ends = _bounds(size, out[i])
        window.append(int((ends - starts).max()))
        # Windows that are smaller read their last element again, which then is not the first.
        taps = np.minimum(starts[:, None] + np.arange(window[i]), ends[:, None] - 1).reshape(-1)
        x = x.index_select(x.ndim - len(sizes) + i, index_tensor(taps, x))
        places = places[..., None] * size + taps
    found = _max_of_tiles(x, tuple(window))[1]
    return F.take(index_tensor(places, x), found)
