"""Batching rules of operators that join, repeat and rearrange elements."""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad.ops.batching.dims import (
    first_of,
    for_one,
    logical_rank,
    logical_sizes,
    moved,
    padded,
    physical,
    physical_dims,
    spread,
)
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.ops.prepare.shape import is_skipped
from plugrad.ops.prepare.views import diagonal_dims

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Rule = Callable[..., tuple[Any, Any]]
Dims = tuple[Any, ...]
Sizes = tuple[int, ...]


def cat(info: Any, in_dims: Dims, tensors: Sequence[Tensor], dim: int) -> tuple[Any, Any]:
    dims = in_dims[0]
    shapes = [logical_sizes(tensor, place) for tensor, place in zip(tensors, dims, strict=True)]
    whole = [index for index, shape in enumerate(shapes) if not is_skipped(shape)]
    chosen = whole[0] if whole else 0
    rank = len(shapes[chosen])
    if rank == 0 or len({len(shapes[index]) for index in whole}) > 1:
        C.call_cat(list(map(first_of, tensors, dims)), dim)
    place = physical(dim, rank)
    fronts: list[Any] = [
        spread(tensor, at, info.batch_size) for tensor, at in zip(tensors, dims, strict=True)
    ]
    # A tensor that matters only for its dtype has no elements and any rank.
    for index, tensor in enumerate(fronts):
        if index not in whole and tensor.ndim != rank + 1:
            empty = C.call_slice_Tensor(fronts[chosen], place, 0, 0, 1)
            fronts[index] = C.call__to_copy(empty, tensor.dtype, None)
    return C.call_cat(fronts, place), 0


def stack(info: Any, in_dims: Dims, tensors: Sequence[Tensor], dim: int) -> tuple[Any, Any]:
    dims = in_dims[0]
    ranks = {logical_rank(tensor, at) for tensor, at in zip(tensors, dims, strict=True)}
    if len(ranks) > 1:
        C.call_stack(list(map(first_of, tensors, dims)), dim)
    fronts: list[Any] = [
        spread(tensor, at, info.batch_size) for tensor, at in zip(tensors, dims, strict=True)
    ]
    return C.call_stack(fronts, physical(dim, ranks.pop() + 1)), 0


def flip(info: Any, in_dims: Dims, self: Tensor, dims: Sizes) -> tuple[Any, Any]:
    rank = logical_rank(self, in_dims[0])
    front = moved(self, in_dims[0], 0)
    if rank == 0:
        for dim in dims:
            wrap_dim(dim, 0)
        return C.call_clone(front, None), 0
    return C.call_flip(front, physical_dims(dims, rank)), 0


def roll(info: Any, in_dims: Dims, self: Tensor, shifts: Sizes, dims: Sizes) -> tuple[Any, Any]:
    front = moved(self, in_dims[0], 0)
    sizes = logical_sizes(self, in_dims[0])
    if not sizes:
        for_one(C.call_roll, (in_dims[0], None, None), (self, shifts, dims))
        return C.call_clone(front, None), 0
    if dims or len(shifts) != 1:
        return C.call_roll(front, shifts, physical_dims(dims, len(sizes))), 0
    flat = C.call_reshape(front, (info.batch_size, math.prod(sizes)))
    return C.call_view(C.call_roll(flat, shifts, (1,)), (info.batch_size, *sizes)), 0


def repeat(info: Any, in_dims: Dims, self: Tensor, repeats: Sizes) -> tuple[Any, Any]:
    if len(repeats) < logical_rank(self, in_dims[0]):
        for_one(C.call_repeat, (in_dims[0], None), (self, repeats))
    return C.call_repeat(padded(self, in_dims[0], len(repeats)), (1, *repeats)), 0


def _triangle(call: Callable[..., Any]) -> Rule:
    def rule(info: Any, in_dims: Dims, self: Tensor, diagonal: int) -> tuple[Any, Any]:
        if logical_rank(self, in_dims[0]) < 2:
            for_one(call, in_dims, (self, diagonal))
        return call(moved(self, in_dims[0], 0), diagonal), 0

    return rule


def diag_embed(
    info: Any, in_dims: Dims, self: Tensor, offset: int, dim1: int, dim2: int
) -> tuple[Any, Any]:
    first, second = diagonal_dims(logical_rank(self, in_dims[0]) + 1, dim1, dim2)
    return C.call_diag_embed(moved(self, in_dims[0], 0), offset, first + 1, second + 1), 0


RULES: Final[dict[str, Rule]] = {
    "cat": cat,
    "diag_embed": diag_embed,
    "flip": flip,
    "repeat": repeat,
    "roll": roll,
    "stack": stack,
    "tril": _triangle(C.call_tril),
    "triu": _triangle(C.call_triu),
}
