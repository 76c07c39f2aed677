"""Tangents of running sums of exponentials."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.sequences import logarithm_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def logcumsumexp_tangent(t: Tensor, x: Tensor, result: Tensor, dim: int) -> Any:
    """The sums of t[j] * exp(x[j] - result[i]) over all j up to i, kept as logarithms."""

    def part(logarithm: Any) -> Any:
        return F.exp(F.logcumsumexp(logarithm + x, dim) - result)

    if x.dtype.is_complex:
        return part(logarithm_of(t))
    return part(logarithm_of(t)) - part(logarithm_of(-t))
