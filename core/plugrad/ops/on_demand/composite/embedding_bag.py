"""Embedding bags: look up the rows of a table and add the rows of each bag."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, float32, float64, int32, int64
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.selection.positions import check_device, host_index, index_tensor
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

SUM, MEAN, MAX = range(3)
Results = tuple[Any, Any, Any, Any]


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
) -> Results:
    return embedding_bag_padding_idx(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        None,
    )


def embedding_bag_padding_idx(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Results:
    _check(weight, indices, offsets, mode, per_sample_weights)
    rows, width = sizes_of(weight)
    padding = -1
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-rows} through "
                f"{rows - 1}, but got {padding_idx}"
            )
        padding = padding_idx % rows
    index: Any = F._to_copy(indices, int64)
    where = F._embedding_bag_places(index, F._to_copy(offsets, int64), rows, include_last_offset)
    count = sizes_of(offsets)[0]
    bags = count - include_last_offset
    # Rows without effect are put into an extra bag, which is cut off.
    bag = where if padding < 0 else F.where(index == padding, bags, where)
    ones = F.ones(sizes_of(index), dtype=int64, device=index.device)
    spare = F.zeros((bags + 1,), dtype=int64, device=index.device)
    sizes: Any = F.index_add(spare, 0, bag, ones).narrow(0, 0, bags)
    # Of the dtype that the indices have.
    whole = int32 if indices.dtype is int32 and offsets.dtype is int32 else int64
    if mode == MAX:
        chosen, found = _maxima(weight, index, bag, sizes)
        return found, F._to_copy(where, whole), F._to_copy(sizes, whole), F._to_copy(chosen, whole)
    looked_up = widened(F.embedding(weight, index, padding, scale_grad_by_freq))
    if per_sample_weights is not None:
        looked_up = looked_up * widened(per_sample_weights).unsqueeze(1)
    table = F.zeros((bags + 1, width), dtype=looked_up.dtype, device=weight.device)
    total: Any = F.index_add(table, 0, bag, looked_up).narrow(0, 0, bags)
    if mode == MEAN:
        divisor = F._to_copy(F.clamp(sizes, 1), total.dtype)
        total = total / divisor.unsqueeze(1)
        counted = F._to_copy(sizes, whole)
        return in_dtype_of(total, weight), F._to_copy(where, whole), counted, counted.clone()
    # PyTorch does not compute what sums do not need, and its fastest sums do not need the bags.
    nothing = F.zeros((bags,), dtype=whole, device=index.device)
    matrix: Any = weight
    factors: Any = per_sample_weights
    in_rows = matrix.stride(1) == 1 and (factors is None or factors.stride(0) == 1)
    if padding < 0 and weight.dtype is not float64 and in_rows:
        where = where.narrow(0, 0, 0)
    found = in_dtype_of(total.clone(), weight)
    return found, F._to_copy(where, whole), nothing, nothing.clone()


def embedding_bag_with_padding(
    weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any
) -> Results:
    *settings, padding_idx = rest
    # Whatever is not a row of the table names none.
    padding = padding_idx if 0 <= padding_idx < max(sizes_of(weight)[:1], default=0) else None
    settings_of: Any = (*settings, padding)
    return embedding_bag_padding_idx(weight, indices, offsets, *settings_of)


def embedding_bag_forward_only(
    weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any
) -> Results:
    scale, mode, sparse, weights, *others = rest
    weights = None if weights is None else weights.detach()
    return F._embedding_bag(
        weight.detach(), indices, offsets, scale, mode, sparse, weights, *others
    )


def _maxima(weight: Tensor, index: Any, bag: Any, sizes: Any) -> tuple[Any, Any]:
    """The row of the table that has the maximum of each bag, and the maxima.

    The elements of a column are sorted by bag, and within a bag the largest comes first; among
    equal ones the first in the bag.
    """
    bags, width = sizes_of(sizes)[0], sizes_of(weight)[1]
    if sizes_of(index)[0] == 0 or width == 0 or bags == 0:
        empty = F.zeros((bags, width), dtype=weight.dtype, device=weight.device)
        zeros = F.zeros((bags, width), dtype=int64, device=weight.device)
        return zeros, empty + 0 * weight.sum()
    values: Any = F.embedding(weight.detach(), index)
    order: Any = F.sort(values, stable=True, dim=0, descending=True)[1]
    by_bag = bag.index_select(0, order.reshape((-1,))).reshape(sizes_of(order))
    grouped = F.sort(by_bag, stable=True, dim=0)[1]
    places = order.gather(0, grouped)
    starts = F.clamp(F.cumsum(sizes, 0) - sizes, max=sizes_of(index)[0] - 1)
    first = places.index_select(0, starts)
    chosen = index.index_select(0, first.reshape((-1,))).reshape(sizes_of(first))
    is_empty = (sizes == 0).unsqueeze(1)
    found = F.masked_fill(weight.gather(0, chosen), is_empty, 0)
    return F.masked_fill(chosen, is_empty, 0), found


def _check(
    weight: TensorBase,
    indices: TensorBase,
    offsets: TensorBase,
    mode: int,
    per_sample_weights: TensorBase | None,
) -> None:
    for name, tensor in (("indices", indices), ("offsets", offsets)):
        check_device(tensor, weight)
        if tensor.ndim != 1:
            raise RuntimeError(
                f"embedding_bag: expected {name} to be 1-D, but got {tensor.ndim} dimensions"
            )
        _check_whole("embedding_bag", 1, tensor)
    if weight.ndim != 2:
        raise RuntimeError(
            f"embedding_bag: expected weight to be 2-D, but got {weight.ndim} dimensions"
        )
    if weight.dtype.category != FLOATING:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got plugrad.{weight.dtype.scalar_name}Tensor "
            "instead (while checking arguments for embedding_bag)"
        )
    if mode not in (SUM, MEAN, MAX):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if per_sample_weights is None:
        return
    if mode != SUM:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type plugrad.{weight.dtype.scalar_name}Tensor does not "
            f"equal plugrad.{per_sample_weights.dtype.scalar_name}Tensor (while checking arguments "
            "for embedding_bag)"
        )
    if sizes_of(per_sample_weights) != sizes_of(indices):
        raise RuntimeError(
            "embedding_bag: expected per_sample_weights to have the shape of indices, "
            f"{list(sizes_of(indices))}, but got {list(sizes_of(per_sample_weights))}"
        )


def _check_whole(name: str, place: int, tensor: TensorBase) -> None:
    if tensor.dtype is not int64 and tensor.dtype is not int32:
        raise RuntimeError(
            f"Expected tensor for argument #{place} 'indices' to have one of the following scalar "
            f"types: Long, Int; but got plugrad.{tensor.dtype.scalar_name}Tensor instead (while "
            f"checking arguments for {name})"
        )


def embedding_bag_places(
    indices: Tensor, offsets: Tensor, num_weights: int, include_last_offset: bool
) -> TensorBase:
    index, starts = host_index(indices), host_index(offsets)
    if include_last_offset and starts.size == 0:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts.size:
        if starts[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                f"from position 0. However, got {starts[0]}"
            )
        if starts[-1] > index.size:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {index.size} but got "
                f"offsets[-1] of {starts[-1]}"
            )
        if (starts[1:] < starts[:-1]).any():
            raise RuntimeError(
                f"embedding_bag: expected offsets that do not decrease, but got {starts.tolist()}"
            )
    outside = np.flatnonzero((index < 0) | (index >= num_weights))
    if outside.size:
        place = int(outside[0])
        raise RuntimeError(
            f"Index {place} of input takes value {index[place]} which is not in the valid range "
            f"[0, {num_weights})"
        )
    return index_tensor(np.searchsorted(starts, np.arange(index.size), "right") - 1, indices)


def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    _check_whole("embedding_renorm_", 2, indices)
    if self.dtype.category < FLOATING:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{self.dtype.scalar_name} instead."
        )
    used = F._to_copy(indices.reshape((-1,)), int64)
    rows = self.index_select(0, used)
    wide = F._to_copy(rows, float32) if self.dtype.itemsize == 2 else rows
    norms: Any = F.linalg_vector_norm(wide, norm_type, (1,), True)
    # The small number keeps a scaled row below the limit after rounding, as PyTorch does.
    scale = F.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
    return self.index_copy_(0, used, in_dtype_of(wide * scale, self))
