"""Arguments of running sums."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase


def logcumsumexp(self: TensorBase, dim: int) -> tuple[object, ...]:
    place = wrap_dim(dim, self.ndim)
    if self.dtype.category < FLOATING:
        raise not_implemented("logcumsumexp_out_cpu", self.dtype)
    return (self, place)
