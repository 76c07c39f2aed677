"""Gradients of running sums of exponentials."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def logcumsumexp_backward(grad: Tensor, x: Tensor, result: Tensor, dim: int) -> Any:
    """The sums of grad[i] * exp(x[j] - result[i]) over all i from j on.

    They are s * exp(x - result) with s[j] = grad[j] + exp(result[j] - result[j + 1]) * s[j + 1].
    Real results ascend, so that no factor overflows. Everything is linear in `grad`, because a
    logarithm of it would have no derivative at 0.
    """
    if x.ndim == 0 or x.numel() == 0:
        return grad
    wide: Any = widened(result)
    found: Any = widened(grad)
    size = sizes_of(x)[dim]
    # After n rounds each element is the sum of the 2 ** n that begin at it.
    step = 1
    while step < size:
        rest = size - step
        decay = ratio(wide.narrow(dim, 0, rest), wide.narrow(dim, step, rest)).conj()
        sums = found.narrow(dim, 0, rest) + decay * found.narrow(dim, step, rest)
        found = F.cat([sums, found.narrow(dim, rest, step)], dim)
        step *= 2
    return in_dtype_of(found * ratio(widened(x), wide).conj(), grad)


def ratio(above: Any, below: Any) -> Any:
    """The exponential of a difference; equal infinities have the difference 0."""
    no_difference = F.logical_and(F.isinf(above), F.eq(above, below))
    return F.exp(F.where(no_difference, 0, above - below))
