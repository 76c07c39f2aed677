"""Gradients of operators that replace a part of a tensor: the replaced part gets zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import functions as F
from plugrad.tensor.aliasing.layout import storage_offset
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _nothing(part: TensorBase) -> Tensor:
    return F.zeros(sizes_of(part), dtype=part.dtype, device=part.device)


def select_scatter_self(grad: Tensor, dim: int, index: int) -> Tensor:
    return F.select_scatter(grad, _nothing(grad.detach().select(dim, index)), dim, index)


def slice_scatter_self(
    grad: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> Tensor:
    nothing = _nothing(F.slice(grad.detach(), dim, start, end, step))
    return F.slice_scatter(grad, nothing, dim, start, end, step)


def diagonal_scatter_self(grad: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    nothing = _nothing(grad.detach().diagonal(offset, dim1, dim2))
    return F.diagonal_scatter(grad, nothing, offset, dim1, dim2)


def as_strided_scatter_src(grad: Tensor, size: Sizes, stride: Sizes, offset: int) -> Tensor:
    """The array of the gradient's elements, which are in order but may not start at its
    beginning."""
    ordered = grad.contiguous()
    return ordered.as_strided(size, stride, storage_offset(ordered) + offset)


def as_strided_scatter_self(grad: Tensor, size: Sizes, stride: Sizes, offset: int) -> Tensor:
    nothing = F.zeros(size, dtype=grad.dtype, device=grad.device)
    return F._as_strided_scatter(grad.contiguous(), nothing, size, stride, offset)
