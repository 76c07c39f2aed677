"""Elementwise operators of one tensor that are composed of others."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import no_signs
from plugrad.dispatch.keys import CONJUGATE_BIT, NEGATIVE_BIT
from plugrad.dtype import FLOATING, bool_
from plugrad.ops.composite.elementwise.bits import bitwise_not as bitwise_not
from plugrad.ops.composite.elementwise.complex_parts import angle as angle
from plugrad.ops.composite.elementwise.complex_parts import conj_physical as conj_physical
from plugrad.ops.composite.elementwise.complex_parts import imag as imag
from plugrad.ops.composite.elementwise.complex_parts import real as real
from plugrad.ops.composite.elementwise.elementary import acos as acos
from plugrad.ops.composite.elementwise.elementary import acosh as acosh
from plugrad.ops.composite.elementwise.elementary import asin as asin
from plugrad.ops.composite.elementwise.elementary import asinh as asinh
from plugrad.ops.composite.elementwise.elementary import atanh as atanh
from plugrad.ops.composite.elementwise.elementary import cosh as cosh
from plugrad.ops.composite.elementwise.elementary import exp2 as exp2
from plugrad.ops.composite.elementwise.elementary import expm1 as expm1
from plugrad.ops.composite.elementwise.elementary import log1p as log1p
from plugrad.ops.composite.elementwise.elementary import log2 as log2
from plugrad.ops.composite.elementwise.elementary import log10 as log10
from plugrad.ops.composite.elementwise.elementary import sinh as sinh
from plugrad.ops.composite.elementwise.elementary import tan as tan
from plugrad.ops.composite.elementwise.elementary import tanh as tanh
from plugrad.ops.composite.elementwise.error_function import erf as erf
from plugrad.ops.composite.elementwise.error_function import erfc as erfc
from plugrad.ops.composite.elementwise.precision import widest
from plugrad.ops.composite.elementwise.rounding import absolute_value as absolute_value
from plugrad.ops.composite.elementwise.rounding import ceil as ceil
from plugrad.ops.composite.elementwise.rounding import frac as frac
from plugrad.ops.composite.elementwise.rounding import nan_to_num as nan_to_num
from plugrad.ops.composite.elementwise.rounding import round_decimals as round_decimals
from plugrad.ops.composite.elementwise.rounding import round_to_even as round_to_even
from plugrad.ops.composite.elementwise.rounding import sgn as sgn
from plugrad.ops.composite.elementwise.rounding import sign as sign
from plugrad.ops.composite.elementwise.rounding import trunc as trunc
from plugrad.ops.prepare import pointwise_unary as prepare
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import float_result, to_dtype
from plugrad.tensor.math_bits import is_conj, is_neg, toggled

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


_NO_NEGATIVE: Final = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
    "mask, use the `~` or `logical_not()` operator instead."
)


def negative(self: Tensor) -> Tensor:
    return F.neg(self)


def absolute(self: Tensor) -> Tensor:
    return F.abs(self)


def positive(self: Tensor) -> Tensor:
    if self.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def square(self: Tensor) -> Tensor:
    return F.pow(self, 2)


def conj(self: Tensor) -> Tensor:
    return F._conj(self) if self.dtype.is_complex else self


def _conj(self: Tensor) -> TensorBase:
    if not self.dtype.is_complex:
        raise RuntimeError(f"_conj(): expected a complex tensor, got one of {self.dtype}")
    return toggled(self, CONJUGATE_BIT)


def _neg_view(self: Tensor) -> TensorBase:
    if self.dtype is bool_:
        raise RuntimeError(_NO_NEGATIVE)
    return toggled(self, NEGATIVE_BIT)


def resolve_conj(self: Tensor) -> Tensor:
    return self.clone() if is_conj(self) else self


def resolve_neg(self: Tensor) -> Tensor:
    return self.clone() if is_neg(self) else self


def neg(self: Tensor) -> Tensor:
    dtype = self.dtype
    if dtype is bool_:
        raise RuntimeError(_NO_NEGATIVE)
    # Modulo 2 ** bits the largest unsigned integer is -1. Some libraries multiply complex infinity
    # by -1 as (-1 + 0j), which gives nan: their backends should have a kernel.
    return self * (-1 if dtype.is_signed else 2 ** (8 * dtype.itemsize) - 1)


def reciprocal(self: Tensor) -> Tensor:
    dtype = float_result(self.dtype)
    return F.div(F.full((), 1, dtype=dtype, device=self.device), to_dtype(self, dtype))


def rsqrt(self: Tensor) -> Tensor:
    return F.reciprocal(F.sqrt(self))


def sigmoid(self: Tensor) -> Tensor:
    return F.reciprocal(F.exp(F.neg(to_dtype(self, float_result(self.dtype)))) + 1)


def isnan(self: Tensor) -> Tensor:
    return F.ne(self, self)


def isfinite(self: Tensor) -> Tensor:
    if self.dtype.category < FLOATING:
        return F.ones(sizes_of(self), dtype=bool_, device=self.device)
    # inf - inf is nan.
    return F.eq(self - self, 0)


def isinf(self: Tensor) -> Tensor:
    if self.dtype.category < FLOATING:
        return F.zeros(sizes_of(self), dtype=bool_, device=self.device)
    return F.eq(F.abs(self), math.inf)


def logical_not(self: Tensor) -> Tensor:
    return F.eq(self, False)


def arccos(self: Tensor) -> Tensor:
    return F.acos(self)


def arccos_(self: Tensor) -> Tensor:
    return self.acos_()


def arcsin(self: Tensor) -> Tensor:
    return F.asin(self)


def arcsin_(self: Tensor) -> Tensor:
    return self.asin_()


def arctan(self: Tensor) -> Tensor:
    return F.atan(self)


def arctan_(self: Tensor) -> Tensor:
    return self.atan_()


def arccosh(self: Tensor) -> Tensor:
    return F.acosh(self)


def arccosh_(self: Tensor) -> Tensor:
    return self.acosh_()


def arcsinh(self: Tensor) -> Tensor:
    return F.asinh(self)


def arcsinh_(self: Tensor) -> Tensor:
    return self.asinh_()


def arctanh(self: Tensor) -> Tensor:
    return F.atanh(self)


def arctanh_(self: Tensor) -> Tensor:
    return self.atanh_()


def fix(self: Tensor) -> Tensor:
    return F.trunc(self)


def fix_(self: Tensor) -> Tensor:
    return self.trunc_()


def negative_(self: Tensor) -> Tensor:
    return self.neg_()


def absolute_(self: Tensor) -> Tensor:
    return self.abs_()


def deg2rad(self: Tensor) -> Tensor:
    _check_real("deg2rad", self)
    return self * (math.pi / 180)


def rad2deg(self: Tensor) -> Tensor:
    _check_real("rad2deg", self)
    return self * (180 / math.pi)


def _check_real(name: str, self: Tensor) -> None:
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} is not supported for complex tensors.")


def sinc(self: Tensor) -> Any:
    dtype = float_result(self.dtype)
    wide: Any = to_dtype(self, widest(dtype))
    at_zero = F.eq(wide, 0)
    scaled = F.where(at_zero, 1, wide) * math.pi
    return to_dtype(F.where(at_zero, 1, F.sin(scaled) / scaled), dtype)


def logit(self: Tensor, eps: float | None) -> Any:
    checked: Any = prepare.logit(self, eps)
    given = checked[0]
    wide: Any = to_dtype(given, widest(given.dtype))
    inside = wide
    if eps is not None:
        # An eps above a half puts the lower limit above the upper one; the lower one comes first.
        below = F.lt(wide, eps)
        inside = F.where(below, eps, F.where(F.gt(wide, 1 - eps), 1 - eps, wide))
    return to_dtype(F.log(inside / (1 - inside)), given.dtype)


def signbit(self: Tensor) -> Tensor:
    """Arithmetic cannot see the sign of nan: here it counts as positive."""
    if self.dtype.is_complex:
        raise no_signs()
    if not self.dtype.is_floating_point:
        return F.lt(self, 0)
    return F.logical_or(F.lt(self, 0), F.eq(F.reciprocal(self), -math.inf))


def isposinf(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError("isposinf does not support complex inputs.")
    return F.eq(self.detach(), math.inf)


def isneginf(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError("isneginf does not support complex inputs.")
    return F.eq(self.detach(), -math.inf)


def isreal(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return F.ones(sizes_of(self), dtype=bool_, device=self.device)
    return F.eq(F.imag(self.detach()), 0)
