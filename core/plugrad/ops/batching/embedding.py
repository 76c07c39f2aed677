"""Rules of embedding and its gradient."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dtype import int64
from plugrad.ops.batching.dims import cast, first_of, moved, spread, to_front
from plugrad.ops.prepare import nn as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def embedding(
    info: VmapInfo,
    dims: Dims,
    weight: Tensor,
    indices: Tensor,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> tuple[Any, Any]:
    how = (padding_idx, scale_grad_by_freq, sparse)
    if dims[0] is None:
        return F.embedding(weight, indices, *how), dims[1]
    prepare.embedding(first_of(weight, dims[0]), first_of(indices, dims[1]), *how)
    tables = to_front(weight, dims[0])
    width = sizes_of(tables)[2]
    if dims[1] is None:
        rows = F.index_select(tables, 1, F.reshape(indices, (-1,)))
        return F.reshape(rows, (info.batch_size, *sizes_of(indices), width)), 0
    front = to_front(indices, dims[1])
    flat = F.reshape(front, (info.batch_size, math.prod(sizes_of(front)[1:]), 1))
    rows = F.gather(tables, 1, F.expand(flat, (*sizes_of(flat)[:2], width)))
    return F.reshape(rows, (*sizes_of(front), width)), 0


def embedding_dense_backward(
    info: VmapInfo,
    dims: Dims,
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> tuple[Any, Any]:
    size = info.batch_size
    if dims[1] is None:
        # One table; its rows are the joined rows of all elements of the batch.
        side_by_side = moved(grad_output, dims[0], -2)
        sizes = sizes_of(side_by_side)
        rows = F.reshape(side_by_side, (*sizes[:-2], size * sizes[-1]))
        found = F.embedding_dense_backward(
            rows, indices, num_weights, padding_idx, scale_grad_by_freq
        )
        return F.reshape(found, (num_weights, size, sizes[-1])), 1
    # One table; the rows of the batch's elements are stacked.
    grad = spread(grad_output, dims[0], size)
    front = cast(to_front(indices, dims[1]), int64)
    shape = (size,) + (1,) * (front.ndim - 1)
    starts = F.reshape(F.arange(0, size * num_weights, num_weights, device=front.device), shape)
    found = F.embedding_dense_backward(
        grad, front + starts, size * num_weights, -1, scale_grad_by_freq
    )
    tables = F.reshape(found, (size, num_weights, sizes_of(grad)[-1]))
    if padding_idx >= 0:
        padding = F.arange(num_weights, device=front.device) == padding_idx
        tables = F.masked_fill(tables, F.unsqueeze(padding, 1), 0)
    return tables, 0


RULES: Final[dict[str, Rule]] = {
    "embedding": embedding,
    "embedding_dense_backward": embedding_dense_backward,
}
