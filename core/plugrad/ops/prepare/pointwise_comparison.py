"""Arguments of comparisons that need more than promotion."""

from __future__ import annotations

from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import promote_pair, to_dtype


def equal(self: TensorBase, other: TensorBase) -> tuple[object, ...]:
    dtype = promote_pair(self, other)
    return (to_dtype(self, dtype), to_dtype(other, dtype))
