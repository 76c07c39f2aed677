"""Gradients of elementwise arithmetic of two operands."""

# Tensor dunders may return NotImplemented, which is Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

from plugrad._generated import functions as F
from plugrad.ops.formulas.pointwise_unary import conjugate, keep_where, zero_where

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def times_conjugate(grad: Tensor, factor: Tensor) -> Tensor:
    """The gradient through a product with `factor`."""
    return grad * conjugate(factor)


def over_conjugate(grad: Tensor, divisor: Tensor) -> Tensor:
    """The gradient through a division by `divisor`."""
    return grad / conjugate(divisor)


def scaled(grad: Tensor, factor: Any) -> Tensor:
    """The gradient of `factor * x` for a number; for 1 it is `grad` itself."""
    if factor == 1:
        return grad
    return grad * factor.conjugate()


def not_implemented(name: str) -> NoReturn:
    raise RuntimeError(f"derivative for plugrad::{name} is not implemented")


def div_mode_backward(grad: Tensor, other: Tensor, rounding_mode: str | None) -> Tensor:
    """A rounded quotient is constant almost everywhere."""
    if rounding_mode is None:
        return grad / conjugate(other)
    return F.zeros_like(grad)


def div_mode_backward_other(
    grad: Tensor, x: Tensor, other: Tensor, rounding_mode: str | None
) -> Tensor:
    if rounding_mode is None:
        return -grad * conjugate((x / other) / other)
    return F.zeros_like(grad)


def div_scalar_mode_backward(grad: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    if rounding_mode is None:
        return grad / other.conjugate()
    return F.zeros_like(grad)


def floor_quotient(number: Any, other: Tensor) -> Tensor:
    """`number // other` outside the graph of `other`: it is constant almost everywhere."""
    return F.div(F.full_like(other, number), other, rounding_mode="floor")


def pow_backward(grad: Tensor, x: Tensor, exponent: Any) -> Tensor:
    if exponent == 0:
        return F.zeros_like(x)
    if exponent == 1:
        return grad
    if exponent == 2:
        return grad * conjugate(x * 2)
    return grad * conjugate(x ** (exponent - 1) * exponent)


def pow_backward_self(grad: Tensor, x: Tensor, exponent: Tensor) -> Tensor:
    """0 where the exponent is 0, also for x = 0, where the formula would give 0 * inf."""
    return zero_where(exponent == 0, grad * conjugate(exponent * x ** (exponent - 1)))


def _vanishes_at_zero(exponent: Tensor) -> Tensor:
    """Where 0 ** exponent has gradient 0 toward the exponent."""
    if exponent.dtype.is_complex:
        return (F.imag(exponent) == 0).logical_and(F.real(exponent) >= 0)
    return exponent >= 0


def pow_backward_exponent(grad: Tensor, x: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    flat = (x == 0).logical_and(_vanishes_at_zero(exponent))
    # With a complex exponent, a negative real base has a logarithm, too.
    base = x.to(result.dtype) if result.dtype.is_complex else x
    return zero_where(flat, grad * conjugate(result * base.log()))


def _log(number: Any, real: bool) -> Any:
    if not isinstance(number, complex):
        if number > 0:
            return math.log(number)
        if real:
            return math.nan
    import cmath  # a module of C, which few programs need

    return cmath.log(number)


def pow_scalar_backward(grad: Tensor, number: Any, exponent: Tensor, result: Tensor) -> Tensor:
    if number == 0:
        slope = grad * conjugate(result * -math.inf)
        return zero_where(_vanishes_at_zero(exponent), slope)
    return grad * conjugate(result * _log(number, not result.dtype.is_complex))


def atan2_backward(grad: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """The factor that both gradients share; 0 at the origin, where there is no angle."""
    square = x * x + other * other
    return zero_where(square == 0, grad * square.reciprocal())


def chosen(grad: Tensor, x: Tensor, other: Tensor, lost: Tensor) -> Tensor:
    """The gradient of the one that a maximum took: halved for a tie, 0 if it `lost`."""
    return zero_where(lost, F.where(x == other, grad / 2, grad))


def number_first(grad: Tensor, won: Tensor, other: Tensor) -> Tensor:
    """The gradient of the first operand of fmax and fmin, where it `won` or `other` is nan."""
    return keep_where(F.logical_or(won, F.isnan(other)), grad)


def number_last(grad: Tensor, won: Tensor, other: Tensor) -> Tensor:
    """The gradient of the second operand of fmax and fmin."""
    return zero_where(F.logical_or(won, F.isnan(other)), grad)


def xlogy_gradient(grad: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """grad * log(other), but 0 where that is not a number and the value is 0 all the same."""
    return zero_where(F.logical_and(x == 0, other <= 0), F.xlogy(grad, other))


def xlogy_gradient_beside_number(grad: Tensor, x: Tensor, other: Any) -> Tensor:
    slope = F.xlogy(grad, other)
    return slope if other > 0 else zero_where(x == 0, slope)


def copysign_gradient(grad: Tensor, x: Tensor, result: Tensor) -> Tensor:
    """1 or -1, by whether the sign stayed; 0 at 0."""
    return grad * zero_where(x == 0, result / x)
