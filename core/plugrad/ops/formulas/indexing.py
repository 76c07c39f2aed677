"""Gradients of indexing: the gradient of a read adds up, the gradient of a write is read back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _zeros(grad: Tensor, sizes: Sizes) -> Tensor:
    return F.zeros(sizes, dtype=grad.dtype, device=grad.device)


def gather_backward(grad: Tensor, sizes: Sizes, dim: int, index: Tensor) -> Tensor:
    return _zeros(grad, sizes).scatter_add(dim, index, grad)


def gather_like(grad: Tensor, sizes: Sizes, dim: int, index: Tensor) -> Tensor:
    """The gradient of a `src`; `index` may cover only a corner of it."""
    read = grad.gather(dim, index)
    shape = sizes_of(index)
    if shape == sizes:
        return read
    for place, size in enumerate(sizes):
        if shape[place] != size:
            grown = (*sizes_of(read)[:place], size, *sizes_of(read)[place + 1 :])
            read = F.slice_backward(read, grown, place, 0, shape[place], 1)
    return read


def index_select_backward(grad: Tensor, sizes: Sizes, dim: int, index: Tensor) -> Tensor:
    return _zeros(grad, sizes).index_add(dim, index, grad)


def _selected(grad: Tensor, sizes: Sizes, dim: int, index: Tensor) -> Tensor:
    place = wrap_dim(dim, grad.ndim)
    return grad.index_select(place, index).reshape(sizes)


def index_add_source_backward(
    grad: Tensor, sizes: Sizes, dim: int, index: Tensor, alpha: Any
) -> Tensor:
    selected = _selected(grad, sizes, dim, index)
    if alpha == 1:
        return selected
    scaled: Tensor = selected * alpha
    return scaled


def index_copy_source_backward(grad: Tensor, sizes: Sizes, dim: int, index: Tensor) -> Tensor:
    return _selected(grad, sizes, dim, index)


def index_fill_value_backward(grad: Tensor, dim: int, index: Tensor) -> Tensor:
    """The sum over the slices that were filled; a slice that was filled twice counts once."""
    filled = F.ones_like(grad).index_fill(dim, index, 0)
    total: Tensor = F.where(filled == 0, grad, 0).sum()
    return total


def index_backward(grad: Tensor, sizes: Sizes, indices: list[Any]) -> Tensor:
    return _zeros(grad, sizes).index_put(indices, grad, True)


def index_put_self_backward(grad: Tensor, indices: list[Any], accumulate: bool) -> Tensor:
    if accumulate:
        return grad
    zero = F.zeros((), dtype=grad.dtype, device=grad.device)
    return grad.index_put(indices, zero, False)


def masked_select_backward(grad: Tensor, sizes: Sizes, mask: Tensor) -> Tensor:
    shape = broadcast_shapes(sizes, sizes_of(mask))
    return _zeros(grad, shape).masked_scatter(mask, grad)


def masked_scatter_source_backward(grad: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """The elements that were used, followed by zeros for those that were not. The others go to a
    place behind them: no shape depends on what the mask holds."""
    count = math.prod(sizes)
    shape = broadcast_shapes(sizes_of(grad), sizes_of(mask))
    holds = mask.expand(shape).reshape((-1,))
    places = F.where(holds, F.cumsum(holds, 0) - 1, count)
    used = _zeros(grad, (count + 1,)).index_add(0, places, grad.expand(shape).reshape((-1,)))
    return F.slice(used, 0, 0, count, 1).reshape(sizes)


def take_backward(grad: Tensor, sizes: Sizes, index: Tensor) -> Tensor:
    count = 1
    for size in sizes:
        count *= size
    flat = _zeros(grad, (count,))
    return flat.index_put([index], grad, True).reshape(sizes)
