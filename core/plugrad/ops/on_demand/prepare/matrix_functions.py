"""Arguments of functions of matrices."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.dtype import FLOATING
from plugrad.ops.prepare.linear_systems import check_square_shape
from plugrad.tensor.base import TensorBase


def matrix_exp(self: TensorBase) -> tuple[object, ...]:
    name = "linalg.matrix_exp"
    check_square_shape(self, name)
    if self.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{self.dtype.scalar_name}"
        )
    return (self,)
