"""Numbers as tensors, for backends whose kernels take tensors only."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.tensor.promotion import promote_with_scalar

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def number_beside(self: Tensor, number: Any) -> Tensor:
    """A number as a 0-dim tensor, in the dtype in which it is combined with `self`."""
    dtype = promote_with_scalar(self, number)
    return F.full((), number, dtype=dtype, device=self.device)
