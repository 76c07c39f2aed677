"""Rules of `x[indices]` and `x[indices] = values` with index tensors.

    mapped         indices that the operator is called with          result
    x              [None, i, j]                                      B in front or behind them
    i or j         [i, j], each [B, ...]                             B before the indices
    x, and i or j  [arange(B), i, j]                                 B in front

Indices that are neighbours have their dimensions where the first of them was, others have them in
front of all. What `arange` does to that is undone by a permutation.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dtype import bool_, uint8
from plugrad.ops.batching.dims import first_of, logical_rank, moved, padded, spread, to_front
from plugrad.ops.prepare import indexing as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _is_mask(index: Tensor) -> bool:
    return index.dtype is bool_ or index.dtype is uint8


@dataclass(frozen=True)
class _Layout:
    """Where the result has the dimensions of the indices.

    Attributes:
        rank: how many they have when they are broadcast, without the batch's.
        first: the dimension of the first index.
        neighbours: whether no whole dimension is between two of them.
        rest: how many whole dimensions there are.
    """

    rank: int
    first: int
    neighbours: bool
    rest: int


def _layout(self_rank: int, indices: list[Any], dims: list[Any]) -> _Layout:
    rank = 0
    taken = 0
    given = [place for place, index in enumerate(indices) if index is not None]
    for place in given:
        index, dim = indices[place], dims[place]
        mask = _is_mask(index)
        rank = max(rank, 1 if mask else logical_rank(index, dim))
        taken += index.ndim if mask else 1
    neighbours = given[-1] - given[0] + 1 == len(given)
    return _Layout(rank, given[0], neighbours, self_rank - taken)


def _without_masks(
    self: Tensor, front: int, indices: list[Any], dims: list[Any]
) -> tuple[Tensor, list[Any], list[Any]]:
    """The same with the positions that masks hold in place of these, `front` dimensions of the
    tensor being before those that are indexed."""
    found: list[Any] = []
    places: list[Any] = []
    for index, dim in zip(indices, dims, strict=True):
        if index is None or not _is_mask(index):
            found.append(index)
            places.append(dim)
            continue
        if index.ndim == 0:
            # It chooses the one element, or none, of a dimension of its own.
            self = F.unsqueeze(self, front + len(found))
            index = F.unsqueeze(index, 0)
        columns = F.unbind(F.nonzero(index), 1)
        found.extend(columns)
        places.extend([None] * len(columns))
    return self, found, places


def _checked(info: VmapInfo, self: Tensor, dim: Any, indices: list[Any], dims: list[Any]) -> None:
    """Raise what the operator would for one element."""
    for index, place in zip(indices, dims, strict=True):
        if place is not None and _is_mask(index):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask."
            )
    prepare.check_indices(
        first_of(self, dim),
        [first_of(index, place) for index, place in zip(indices, dims, strict=True)],
    )


def _rows(info: VmapInfo, like: Tensor, rank: int) -> Tensor:
    """Which element of the batch an index is for, [B, 1, ..., 1]."""
    rows = F.arange(info.batch_size, device=like.device)
    return F.reshape(rows, (info.batch_size,) + (1,) * rank)


def _for_each(indices: list[Any], dims: list[Any], rank: int) -> list[Any]:
    return [
        None if index is None else padded(index, dim, rank)
        for index, dim in zip(indices, dims, strict=True)
    ]


def index(info: VmapInfo, in_dims: Dims, self: Tensor, indices: list[Any]) -> tuple[Any, Any]:
    dims = in_dims[1] or [None] * len(indices)
    _checked(info, self, in_dims[0], indices, dims)
    source = to_front(self, in_dims[0])
    if all(dim is None for dim in dims):
        layout = _layout(logical_rank(self, in_dims[0]), indices, dims)
        return F.index(source, [None, *indices]), 0 if layout.neighbours else layout.rank
    front = 0 if in_dims[0] is None else 1
    source, indices, dims = _without_masks(source, front, indices, dims)
    layout = _layout(source.ndim - front, indices, dims)
    chosen = _for_each(indices, dims, layout.rank)
    if in_dims[0] is None:
        return F.index(source, chosen), layout.first if layout.neighbours else 0
    found = F.index(source, [_rows(info, self, layout.rank), *chosen])
    if layout.neighbours and layout.first:
        # From (B, indices, before, behind).
        behind = 1 + layout.rank
        order = [0, *range(behind, behind + layout.first), *range(1, behind)]
        order += range(behind + layout.first, found.ndim)
        found = F.permute(found, order)
    return found, 0


def index_put(
    info: VmapInfo,
    in_dims: Dims,
    self: Tensor,
    indices: list[Any],
    values: Tensor,
    accumulate: bool,
) -> tuple[Any, Any]:
    dims = in_dims[1] or [None] * len(indices)
    _checked(info, self, in_dims[0], indices, dims)
    sizes = sizes_of(spread(self, in_dims[0], info.batch_size))
    target = spread(self, in_dims[0], info.batch_size)
    mapped = any(dim is not None for dim in dims)
    if mapped:
        target, indices, dims = _without_masks(target, 1, indices, dims)
    layout = _layout(target.ndim - 1, indices, dims)
    written = padded(values, in_dims[2], layout.rank + layout.rest)
    if in_dims[2] is None:
        written = padded(F.unsqueeze(written, 0), 0, layout.rank + layout.rest)
    if not mapped:
        if not layout.neighbours:
            written = moved(written, 0, layout.rank)
        chosen = [None, *indices]
    else:
        chosen = [_rows(info, self, layout.rank), *_for_each(indices, dims, layout.rank)]
        if layout.neighbours and layout.first and written.ndim == 1 + layout.rank + layout.rest:
            # To (B, indices, before, behind).
            behind = 1 + layout.first + layout.rank
            order = [0, *range(1 + layout.first, behind), *range(1, 1 + layout.first)]
            order += range(behind, written.ndim)
            written = F.permute(written, order)
    return F.reshape(F.index_put(target, chosen, written, accumulate), sizes), 0


RULES: Final[dict[str, Rule]] = {"index.Tensor": index, "index_put": index_put}
