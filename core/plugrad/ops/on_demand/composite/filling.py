"""Tensors that are filled with a value, or padded with it."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dtype import DType
from plugrad.ops.composite.layers.padding import reflection_pad1d as reflection_pad1d
from plugrad.ops.composite.layers.padding import reflection_pad2d as reflection_pad2d
from plugrad.ops.composite.layers.padding import reflection_pad3d as reflection_pad3d
from plugrad.ops.composite.layers.padding import replication_pad1d as replication_pad1d
from plugrad.ops.composite.layers.padding import replication_pad2d as replication_pad2d
from plugrad.ops.composite.layers.padding import replication_pad3d as replication_pad3d
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def fill(self: Tensor, value: Any) -> Any:
    return self.clone().fill_(value)


def constant_pad_nd(self: Tensor, pad: Sequence[int], value: Any) -> Any:
    if len(pad) % 2 != 0:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)} while the input has {self.ndim} dimensions."
        )
    x: Any = self
    for number in range(len(pad) // 2):
        place = self.ndim - 1 - number
        before, behind = pad[2 * number], pad[2 * number + 1]
        size = sizes_of(x)[place]
        if size + before + behind < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {behind} resulted in a "
                f"negative output size, which is invalid. Check dimension {place} of your input."
            )
        start = max(-before, 0)
        left = size - start - max(-behind, 0)
        if left < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        parts = [x.narrow(place, start, left)] if start or left != size else [x]
        if before > 0:
            parts.insert(0, _constant(x, place, before, value))
        if behind > 0:
            parts.append(_constant(x, place, behind, value))
        x = F.cat(parts, place) if len(parts) > 1 else parts[0]
    return x.clone() if x is self or x._is_view() else x


def _constant(x: Any, place: int, count: int, value: Any) -> Any:
    sizes = list(sizes_of(x))
    sizes[place] = count
    return F.empty(tuple(sizes), dtype=x.dtype, device=x.device).fill_(value)


def new_empty_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: DType | None,
    device: Device | None,
) -> Any:
    return F.empty_strided(
        tuple(size), tuple(stride), dtype=dtype or self.dtype, device=device or self.device
    )
