"""Gradients of running sums of exponentials."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import finfo

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def logcumsumexp_backward(grad: Tensor, x: Tensor, result: Tensor, dim: int) -> Any:
    """The sums of grad[i] * exp(x[j] - result[i]) over all i from j on.

    They are running sums from the end, which are kept as logarithms, so that nothing overflows.
    """
    if x.ndim == 0 or x.numel() == 0:
        return grad

    def part(logarithm: Any) -> Any:
        turned = F.flip(logarithm - result, [dim])
        return F.exp(F.flip(F.logcumsumexp(turned, dim), [dim]) + x)

    if x.dtype.is_complex:
        return part(logarithm_of(grad.conj())).conj()
    return part(logarithm_of(grad)) - part(logarithm_of(-grad))


def logarithm_of(x: Any) -> Any:
    """Of positive real numbers, or complex ones that are not 0; others get the least number, whose
    exponential is 0, and which has derivatives where -inf has none."""
    real = x.dtype.to_real() if x.dtype.is_complex else x.dtype
    fits = F.ne(x, 0) if x.dtype.is_complex else F.gt(x, 0)
    return F.where(fits, F.log(F.where(fits, x, 1)), float(finfo(real).min))
