"""Copies in which a part was replaced: a copy, a view of it, a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import functions as F
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _put(part: Tensor, src: Tensor) -> None:
    if sizes_of(src) != sizes_of(part):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(sizes_of(src))}, slice size = {list(sizes_of(part))}"
        )
    part.copy_(src)


def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> TensorBase:
    result = self.clone()
    _put(result.select(dim, index), src)
    return result


def slice_scatter(
    self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> TensorBase:
    result = self.clone()
    _put(F.slice(result, dim, start, end, step), src)
    return result


def diagonal_scatter(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> TensorBase:
    result = self.clone()
    _put(result.diagonal(offset, dim1, dim2), src)
    return result
