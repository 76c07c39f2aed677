"""Embedding, one-hot vectors and dropout, by reading rows, comparing and drawing."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import one_hot_classes
from plugrad.dtype import bool_, int64
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.random import truths
from plugrad.ops.composite.selection import positions
from plugrad.ops.composite.selection.positions import (
    host_index,
    index_tensor,
    mask_tensor,
    zero_like,
)
from plugrad.ops.prepare import nn as prepare
from plugrad.tensor.base import sizes_of
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    prepare.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    rows = weight.index_select(0, indices.reshape((-1,)))
    return rows.reshape((*sizes_of(indices), sizes_of(weight)[1]))


def embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    grad = widened(grad_output)
    width = sizes_of(grad)[-1]
    where = host_index(indices, grad_output).reshape(-1)
    rows = grad.reshape((where.size, width))
    if scale_grad_by_freq and where.size:
        counts = np.bincount(where, minlength=num_weights)[where].reshape((-1, 1))
        rows = rows / from_host(counts.astype(grad.dtype.numpy), grad.dtype, grad.device)
    nothing = F.zeros((num_weights, width), dtype=grad.dtype, device=grad.device)
    table = positions.add(nothing, positions.slices((num_weights, width), 0, where), rows)
    if padding_idx >= 0:
        padding = (np.arange(num_weights) == padding_idx).reshape((num_weights, 1))
        table = F.where(mask_tensor(padding, table), zero_like(table), table)
    return in_dtype_of(table, grad_output)


def one_hot(self: Tensor, num_classes: int) -> Tensor:
    prepare.one_hot(self, num_classes)
    values = host_index(self)
    if values.size:
        num_classes = one_hot_classes(int(values.min()), int(values.max()), num_classes)
    classes = index_tensor(np.arange(num_classes), self)
    return F._to_copy(self.unsqueeze(-1) == classes, int64)


def native_dropout(
    input: Tensor, p: float, train: bool | None, generator: Any
) -> tuple[Tensor, Tensor]:
    checked: tuple[Any, ...] = prepare.native_dropout(input, p, train, generator)
    sizes = sizes_of(input)
    if not checked[2]:
        return input.clone(), F.ones(sizes, dtype=bool_, device=input.device)
    kept = truths(sizes, 1 - p, generator, input.device)
    if p == 1:
        return F.zeros(sizes, dtype=input.dtype, device=input.device), kept
    return F.native_dropout_backward(input, kept, 1 / (1 - p)), kept
