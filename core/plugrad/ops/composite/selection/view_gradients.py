"""The gradients of views: each position takes an element of the view's gradient, or zero."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.ops.composite.selection import positions
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor, zero_like
from plugrad.ops.prepare import views as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.aliasing.strides import diagonal_run, summed_positions
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def select_backward(grad_output: Tensor, input_sizes: Sizes, dim: int, index: int) -> Tensor:
    dim = wrap_dim(dim, len(input_sizes))
    position = index % input_sizes[dim]
    return F.slice_backward(grad_output.unsqueeze(dim), input_sizes, dim, position, position + 1, 1)


def slice_backward(
    grad_output: Tensor, input_sizes: Sizes, dim: int, start: int | None, end: int | None, step: int
) -> Tensor:
    dim = wrap_dim(dim, len(input_sizes))
    prepare.check_step(step)
    length = input_sizes[dim]
    first, _ = prepare.slice_bounds(start, end, length)
    count = sizes_of(grad_output)[dim]
    if count == 0 or 0 in input_sizes:
        return F.zeros(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    origin, written = slice_origins(length, first, step, count)
    spread = grad_output.index_select(dim, index_tensor(origin, grad_output))
    mask = written.reshape((length,) + (1,) * (len(input_sizes) - dim - 1))
    return F.where(mask_tensor(mask, spread), spread, zero_like(spread))


def slice_origins(length: int, first: int, step: int, count: int) -> tuple[Any, Any]:
    """For each place of a dimension: which element of a slice it is, and whether it is one."""
    behind = np.arange(length) - first
    taken = behind // step
    written = (behind % step == 0) & (taken >= 0) & (taken < count)
    return np.clip(taken, 0, count - 1), written


def diagonal_backward(
    grad_output: Tensor, input_sizes: Sizes, offset: int, dim1: int, dim2: int
) -> Tensor:
    first, second = prepare.diagonal_dims(len(input_sizes), dim1, dim2)
    rows, columns = input_sizes[first], input_sizes[second]
    _, _, length = diagonal_run(rows, columns, offset)
    if length == 0 or 0 in input_sizes:
        return F.zeros(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    origin, written = diagonal_origins(rows, columns, offset)
    last = grad_output.ndim - 1
    spread = grad_output.index_select(last, index_tensor(origin.reshape(-1), grad_output))
    matrices = spread.view((*sizes_of(grad_output)[:last], rows, columns))
    placed = F.where(mask_tensor(written, matrices), matrices, zero_like(matrices))
    order = list(range(last))
    for place, dim in sorted(((first, last), (second, last + 1))):
        order.insert(place, dim)
    return placed.permute(order).contiguous()


def diagonal_origins(rows: int, columns: int, offset: int) -> tuple[Any, Any]:
    """For each place of a matrix: which of a diagonal's elements it is, and whether it is one."""
    i = np.arange(rows).reshape((rows, 1))
    j = np.arange(columns)
    written = j - i == offset
    return np.where(written, np.minimum(i, j), 0), written


def strided_sum(
    self: Tensor,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
    output_size: Sizes,
    output_stride: Sizes,
    output_offset: int,
) -> Tensor:
    written, asked, count = summed_positions(
        np, size, stride, storage_offset, output_size, output_stride, output_offset
    )
    memory = F.zeros((count,), dtype=self.dtype, device=self.device)
    return positions.read(positions.add(memory, written, self), asked)
