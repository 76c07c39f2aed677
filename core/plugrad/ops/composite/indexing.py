"""Indexing by way of other indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import int64
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of
from plugrad.tensor.kernels import broadcast_shapes

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if indices.dtype is not int64:
        raise RuntimeError(
            f"take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return self.reshape((-1,)).gather(0, indices.reshape((-1,)))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    place = wrap_dim(dim, self.ndim)
    own = list(sizes_of(self))
    wanted = list(sizes_of(indices))
    if own:
        own[place] = sizes_of(indices)[place]
        indices = indices.expand(broadcast_shapes(tuple(own), sizes_of(indices)))
        wanted[place] = sizes_of(self)[place]
        self = self.expand(broadcast_shapes(sizes_of(self), tuple(wanted)))
    return self.gather(place, indices)


def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    if index.dtype is not int64:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if source.numel() != index.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    flat = self.reshape((-1,)).index_put([index.reshape((-1,))], source.reshape((-1,)), accumulate)
    return flat.reshape(sizes_of(self))


def nonzero_as_tuple(self: Tensor, as_tuple: bool) -> Any:
    if not as_tuple:
        return F.nonzero(self)
    if self.ndim == 0:
        self = self.reshape((1,))
    return F.nonzero(self).unbind(1)


def argwhere(self: Tensor) -> Tensor:
    positions: Tensor = F.nonzero(self)
    return positions
