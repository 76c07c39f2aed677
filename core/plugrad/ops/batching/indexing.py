"""Rules of operators that read and write elements by vectors of indices, and by masks."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from plugrad._generated import functions as F
from plugrad.dtype import bool_
from plugrad.ops.batching.dims import (
    aligned,
    cast,
    first_of,
    logical_rank,
    logical_sizes,
    padded,
    physical,
    spread,
    to_front,
)
from plugrad.ops.prepare import indexing as prepare
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def lined(front: Tensor, rank: int) -> Tensor:
    """With the batch's dimension in front: a number, which indexing treats as a vector of one, as
    such a vector."""
    return front if rank else F.unsqueeze(front, 1)


def _lined_spread(info: VmapInfo, tensor: Tensor, dim: int | None) -> Tensor:
    return lined(spread(tensor, dim, info.batch_size), logical_rank(tensor, dim))


def _for_each(index: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor:
    """One vector of indices for each element, [B, n], as `gather` and `scatter` take them: `sizes`
    are the sizes of the tensor that they read or write, with size n along `dim`."""
    shape = [1] * len(sizes)
    shape[0], shape[dim] = sizes_of(index)
    return F.expand(F.reshape(index, shape), sizes)


def gather(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor, sparse_grad: bool
) -> tuple[Any, Any]:
    place = physical(dim, logical_rank(self, dims[0]))
    found = F.gather(
        _lined_spread(info, self, dims[0]),
        place,
        _lined_spread(info, index, dims[2]),
        sparse_grad=sparse_grad,
    )
    return (found if logical_rank(index, dims[2]) else F.squeeze(found, 1)), 0


def _scattering(function: Callable[..., Any]) -> Rule:
    def rule(
        info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor, source: Any
    ) -> tuple[Any, Any]:
        rank = logical_rank(self, dims[0])
        source_is_tensor = hasattr(source, "ndim")
        written = function(
            _lined_spread(info, self, dims[0]),
            physical(dim, rank),
            _lined_spread(info, index, dims[2]),
            _lined_spread(info, source, dims[3]) if source_is_tensor else source,
        )
        return (written if rank else F.squeeze(written, 1)), 0

    return rule


def index_select(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor
) -> tuple[Any, Any]:
    rank = logical_rank(self, dims[0])
    place = physical(dim, rank)
    if dims[2] is None:
        found = F.index_select(lined(to_front(self, dims[0]), rank), place, index)
        return (found if rank else F.squeeze(found, 1)), 0
    prepare.index_select(first_of(self, dims[0]), dim, first_of(index, dims[2]))
    positions = lined(to_front(index, dims[2]), logical_rank(index, dims[2]))
    if dims[0] is None and rank:
        found = F.index_select(self, place - 1, F.flatten(positions))
        sizes = sizes_of(found)
        shape = (*sizes[: place - 1], *sizes_of(positions), *sizes[place:])
        return F.reshape(found, shape), place - 1
    source = _lined_spread(info, self, dims[0])
    wanted = list(sizes_of(source))
    wanted[place] = sizes_of(positions)[1]
    found = F.gather(source, place, _for_each(positions, place, tuple(wanted)))
    return (found if rank else F.squeeze(found, 1)), 0


def index_add(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any
) -> tuple[Any, Any]:
    rank = logical_rank(self, dims[0])
    place = physical(dim, rank)
    target = _lined_spread(info, self, dims[0])
    added = _lined_spread(info, source, dims[3])
    if dims[2] is None:
        written = F.index_add(target, place, index, added, alpha=alpha)
    else:
        prepare.index_add(
            first_of(self, dims[0]), dim, first_of(index, dims[2]), first_of(source, dims[3]), alpha
        )
        if alpha != 1:
            added = added * F.full((), alpha, dtype=source.dtype, device=source.device)
        positions = _lined_spread(info, index, dims[2])
        written = F.scatter_add(target, place, _for_each(positions, place, sizes_of(added)), added)
    return (written if rank else F.squeeze(written, 1)), 0


def index_copy(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor, source: Tensor
) -> tuple[Any, Any]:
    rank = logical_rank(self, dims[0])
    place = physical(dim, rank)
    target = _lined_spread(info, self, dims[0])
    copied = _lined_spread(info, source, dims[3])
    if dims[2] is None:
        written = F.index_copy(target, place, index, copied)
    else:
        prepare.index_copy(
            first_of(self, dims[0]), dim, first_of(index, dims[2]), first_of(source, dims[3])
        )
        positions = _lined_spread(info, index, dims[2])
        places = _for_each(positions, place, sizes_of(copied))
        written = F.scatter(target, place, places, copied)
    return (written if rank else F.squeeze(written, 1)), 0


def index_fill_scalar(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor, value: Any
) -> tuple[Any, Any]:
    rank = logical_rank(self, dims[0])
    place = physical(dim, rank)
    target = _lined_spread(info, self, dims[0])
    if dims[2] is None:
        written = F.index_fill(target, place, index, value)
    else:
        prepare.index_fill_scalar(first_of(self, dims[0]), dim, first_of(index, dims[2]), value)
        positions = _lined_spread(info, index, dims[2])
        length = sizes_of(target)[place]
        positions = F.where(positions < 0, positions + length, positions)
        wanted = list(sizes_of(target))
        wanted[place] = sizes_of(positions)[1]
        written = F.scatter(target, place, _for_each(positions, place, tuple(wanted)), value)
    return (written if rank else F.squeeze(written, 1)), 0


def index_fill(
    info: VmapInfo, dims: Dims, self: Tensor, dim: int, index: Tensor, value: Tensor
) -> tuple[Any, Any]:
    prepare.index_fill(
        first_of(self, dims[0]), dim, first_of(index, dims[2]), first_of(value, dims[3])
    )
    nowhere = F.zeros_like(spread(self, dims[0], info.batch_size), dtype=bool_)
    mask, _ = index_fill_scalar(info, (0, None, dims[2], None), nowhere, dim, index, True)
    filling = padded(cast(value, self.dtype), dims[3], logical_rank(self, dims[0]))
    return F.where(mask, filling, spread(self, dims[0], info.batch_size)), 0


def masked_fill_scalar(
    info: VmapInfo, dims: Dims, self: Tensor, mask: Tensor, value: Any
) -> tuple[Any, Any]:
    target, where = aligned((self, mask), dims[:2])
    return F.masked_fill(target, where, value), 0


def masked_fill(
    info: VmapInfo, dims: Dims, self: Tensor, mask: Tensor, value: Tensor
) -> tuple[Any, Any]:
    if dims[2] is None:
        return masked_fill_scalar(info, dims, self, mask, value)
    prepare.masked_fill(first_of(self, dims[0]), first_of(mask, dims[1]), first_of(value, dims[2]))
    target, where, filling = aligned((self, mask, cast(value, self.dtype)), dims)
    return F.where(where, filling, target), 0


def masked_select(info: VmapInfo, dims: Dims, self: Tensor, mask: Tensor) -> tuple[Any, Any]:
    if dims[1] is not None:
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in plugrad.masked_select(self, mask) We cannot "
            "support this because for each batch this would return a differently shaped Tensor."
        )
    prepare.masked_select(first_of(self, dims[0]), mask)
    shape = broadcast_shapes(logical_sizes(self, dims[0]), sizes_of(mask))
    source = F.expand(padded(self, dims[0], len(shape)), (info.batch_size, *shape))
    if not shape:
        source, mask = F.unsqueeze(source, 1), F.unsqueeze(mask, 0)
        shape = (1,)
    return F.index(source, [None, F.expand(mask, shape)]), 0


def masked_scatter(
    info: VmapInfo, dims: Dims, self: Tensor, mask: Tensor, source: Tensor
) -> tuple[Any, Any]:
    prepare.masked_scatter(
        first_of(self, dims[0]), first_of(mask, dims[1]), first_of(source, dims[2])
    )
    shape = broadcast_shapes(logical_sizes(self, dims[0]), logical_sizes(mask, dims[1]))
    whole = (info.batch_size, *shape)
    target = F.expand(padded(self, dims[0], len(shape)), whole)
    where = F.expand(padded(mask, dims[1], len(shape)), whole)
    given = F.flatten(_lined_spread(info, source, dims[2]), 1)
    if sizes_of(given)[1] == 0:  # sufficient if the masks are all False, which the operator checks
        return F.masked_scatter(target, where, F.reshape(given, (0,))), 0
    # Each masked place takes the next element of the source. If there are too few, the index is out
    # of range.
    flat = F.flatten(lined(where, len(shape)), 1)
    order = F.where(flat, F.cumsum(flat, 1) - 1, 0)
    taken = F.reshape(F.gather(given, 1, order), whole)
    return F.where(where, taken, target), 0


def take(info: VmapInfo, dims: Dims, self: Tensor, index: Tensor) -> tuple[Any, Any]:
    if dims[0] is None:
        return F.take(self, index), dims[1]
    prepare.take(first_of(self, dims[0]), first_of(index, dims[1]))
    flat = F.flatten(lined(to_front(self, dims[0]), logical_rank(self, dims[0])), 1)
    if dims[1] is None:
        return F.index(flat, [None, index]), 0
    positions = to_front(index, dims[1])
    rows = F.arange(info.batch_size, device=self.device)
    shape = (info.batch_size,) + (1,) * logical_rank(index, dims[1])
    return F.index(flat, [F.reshape(rows, shape), positions]), 0


def nonzero(info: VmapInfo, dims: Dims, self: Tensor) -> NoReturn:
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        "vmap over plugrad::nonzero."
    )


def argwhere(info: VmapInfo, dims: Dims, self: Tensor) -> tuple[Any, Any]:
    """One by one: RuntimeError unless all elements of the batch have as many."""
    return F.stack([F.argwhere(item) for item in F.unbind(self, dims[0])]), 0


def repeat_interleave(
    info: VmapInfo, dims: Dims, repeats: Tensor, output_size: int | None
) -> tuple[Any, Any]:
    """One by one: RuntimeError unless the sums are the same."""
    rows = [
        F.repeat_interleave(item, output_size=output_size) for item in F.unbind(repeats, dims[0])
    ]
    return F.stack(rows), 0


def one_hot(info: VmapInfo, dims: Dims, self: Tensor, num_classes: int) -> tuple[Any, Any]:
    if num_classes <= 0:
        raise RuntimeError(
            "When vmap-ing plugrad.nn.functional.one_hot, please provide an explicit positive "
            "num_classes argument."
        )
    return F.one_hot(self, num_classes), dims[0]


RULES: Final[dict[str, Rule]] = {
    "argwhere": argwhere,
    "gather": gather,
    "index_add": index_add,
    "index_copy": index_copy,
    "index_fill.int_Scalar": index_fill_scalar,
    "index_fill.int_Tensor": index_fill,
    "index_select": index_select,
    "masked_fill.Scalar": masked_fill_scalar,
    "masked_fill.Tensor": masked_fill,
    "masked_scatter": masked_scatter,
    "masked_select": masked_select,
    "nonzero": nonzero,
    "one_hot": one_hot,
    "repeat_interleave.Tensor": repeat_interleave,
    "scatter": _scattering(F.scatter),
    "scatter_add": _scattering(F.scatter_add),
    "take": take,
}
