"""Hashes, `nonzero_static` and similar operators with result shapes that do not depend on elements;
copies in a given memory order."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import COMPLEX, FLOATING, DType, float64, int64, uint64
from plugrad.ops.on_demand.composite.counting.segments import segment_reduce as segment_reduce
from plugrad.ops.prepare.reductions import wrap_dims
from plugrad.tensor.aliasing.memory_layout import inverse
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]

_NOT_HASHED: Final = frozenset(
    ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")
)


def hash_tensor(self: Tensor, dim: Ints, keepdim: bool, mode: int) -> Tensor:
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if self.dtype.category == COMPLEX or self.dtype.name in _NOT_HASHED:
        raise not_implemented("xor_sum_cpu", self.dtype)
    sizes = sizes_of(self)
    dims = _checked_dims(dim, sizes)
    wide = self.detach().to(float64 if self.dtype.category == FLOATING else int64)
    bits: Any = F._view_dtype(F.resolve_neg(wide), int64)
    kept = [d for d in range(len(sizes)) if d not in dims]
    count = math.prod([sizes[d] for d in dims])
    rest = tuple([sizes[d] for d in kept])
    bits = bits.permute((*kept, *dims)).reshape((*rest, count))
    place = len(rest)
    while count > 1:
        # Combine the halves; a leftover element is used in the next round.
        half = count // 2
        joined = F.bitwise_xor(bits.narrow(place, 0, half), bits.narrow(place, half, half))
        if count % 2:
            joined = F.cat([joined, bits.narrow(place, count - 1, 1)], place)
        bits, count = joined, half + count % 2
    shape = [1 if d in dims else size for d, size in enumerate(sizes)] if keepdim else rest
    return F._view_dtype(bits.reshape(tuple(shape)).clone(), uint64)


def _checked_dims(dim: Ints, sizes: Ints) -> list[int]:
    """The dimensions that are hashed, from the front; all if none is named."""
    dims = wrap_dims(dim, len(sizes))
    if not dim and 0 in sizes:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    for wrapped in dims:
        if sizes[wrapped] == 0:
            raise IndexError(
                f"hash_tensor: Expected reduction dim {wrapped} to have non-zero size."
            )
    return sorted(dims)


def nonzero_static(self: Tensor, size: int, fill_value: int) -> Tensor:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    sizes = sizes_of(self)
    count = math.prod(sizes)
    device = self.device
    if not sizes or size == 0 or count == 0:
        return F.full((size, len(sizes)), fill_value, dtype=int64, device=device)
    found: Any = F.ne(self.detach().reshape((count,)), 0)
    # The row of each found element; others go behind the last row.
    row = F.cumsum(F._to_copy(found, int64), 0) - 1
    row = F.where(found & (row < size), row, size)
    numbers = F.arange(count, dtype=int64, device=device)
    places: Any = F.full((size + 1,), -1, dtype=int64, device=device)
    places = F.scatter(places, 0, row, numbers).narrow(0, 0, size)
    columns: list[Any] = []
    rest = places
    for length in reversed(sizes):
        columns.append(F.remainder(rest, length))
        rest = F.div(rest, length, rounding_mode="floor")
    at = F.stack(columns[::-1], 1)
    return F.where((places < 0).unsqueeze(1), fill_value, at)


def empty_permuted(
    size: Ints, physical_layout: Ints, dtype: DType | None, device: Device | None
) -> Tensor:
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for place, dim in enumerate(physical_layout):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got "
                f"{dim} at index {place}).  NB: negative dims not currently supported."
            )
    if len(set(physical_layout)) != len(size):
        raise RuntimeError("Duplicate dim not allowed")
    memory = F.empty(tuple([size[dim] for dim in physical_layout]), dtype=dtype, device=device)
    return memory.permute(inverse(physical_layout)).detach()
