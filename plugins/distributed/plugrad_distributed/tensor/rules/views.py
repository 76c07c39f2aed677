"""Views and other changes of shape: the new position of each dimension determines the placement of
the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard, local_part
from plugrad_distributed.tensor.rules.random import laid_out
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, alike

__all__ = ["RULES"]

PENDING = (Partial("sum"), Partial("avg"), Partial("max"), Partial("min"), Partial("product"))


def _mapped(where: Callable[..., Sequence[tuple[int, int]]], lists: bool = False) -> Any:
    """A rule from `where`, which returns pairs: a dimension of `self`, and its dimension in the
    result."""

    def choices(self: DTensorSpec, *rest: Any) -> list[Choice]:
        none = [None] * len(rest)
        found: list[Choice] = [
            ([Shard(after)], [Shard(before), *none]) for before, after in where(self, *rest)
        ]
        found.extend(([one], [one, *none]) for one in PENDING)
        return found

    return choices


def _same(self: DTensorSpec, *rest: Any) -> Sequence[tuple[int, int]]:
    return [(dim, dim) for dim in range(self.ndim)]


def _permuted(self: DTensorSpec, dims: Sequence[int]) -> Sequence[tuple[int, int]]:
    return [(dim % self.ndim, place) for place, dim in enumerate(dims)]


def _transposed(self: DTensorSpec, dim0: int = 0, dim1: int = 1) -> Sequence[tuple[int, int]]:
    order = list(range(self.ndim))
    if self.ndim > 1:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permuted(self, order)


def _unsqueezed(self: DTensorSpec, dim: int) -> Sequence[tuple[int, int]]:
    dim %= self.ndim + 1
    return [(one, one + (one >= dim)) for one in range(self.ndim)]


def _dropped(self: DTensorSpec, dim: Any = None) -> tuple[int, ...]:
    """The dimensions that `squeeze` removes."""
    given = range(self.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    if self.ndim == 0:
        return ()
    return tuple(sorted({one % self.ndim for one in given if self.shape[one] == 1}))


def _squeezed(self: DTensorSpec, dim: Any = None) -> Sequence[tuple[int, int]]:
    dropped = _dropped(self, dim)
    kept = [one for one in range(self.ndim) if one not in dropped]
    return [(one, place) for place, one in enumerate(kept)]


def _squeeze(call: Any, args: list[Any]) -> Any:
    # A part may have the length 1 where the whole has more.
    return args[0].squeeze(_dropped(*call.args))


def _selected(self: DTensorSpec, dim: int = 0, *rest: Any) -> Sequence[tuple[int, int]]:
    dim %= max(self.ndim, 1)
    return [(one, one - (one > dim)) for one in range(self.ndim) if one != dim]


def _sliced(
    self: DTensorSpec, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Sequence[tuple[int, int]]:
    dim %= max(self.ndim, 1)
    return [(one, one) for one in range(self.ndim) if one != dim or _is_all(self, dim, start, end)]


def _is_all(self: DTensorSpec, dim: int, start: Any, end: Any) -> bool:
    return (start or 0) == 0 and (end is None or end >= self.shape[dim])


def _slice(call: Any, args: list[Any]) -> Any:
    spec, dim, start, end, step = call.args
    if step == 1 and _is_all(spec, dim % max(spec.ndim, 1), start, end):
        return plugrad.ops.plugrad.alias(args[0])
    return call.op.call(tuple(args))


def _cut(self: DTensorSpec, sizes: Any, dim: int = 0) -> Sequence[tuple[int, int]]:
    return [(one, one) for one in range(self.ndim) if one != dim % max(self.ndim, 1)]


def _expanded(self: DTensorSpec, size: Sequence[int], *rest: Any) -> Sequence[tuple[int, int]]:
    new = len(size) - self.ndim
    return [
        (one, one + new) for one in range(self.ndim) if size[one + new] in (-1, self.shape[one])
    ]


def _result_size(call: Any) -> tuple[int, ...]:
    """The shape of this rank's part of the result."""
    return local_part(call.plan.shapes[0], call.mesh, call.plan.outputs[0])[0]


def _expand(call: Any, args: list[Any]) -> Any:
    return call.op.call((args[0], _result_size(call), *args[2:]))


def _reshaped(self: DTensorSpec, size: Sequence[int]) -> Sequence[tuple[int, int]]:
    """`view` splits and merges dimensions in runs with equal numbers of elements. A run can be
    sharded along its first dimension longer than 1, if both sides are divided evenly."""
    sizes = _without_unknown(self, size)
    if 0 in self.shape:
        return []
    found: list[tuple[int, int]] = []
    for before, after in _runs(self.shape, sizes):
        if not before or not after:
            continue
        first, place = before[0], after[0]
        alike = len(before) == len(after) == 1
        count = self.mesh.size()
        if alike or (self.shape[first] % count == 0 and sizes[place] % count == 0):
            found.append((first, place))
    return found


def _without_unknown(self: DTensorSpec, size: Sequence[int]) -> list[int]:
    known = math.prod(one for one in size if one != -1)
    return [self.numel() // max(known, 1) if one == -1 else one for one in size]


def _runs(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of both shapes in runs with equal numbers of elements, without those of length
    1."""
    found: list[tuple[list[int], list[int]]] = []
    left = [dim for dim, size in enumerate(before) if size != 1]
    right = [dim for dim, size in enumerate(after) if size != 1]
    while left or right:
        ours, theirs = [left.pop(0)], [right.pop(0)]
        here, there = before[ours[0]], after[theirs[0]]
        while here != there:
            if here < there:
                ours.append(left.pop(0))
                here *= before[ours[-1]]
            else:
                theirs.append(right.pop(0))
                there *= after[theirs[-1]]
        found.append((ours, theirs))
    return found


def _view(call: Any, args: list[Any]) -> Any:
    size = _result_size(call)
    try:
        return call.op.call((args[0], size))
    except RuntimeError:
        # The parts have another memory order than the whole would.
        call.moved = True
        return args[0].reshape(size)


def _laid_out(call: Any, args: list[Any]) -> Any:
    """Operators that depend on memory order get the whole in the order of one process."""
    whole = laid_out(args[0], call.args[0])
    call.moved = whole is not args[0]
    return call.op.call((whole, *args[1:]))


def _windows(self: DTensorSpec, dimension: int, *rest: Any) -> Sequence[tuple[int, int]]:
    return [(one, one) for one in range(self.ndim) if one != dimension % max(self.ndim, 1)]


def _joined(tensors: Sequence[DTensorSpec], dim: int = 0) -> list[Choice]:
    ndim = max(spec.ndim for spec in tensors)
    found: list[Choice] = []
    if all(spec.ndim == ndim for spec in tensors):
        for one in range(ndim):
            if one != dim % max(ndim, 1):
                found += [([Shard(one)], [[Shard(one)] * len(tensors), None])]
    found.extend(([one], [[one] * len(tensors), None]) for one in PENDING)
    return found


def _stacked(tensors: Sequence[DTensorSpec], dim: int = 0) -> list[Choice]:
    ndim = tensors[0].ndim
    dim %= ndim + 1
    found: list[Choice] = [
        ([Shard(one + (one >= dim))], [[Shard(one)] * len(tensors), None]) for one in range(ndim)
    ]
    found.extend(([one], [[one] * len(tensors), None]) for one in PENDING)
    return found


def _unslice_dims(grad: DTensorSpec, size: Sequence[int], dim: int, *rest: Any) -> list[Choice]:
    none = [None] * (len(rest) + 2)
    dim %= len(size)
    removed = len(size) - grad.ndim
    found: list[Choice] = []
    for one in range(grad.ndim):
        place = one + (removed and one >= dim)
        if place != dim or removed:
            found.append(([Shard(int(place))], [Shard(one), *none]))
    found.extend(([one], [one, *none]) for one in PENDING[:2])
    return found


def _unslice(call: Any, args: list[Any]) -> Any:
    return call.op.call((args[0], _result_size(call), *args[2:]))


def _without(self: DTensorSpec, offset: int, dim1: int, dim2: int) -> Sequence[tuple[int, int]]:
    """The dimensions that `diagonal` does not change."""
    taken = (dim1 % self.ndim, dim2 % self.ndim)
    kept = [one for one in range(self.ndim) if one not in taken]
    return [(one, place) for place, one in enumerate(kept)]


def _batches(self: DTensorSpec, *rest: Any) -> Sequence[tuple[int, int]]:
    return [(dim, dim) for dim in range(self.ndim - 2)]


def _untouched(self: DTensorSpec, first: Any, dims: Any = None) -> Sequence[tuple[int, int]]:
    """The dimensions that `roll` does not change."""
    given = dims if isinstance(dims, (list, tuple)) else [dims]
    if not given:
        return []
    return [(one, one) for one in range(self.ndim) if one not in [d % self.ndim for d in given]]


def _alike(*args: Any) -> list[Choice]:
    """`zeros_like` and similar operators: the result has its model's placement; the model's
    elements do not matter."""
    none: list[Placement | None] = [None] * (len(args) - 1)
    found: list[Choice] = [([Shard(dim)], [Shard(dim), *none]) for dim in range(args[0].ndim)]
    found.extend(([Replicate()], [one, *none]) for one in PENDING)
    return found


def _make_alike(call: Any, args: list[Any]) -> Any:
    """Created on the device of the parts."""
    device = args[0].device
    return call.op.call(tuple(device if isinstance(one, plugrad.device) else one for one in args))


def _gathered(self: DTensorSpec, dim: int, index: DTensorSpec, *rest: Any) -> list[Choice]:
    """`gather` along a dimension that every rank has whole; others can be sharded if index and
    tensor agree."""
    none = [None] * len(rest)
    # An index without elements may have other dimensions.
    if self.ndim == 0 or index.ndim != self.ndim:
        return []
    dim %= self.ndim
    found: list[Choice] = [([Shard(dim)], [Replicate(), None, Shard(dim), *none])]
    found.extend(
        ([Shard(one)], [Shard(one), None, Shard(one), *none])
        for one in range(self.ndim)
        if one != dim and self.shape[one] == index.shape[one]
    )
    found.append(([Partial()], [Partial(), None, Replicate(), *none]))
    found.append(([Partial()], [Shard(dim), None, Replicate(), *none]))
    return found


def _gather(call: Any, args: list[Any]) -> Any:
    """Elements on other ranks are zero here, so that the sum over the ranks is the result."""
    self, dim, index, *rest = args
    spec = call.args[0]
    dim %= max(spec.ndim, 1)
    sizes, offsets = local_part(spec.shape, call.mesh, call.plan.inputs[0])
    if spec.ndim == 0 or sizes[dim] == spec.shape[dim]:
        return call.op.call(tuple(args))
    if sizes[dim] == 0:
        return self.new_zeros(index.shape)
    here = (index >= offsets[dim]) & (index < offsets[dim] + sizes[dim])
    taken = call.op.call((self, dim, (index - offsets[dim]) * here, *rest))
    # No multiplication by 0: the elements used in place of others may be infinite.
    return taken.masked_fill(~here, 0)


def _scattered(self: DTensorSpec, dim: int, index: DTensorSpec, *rest: Any) -> list[Choice]:
    """`scatter` and `scatter_add`: dimensions other than `dim` can be sharded if all shapes
    agree."""
    others = [index, *(one for one in rest if isinstance(one, DTensorSpec))]
    if any(one.ndim != self.ndim for one in others):
        return []
    found: list[Choice] = []
    for one in range(self.ndim):
        if one != dim % self.ndim and all(o.shape[one] == self.shape[one] for o in others):
            cut = alike((index, *rest), Shard(one))
            found.append(([Shard(one)], [Shard(one), None, *cut]))
    return found


def _indexed(self: DTensorSpec, dim: int, index: DTensorSpec) -> list[Choice]:
    if self.ndim == 0:
        return []
    found: list[Choice] = [([Shard(dim % self.ndim)], [Replicate(), None, Shard(0)])]
    if index.ndim == 0:
        found = []
    found.extend(
        ([Shard(one)], [Shard(one), None, Replicate()])
        for one in range(self.ndim)
        if one != dim % self.ndim
    )
    found.append(([Partial()], [Partial(), None, Replicate()]))
    return found


_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like")

RULES: dict[str, Rule] = {
    **{name: Rule(_mapped(_same)) for name in ("alias", "detach")},
    "permute": Rule(_mapped(_permuted)),
    "transpose.int": Rule(_mapped(_transposed)),
    "t": Rule(_mapped(_transposed)),
    "unsqueeze": Rule(_mapped(_unsqueezed)),
    **{
        name: Rule(_mapped(_squeezed), _squeeze)
        for name in ("squeeze", "squeeze.dim", "squeeze.dims")
    },
    "select.int": Rule(_mapped(_selected)),
    "unbind.int": Rule(_mapped(_selected)),
    "slice.Tensor": Rule(_mapped(_sliced), _slice),
    **{
        name: Rule(_mapped(_cut))
        for name in (
            *("split.Tensor", "split_with_sizes"),
            *("unsafe_split.Tensor", "unsafe_split_with_sizes"),
        )
    },
    **{
        name: Rule(lambda *args: (), _laid_out)
        for name in ("_as_strided", "_as_strided_scatter", "_strided_sum")
    },
    "unfold": Rule(_mapped(_windows)),
    "diagonal": Rule(_mapped(_without)),
    "expand": Rule(_mapped(_expanded), _expand),
    "view": Rule(_mapped(_reshaped), _view),
    "_unsafe_view": Rule(_mapped(_reshaped), _view),
    "select_backward": Rule(_unslice_dims, _unslice),
    "slice_backward": Rule(_unslice_dims, _unslice),
    "cat": Rule(_joined),
    "stack": Rule(_stacked),
    "tril": Rule(_mapped(_batches)),
    "triu": Rule(_mapped(_batches)),
    "roll": Rule(_mapped(_untouched)),
    **{name: Rule(_alike, _make_alike) for name in _LIKE},
    "gather": Rule(_gathered, _gather),
    "scatter.value": Rule(_scattered),
    "scatter.src": Rule(_scattered),
    "scatter_add": Rule(_scattered),
    "index_select": Rule(_indexed),
}
