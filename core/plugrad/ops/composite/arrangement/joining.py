"""Joining tensors, and giving them dimensions to be joined along."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor
from plugrad.ops.prepare import shape as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def cat(tensors: list[Tensor], dim: int) -> Tensor:
    return F.cat(tensors, dim)


def cat_in_pairs(tensors: list[TensorBase], dim: int) -> Tensor:
    """For backends that cannot join: neighbours become one, until there is but one."""
    checked: tuple[Any, ...] = prepare.cat(tensors, dim)
    parts: list[Tensor] = checked[0]
    place: int = checked[1]
    if len(parts) == 1:
        return parts[0].clone()
    while len(parts) > 1:
        joined = [_joined(parts[i], parts[i + 1], place) for i in range(0, len(parts) - 1, 2)]
        if len(parts) % 2 == 1:
            joined.append(parts[-1])
        parts = joined
    return parts[0]


def _joined(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """Each place of the result takes an element of both, and keeps one of them."""
    left, right = sizes_of(a)[dim], sizes_of(b)[dim]
    if left == 0 or right == 0:
        return b if left == 0 else a
    place = np.arange(left + right)
    first = a.index_select(dim, index_tensor(np.minimum(place, left - 1), a))
    second = b.index_select(dim, index_tensor(np.maximum(place - left, 0), b))
    mask = (place < left).reshape((left + right,) + (1,) * (a.ndim - dim - 1))
    return F.where(mask_tensor(mask, first), first, second)


def stack(tensors: list[Tensor], dim: int) -> Tensor:
    prepare.check_stack([*tensors])
    place = wrap_dim(dim, tensors[0].ndim + 1)
    return F.cat([tensor.unsqueeze(place) for tensor in tensors], place)


def hstack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    rows = [F.atleast_1d(tensor) for tensor in tensors]
    return F.cat(rows, 0 if rows[0].ndim == 1 else 1)


def vstack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return F.cat([F.atleast_2d(tensor) for tensor in tensors], 0)


def dstack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return F.cat([F.atleast_3d(tensor) for tensor in tensors], 2)


def column_stack(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    columns = [t.reshape((t.numel(), 1)) if t.ndim < 2 else t for t in tensors]
    return hstack(columns)


def atleast_1d(self: Tensor) -> Tensor:
    return self.reshape((1,)) if self.ndim == 0 else self


def atleast_2d(self: Tensor) -> Tensor:
    if self.ndim >= 2:
        return self
    return self.reshape((1, 1)) if self.ndim == 0 else self.unsqueeze(0)


def atleast_3d(self: Tensor) -> Tensor:
    ndim = self.ndim
    if ndim >= 3:
        return self
    if ndim == 0:
        return self.reshape((1, 1, 1))
    return self.unsqueeze(0).unsqueeze(-1) if ndim == 1 else self.unsqueeze(-1)


def atleast_1d_each(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple([atleast_1d(tensor) for tensor in tensors])


def atleast_2d_each(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple([atleast_2d(tensor) for tensor in tensors])


def atleast_3d_each(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple([atleast_3d(tensor) for tensor in tensors])


def meshgrid(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor.device is not tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError(
                "meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of shape "
                f"{list(sizes_of(tensor))}"
            )
    shape = tuple([tensor.numel() for tensor in tensors])
    grids: list[Tensor] = []
    for place, tensor in enumerate(tensors):
        column = (1,) * place + (tensor.numel(),) + (1,) * (len(tensors) - place - 1)
        grids.append(tensor.reshape(column).expand(shape))
    return tuple(grids)


def meshgrid_indexing(tensors: list[Tensor], indexing: str) -> tuple[Tensor, ...]:
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    if indexing == "ij" or len(tensors) < 2:
        return meshgrid(tensors)
    grids = meshgrid([tensors[1], tensors[0], *tensors[2:]])
    return (grids[1], grids[0], *grids[2:])
