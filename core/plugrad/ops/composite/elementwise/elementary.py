"""Exponentials, logarithms, trigonometry and hyperbolas from exp, log, sqrt, sin, cos and atan.

Accurate to a few units in the last place, also near zero and where a square would overflow. They
run where a backend has no kernel of its own, below autograd.

Sources: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, 1.14.1
(expm1 and log1p from exp and log of rounded arguments, after W. Kahan); W. Kahan, Branch
Cuts for Complex Elementary Functions, 1987.
"""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.ops.composite.elementwise.precision import is_narrow, widest
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.tensor.calls.promotion import float_result, promote_pair, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

LN_2: Final = math.log(2)
# From here on x * x + 1 is x * x in float64.
_LARGE: Final = 2.0**28


def _floating(self: Tensor) -> Any:
    """The operand in the dtype in which its function is computed."""
    dtype = float_result(self.dtype)
    return to_dtype(self, widest(dtype))


def _rounded(result: Any, self: Tensor) -> Any:
    dtype = float_result(self.dtype)
    return to_dtype(result, dtype) if is_narrow(dtype) else result


def _of_magnitude(x: Any, result: Any) -> Any:
    """An odd function from its values at magnitudes; -0.0 stays."""
    return F.where(F.eq(x, 0), x, F.where(F.lt(x, 0), -result, result))


def _odd(self: Tensor, function: Callable[[Any], Any]) -> Tensor:
    x = _floating(self)
    return _rounded(_of_magnitude(x, function(F.abs(x))), self)


def exp2(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return F.exp(self * LN_2)
    return _rounded(F.pow(2.0, _floating(self)), self)


def log2(self: Tensor) -> Tensor:
    return _rounded(F.log(_floating(self)) / LN_2, self)


def log10(self: Tensor) -> Tensor:
    return _rounded(F.log(_floating(self)) / math.log(10), self)


def log1p(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = F.real(self), F.imag(self)
        length = _log1p(real * (real + 2) + imaginary * imaginary) * 0.5
        return F.complex(length, F.atan2(imaginary, real + 1))
    return _rounded(_log1p(_floating(self)), self)


def _log1p(x: Any) -> Any:
    """What log loses to the rounding of 1 + x, the quotient gives back."""
    u = x + 1
    rest = u - 1
    exact = F.logical_or(F.eq(rest, 0), F.eq(rest, math.inf))
    return F.where(exact, x, F.log(u) * (x / rest))


def expm1(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = F.real(self), F.imag(self)
        half = F.sin(imaginary * 0.5)
        return F.complex(
            _expm1(real) * F.cos(imaginary) - half * half * 2, F.exp(real) * F.sin(imaginary)
        )
    return _rounded(_expm1(_floating(self)), self)


def _expm1(x: Any) -> Any:
    u = F.exp(x)
    rest = u - 1
    compensated = F.where(F.eq(rest, 0), x, rest * (x / F.log(u)))
    return F.where(F.lt(F.abs(x), 1), compensated, rest)


def tanh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        t, s = F.tanh(F.real(self)), F.tan(F.imag(self))
        one = F.ones_like(t)
        return F.complex(t, s) / F.complex(one, t * s)
    return _odd(self, _tanh)


def _tanh(x: Any) -> Any:
    t = _expm1(x * -2)
    return -t / (t + 2)


def sinh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = F.real(self), F.imag(self)
        return F.complex(F.sinh(real) * F.cos(imaginary), F.cosh(real) * F.sin(imaginary))
    return _odd(self, _sinh)


def _sinh(x: Any) -> Any:
    u = _expm1(x)
    root = F.exp(x * 0.5)
    return F.where(F.lt(x, 22), (u + u / (u + 1)) * 0.5, root * 0.5 * root)


def cosh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = F.real(self), F.imag(self)
        return F.complex(F.cosh(real) * F.cos(imaginary), F.sinh(real) * F.sin(imaginary))
    # Through the square root, because its square overflows only if the result does.
    root = F.exp(F.abs(_floating(self)) * 0.5)
    return _rounded(root * 0.5 * root + 0.5 / root / root, self)


def asinh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return F.log(self + F.sqrt(self * self + 1))
    return _odd(self, _asinh)


def _asinh(x: Any) -> Any:
    square = x * x
    near = _log1p(x + square / (F.sqrt(square + 1) + 1))
    return F.where(F.lt(x, _LARGE), near, F.log(x) + LN_2)


def acosh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return F.log(self + F.sqrt(self + 1) * F.sqrt(self - 1))
    x = _floating(self)
    above = x - 1
    near = _log1p(above + F.sqrt(above * (above + 2)))
    far = F.log(x) + LN_2
    # Below -1 the rounding of squares could make a number of what is none.
    return _rounded(F.where(F.lt(F.abs(x), _LARGE), F.where(F.lt(x, 1), math.nan, near), far), self)


def atanh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return (F.log1p(self) - F.log1p(-self)) * 0.5
    return _odd(self, _atanh)


def _atanh(x: Any) -> Any:
    return _log1p(x * 2 / (1 - x)) * 0.5


def tan(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return F.tanh(self * 1j) * -1j
    x = _floating(self)
    return _rounded(F.sin(x) / F.cos(x), self)


def asin(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return F.asinh(self * 1j) * -1j
    x = _floating(self)
    return _rounded(F.atan2(x, F.sqrt((1 - x) * (x + 1))), self)


def acos(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return math.pi / 2 - F.asin(self)
    x = _floating(self)
    return _rounded(F.atan2(F.sqrt(1 - x), F.sqrt(x + 1)) * 2, self)


def atan2(self: Tensor, other: Tensor) -> Any:
    dtype = float_result(promote_pair(self, other))
    if dtype.is_complex:
        raise not_implemented("atan2_cpu", dtype)
    wide = widest(dtype)
    y: Any = to_dtype(self, wide)
    x: Any = to_dtype(other, wide)
    height, width = F.abs(y), F.abs(x)
    steep = F.lt(width, height)
    small, large = F.where(steep, width, height), F.where(steep, height, width)
    # Infinity over infinity counts as 1, and 0 over 0 as 0.
    same = F.where(F.eq(large, 0), large, 1)
    angle = F.atan(F.where(F.eq(small, large), same, small / large))
    angle = F.where(steep, math.pi / 2 - angle, angle)
    angle = F.where(F.signbit(x), math.pi - angle, angle)
    angle = F.where(F.signbit(y), -angle, angle)
    return to_dtype(angle, dtype) if wide is not dtype else angle


def hypot(self: Tensor, other: Tensor) -> Any:
    """Scaled by the longer side, so that no square overflows."""
    dtype = promote_pair(self, other)
    check_real_floating("hypot_cpu", dtype)
    wide = widest(dtype)
    a, b = F.abs(to_dtype(self, wide)), F.abs(to_dtype(other, wide))
    large = F.maximum(a, b)
    ratio = F.minimum(a, b) / large
    length = large * F.sqrt(ratio * ratio + 1)
    length = F.where(F.eq(large, 0), large, length)
    infinite = F.logical_or(F.eq(a, math.inf), F.eq(b, math.inf))
    result = F.where(infinite, math.inf, length)
    return to_dtype(result, dtype) if wide is not dtype else result


def _complex_logaddexp(a: Any, b: Any) -> Any:
    """Scaled by the operand with the greater real part, so that nothing overflows."""
    first, second = F.real(a), F.real(b)
    swap = F.lt(first, second)
    least, greatest = F.where(swap, a, b), F.where(swap, b, a)
    result = greatest + F.log1p(F.exp(least - greatest))
    # Equal infinities have no difference: both are nothing, or one of them is all.
    alike = F.logical_and(F.eq(first, second), F.isinf(first))
    together = F.where(F.lt(first, 0), least, F.log(F.exp(a) + F.exp(b)))
    result = F.where(alike, together, result)
    unknown = F.logical_or(F.isnan(a), F.isnan(b))
    return F.where(unknown, complex(math.nan, math.nan), result)


def logaddexp(self: Tensor, other: Tensor) -> Any:
    dtype = promote_pair(self, other)
    if dtype.is_complex:
        return _complex_logaddexp(to_dtype(self, dtype), to_dtype(other, dtype))
    check_real_floating("logaddexp_cpu", dtype)
    wide = widest(dtype)
    a: Any = to_dtype(self, wide)
    b: Any = to_dtype(other, wide)
    # Equal infinities have no difference.
    distance = F.where(F.eq(a, b), 0.0, F.abs(a - b))
    result = F.maximum(a, b) + _log1p(F.exp(-distance))
    return to_dtype(result, dtype) if wide is not dtype else result
