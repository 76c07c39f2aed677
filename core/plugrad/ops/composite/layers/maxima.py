"""The maxima of windows, and their positions."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, int64
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def greatest_taps(taps: Tensor, dim: int, least: Any = None) -> tuple[Tensor, Tensor]:
    """The greatest elements along a dimension, and a mask that is true for exactly one position of
    each: the first of equal ones, and the last nan, as in PyTorch's pooling.

    Args:
        least: the first number that may be chosen, an array for `taps` without the dimension.
    """
    count = sizes_of(taps)[dim]
    trailing = (1,) * (taps.ndim - dim - 1)
    best = taps.amax(dim=(dim,), keepdim=True)
    # Counted down, the first of equal taps is the greatest; windows with nan point at the last one.
    numbers = np.arange(count, 0, -1).reshape((count, *trailing))
    nothing = F.zeros((), dtype=int64, device=taps.device)
    first = count - F.where(taps == best, index_tensor(numbers, taps), nothing).amax(dim=(dim,))
    if least is not None:
        first = F.maximum(first, index_tensor(least, taps))
    if taps.dtype.category >= FLOATING:
        upward = index_tensor(np.arange(1, count + 1).reshape((count, *trailing)), taps)
        last = F.where(taps != taps, upward, nothing).amax(dim=(dim,))
        first = F.where(last > 0, last - 1, first)
    each = index_tensor(np.arange(count).reshape((count, *trailing)), taps)
    return best.squeeze(dim), first.unsqueeze(dim) == each


def chosen_places(chosen: Tensor, places: TensorBase, dim: int) -> Tensor:
    """The place of the one tap along a dimension that a mask is true for; `places` broadcast."""
    nothing = F.zeros((), dtype=int64, device=places.device)
    return F.where(chosen, places, nothing).sum(dim=(dim,), dtype=int64)


def at_places(x: Tensor, indices: Tensor, spatial: int) -> Tensor:
    """The elements of signals, images or volumes at indices into the flattened ones."""
    sizes, wanted = sizes_of(x), sizes_of(indices)
    leading = len(sizes) - spatial
    flat = x.reshape((*sizes[:leading], math.prod(sizes[leading:])))
    rows = indices.reshape((*wanted[:leading], math.prod(wanted[leading:])))
    return temporary_in_shape(flat.gather(-1, rows), wanted)
