"""Reductions of segments, by scattering each element to the number of its segment."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, float32, int32, int64
from plugrad.ops.composite.conditions import has_values, holds_somewhere
from plugrad.ops.composite.elementwise.precision import in_dtype_of, is_narrow
from plugrad.ops.composite.selection.positions import check_device
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# The name in `scatter_reduce`, and the value of an empty segment.
_REDUCTIONS: Final[dict[str, tuple[str, float]]] = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
}


def segment_reduce(
    data: Tensor,
    reduce: str,
    lengths: Tensor | None,
    indices: Tensor | None,
    offsets: Tensor | None,
    axis: int,
    unsafe: bool,
    initial: Any,
) -> Tensor:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"segment_reduce(): reduce must be one of {', '.join(_REDUCTIONS)}, but got {reduce!r}"
        )
    place = wrap_dim(axis, data.ndim)
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data.dtype.category != FLOATING:
        raise not_implemented("_segment_reduce_cpu", data.dtype)
    if offsets is not None:
        starts = _whole("offsets", offsets, data, place)
        if sizes_of(starts)[-1] == 0:
            raise RuntimeError("segment_reduce(): offsets must have at least one element")
    else:
        counts = _whole("lengths", lengths, data, place)
        if not unsafe:
            _check_lengths(counts, sizes_of(data)[place])
        first = F.zeros((*sizes_of(counts)[:-1], 1), dtype=int64, device=counts.device)
        starts = F.cat([first, F.cumsum(counts, -1)], -1)
    return in_dtype_of(_reduced(data, reduce, starts, place, initial), data)


def _whole(name: str, given: Any, data: Tensor, place: int) -> Any:
    """Lengths or offsets as int64, one row for each row of data."""
    check_device(given, data)
    if given.ndim > data.ndim:
        raise RuntimeError(
            f"segment_reduce(): Expected {name} to have no more than the {data.ndim} dimensions of "
            f"data, but got {given.ndim}"
        )
    if place != given.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {place}."
        )
    if given.dtype is not int64 and given.dtype is not int32:
        raise not_implemented(f"_segment_reduce_{name}_cpu_kernel1", given.dtype)
    if sizes_of(given)[:-1] != sizes_of(data)[:place]:
        raise RuntimeError(
            f"segment_reduce(): Expected {name} to have the sizes of data before axis, "
            f"{list(sizes_of(data)[:place])}, but got {list(sizes_of(given)[:-1])}"
        )
    return F._to_copy(given, int64)


def _check_lengths(counts: Any, size: int) -> None:
    if not has_values(counts):
        return
    if counts.numel() == 0:
        if counts.ndim == 1 and size == 0:
            return
        if 0 in sizes_of(counts)[:-1]:
            return
    elif holds_somewhere(counts < 0):
        raise RuntimeError("lengths contains negative value!")
    if holds_somewhere(F.sum(counts, -1) != size):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe."
        )


def _reduced(data: Tensor, reduce: str, starts: Any, place: int, initial: Any) -> Any:
    how, neutral = _REDUCTIONS[reduce]
    wide: Any = F._to_copy(data, float32) if is_narrow(data.dtype) else data
    sizes = sizes_of(data)
    length, segments = sizes[place], sizes_of(starts)[-1] - 1
    behind = len(sizes) - place - 1
    numbers = F.arange(length, dtype=int64, device=data.device).expand(sizes[: place + 1])
    found: Any = F.searchsorted(starts.contiguous(), numbers.contiguous(), right=True) - 1
    # Elements in no segment go into an extra one, which is cut off.
    found = F.where(found < 0, segments, F.clamp(found, max=segments))
    index = found.reshape((*sizes_of(found), *(1,) * behind)).expand(sizes)
    shape = (*sizes[:place], segments + 1, *sizes[place + 1 :])
    joins = initial is not None and how in ("sum", "prod")
    base = F.full(shape, initial if joins else neutral, dtype=wide.dtype, device=data.device)
    total: Any = F.scatter_reduce(base, place, index, wide, how)
    total = total.narrow(place, 0, segments)
    if reduce == "mean":
        counts: Any = starts.narrow(-1, 1, segments) - starts.narrow(-1, 0, segments)
        counts = counts.reshape((*sizes_of(counts), *(1,) * behind))
        mean = total / F._to_copy(F.clamp(counts, 1), wide.dtype)
        return F.where(counts > 0, mean, math.nan if initial is None else initial)
    if initial is not None and not joins:
        # All elements equal to the extremum get the gradient; nan stays.
        beaten = total < initial if how == "amax" else total > initial
        return F.where(beaten, initial, total)
    return total.clone()
