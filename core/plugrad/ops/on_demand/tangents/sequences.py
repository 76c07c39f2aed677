"""Tangents of running sums of exponentials."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.on_demand.formulas.sequences import ratio
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def logcumsumexp_tangent(t: Tensor, x: Tensor, result: Tensor, dim: int) -> Any:
    """The sums of t[j] * exp(x[j] - result[i]) over all j up to i: see its gradient."""
    if x.ndim == 0 or x.numel() == 0:
        return t
    wide: Any = widened(result)
    found: Any = widened(t) * ratio(widened(x), wide)
    size = sizes_of(x)[dim]
    step = 1
    while step < size:
        rest = size - step
        decay = ratio(wide.narrow(dim, 0, rest), wide.narrow(dim, step, rest))
        sums = found.narrow(dim, step, rest) + decay * found.narrow(dim, 0, rest)
        found = F.cat([found.narrow(dim, 0, step), sums], dim)
        step *= 2
    return in_dtype_of(found, t)
