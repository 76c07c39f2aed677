"""Elementwise functions of the standard, over plugrad's operators."""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable
from math import nan as _nan
from typing import Any

from plugrad.array_api._array import arrays_from_arrays
from plugrad.array_api._operators import F, Tensor, own
from plugrad.array_api._operators import floor_divide as _floor_divide
from plugrad.array_api._operators import remainder as _remainder
from plugrad.array_api._promotion import operands
from plugrad.dtype import COMPLEX, FLOATING, INTEGER
from plugrad.dtype import iinfo as _iinfo

Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Tensor | complex, Tensor | complex], Tensor]


def _named(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    function.__module__ = "plugrad.array_api"
    return arrays_from_arrays(function)


def _unary(name: str, operator: Callable[[Tensor], Tensor], text: str) -> Unary:
    def function(x: Tensor, /) -> Tensor:
        return operator(x)

    def owning(x: Tensor, /) -> Tensor:
        return own(operator(x))

    made: Unary = _named(owning if name in _SAVED else function, name, text)
    return made


def _binary(name: str, operator: Callable[[Tensor, Tensor], Tensor], text: str) -> Binary:
    def function(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        a, b = operands(x1, x2)
        return operator(a, b)

    def owning(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return own(function(x1, x2))

    made: Binary = _named(owning if name in _SAVED else function, name, text)
    return made


# Their derivatives use the result.
_SAVED = frozenset({"exp", "expm1", "hypot", "pow", "reciprocal", "sign", "sqrt", "tan", "tanh"})


def _real_only(operator: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Integers and bools are their own floor, ceiling and so on."""

    def function(x: Tensor) -> Tensor:
        return operator(x) if x.dtype.category >= FLOATING else F.clone(x)

    return function


def _round(x: Tensor) -> Tensor:
    if x.dtype.category == COMPLEX:
        return F.complex(F.round(F.real(x)), F.round(F.imag(x)))
    return _real_only(F.round)(x)


def _sign(x: Tensor) -> Tensor:
    """The sign of nan is nan, in PyTorch 0; for complex numbers with a nan both parts are nan."""
    if x.dtype.category == COMPLEX:
        return F.where(F.isnan(x), complex(_nan, _nan), F.sgn(x))
    if x.dtype.category == FLOATING:
        return F.where(F.isnan(x), x, F.sign(x))
    return F.sign(x)


def _expm1(x: Tensor) -> Tensor:
    """Infinite complex numbers use `exp`, since the formula for small numbers gives nan."""
    if x.dtype.category == COMPLEX:
        return F.where(F.isfinite(x), F.expm1(x), F.exp(x) - 1)
    return F.expm1(x)


def _imag(x: Tensor) -> Tensor:
    return F.imag(x) if x.dtype.category == COMPLEX else F.zeros_like(x)


def _abs(x: Tensor) -> Tensor:
    return F.abs(x) if x.dtype.is_signed else F.clone(x)


abs = _unary("abs", _abs, "The absolute value, of complex numbers the magnitude.")
acos = _unary("acos", F.acos, "The inverse cosine.")
acosh = _unary("acosh", F.acosh, "The inverse hyperbolic cosine.")
asin = _unary("asin", F.asin, "The inverse sine.")
asinh = _unary("asinh", F.asinh, "The inverse hyperbolic sine.")
atan = _unary("atan", F.atan, "The inverse tangent.")
atanh = _unary("atanh", F.atanh, "The inverse hyperbolic tangent.")
bitwise_invert = _unary("bitwise_invert", F.bitwise_not, "Each bit inverted; `not` of bools.")
ceil = _unary("ceil", _real_only(F.ceil), "The smallest integer that is not below.")
conj = _unary("conj", F.conj_physical, "The complex conjugate.")
cos = _unary("cos", F.cos, "The cosine of angles in radians.")
cosh = _unary("cosh", F.cosh, "The hyperbolic cosine.")
exp = _unary("exp", F.exp, "The exponential function.")
expm1 = _unary("expm1", _expm1, "`exp(x) - 1`, exact for small `x`.")
floor = _unary("floor", _real_only(F.floor), "The largest integer that is not above.")
imag = _unary("imag", _imag, "The imaginary part.")
isfinite = _unary("isfinite", F.isfinite, "Whether elements are neither infinite nor nan.")
isinf = _unary("isinf", F.isinf, "Whether elements are infinite.")
isnan = _unary("isnan", F.isnan, "Whether elements are nan.")
log = _unary("log", F.log, "The natural logarithm.")
log10 = _unary("log10", F.log10, "The logarithm to base 10.")
log1p = _unary("log1p", F.log1p, "`log(1 + x)`, exact for small `x`.")
log2 = _unary("log2", F.log2, "The logarithm to base 2.")
logical_not = _unary("logical_not", F.logical_not, "`not` of each element.")
negative = _unary("negative", F.neg, "`-x`.")
positive = _unary("positive", F.clone, "`+x`, a copy.")
real = _unary("real", F.real, "The real part.")
reciprocal = _unary("reciprocal", F.reciprocal, "`1 / x`.")
round = _unary("round", _round, "The nearest integer, the even one of two.")
sign = _unary("sign", _sign, "-1, 0 or 1; of complex numbers `x / abs(x)`; nan of nan.")
signbit = _unary("signbit", F.signbit, "Whether the sign bit is set, as in -0.0.")
sin = _unary("sin", F.sin, "The sine of angles in radians.")
sinh = _unary("sinh", F.sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", F.sqrt, "The square root; nan of negative numbers.")
square = _unary("square", F.square, "`x * x`.")
tan = _unary("tan", F.tan, "The tangent of angles in radians.")
tanh = _unary("tanh", F.tanh, "The hyperbolic tangent.")
trunc = _unary("trunc", _real_only(F.trunc), "The integer next to it towards zero.")

add = _binary("add", F.add, "`x1 + x2`.")
atan2 = _binary("atan2", F.atan2, "The angle of the point (x2, x1), in radians.")
bitwise_and = _binary("bitwise_and", F.bitwise_and, "`x1 & x2`.")
bitwise_left_shift = _binary("bitwise_left_shift", F.bitwise_left_shift, "`x1 << x2`.")
bitwise_or = _binary("bitwise_or", F.bitwise_or, "`x1 | x2`.")
bitwise_right_shift = _binary("bitwise_right_shift", F.bitwise_right_shift, "`x1 >> x2`.")
bitwise_xor = _binary("bitwise_xor", F.bitwise_xor, "`x1 ^ x2`.")
copysign = _binary("copysign", F.copysign, "The magnitude of `x1` with the sign of `x2`.")
divide = _binary("divide", F.div, "`x1 / x2`, never an integer.")
equal = _binary("equal", F.eq, "`x1 == x2`.")
floor_divide = _binary("floor_divide", _floor_divide, "`x1 // x2`, rounded towards -infinity.")
greater = _binary("greater", F.gt, "`x1 > x2`.")
greater_equal = _binary("greater_equal", F.ge, "`x1 >= x2`.")
hypot = _binary("hypot", F.hypot, "The length of the hypotenuse, `sqrt(x1**2 + x2**2)`.")
less = _binary("less", F.lt, "`x1 < x2`.")
less_equal = _binary("less_equal", F.le, "`x1 <= x2`.")
logaddexp = _binary("logaddexp", F.logaddexp, "`log(exp(x1) + exp(x2))`, without overflow.")
logical_and = _binary("logical_and", F.logical_and, "`x1 and x2` of each pair.")
logical_or = _binary("logical_or", F.logical_or, "`x1 or x2` of each pair.")
logical_xor = _binary("logical_xor", F.logical_xor, "Whether one of each pair is true.")
maximum = _binary("maximum", F.maximum, "The larger of each pair; nan if one is nan.")
minimum = _binary("minimum", F.minimum, "The smaller of each pair; nan if one is nan.")
multiply = _binary("multiply", F.mul, "`x1 * x2`.")
nextafter = _binary("nextafter", F.nextafter, "The next number after `x1` towards `x2`.")
not_equal = _binary("not_equal", F.ne, "`x1 != x2`.")
pow = _binary("pow", F.pow, "`x1 ** x2`.")
remainder = _binary("remainder", _remainder, "`x1 % x2`, with the sign of `x2`.")
subtract = _binary("subtract", F.sub, "`x1 - x2`.")


def _bound(x: Tensor, bound: Tensor | float) -> Tensor | float:
    """A bound of integers that is a number beyond their range bounds nothing more than that."""
    if isinstance(bound, int) and x.dtype.category == INTEGER:
        limits = _iinfo(x.dtype)
        bound = limits.min if bound < limits.min else limits.max if bound > limits.max else bound
    return bound


def clip(
    x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None
) -> Tensor:
    """Each element, but at least `min` and at most `max`, in the dtype of `x`.

    >>> from plugrad import array_api as xp
    >>> xp.clip(xp.asarray([-2.0, 0.5, 2.0]), 0.0, 1.0)
    Array([0.0000, 0.5000, 1.0000])
    """
    found = x
    if min is not None:
        found = maximum(found, _bound(x, min))
    if max is not None:
        found = minimum(found, _bound(x, max))
    if found is x:
        return F.clone(x)
    return found.to(x.dtype) if found.dtype.category == x.dtype.category else found


clip = arrays_from_arrays(clip)
