"""The error function and its complement by rational approximations, with errors below 1e-15.

Source: W. J. Cody, Rational Chebyshev Approximations for the Error Function, Mathematics of
Computation 23, 1969; the argument of exp(-x * x) is split as in his program CALERF, 1990.
"""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.ops.composite.elementwise.precision import widest
from plugrad.ops.error_function import (
    FAR_P,
    FAR_Q,
    MIDDLE_P,
    MIDDLE_Q,
    NEAR_LIMIT,
    NEAR_P,
    NEAR_Q,
)
from plugrad.tensor.calls.promotion import float_result, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

_ROOT_OF_PI: Final = 5.6418958354775628695e-1
# Here erfc is 0 in float64, and nothing below overflows.
_ZERO: Final = 30.0


def _horner(coefficients: tuple[float, ...], x: Any) -> Any:
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def _near(x: Any) -> Any:
    square = x * x
    return x * _horner(NEAR_P, square) / _horner(NEAR_Q, square)


def _complement(size: Any) -> Any:
    """erfc of magnitudes that are not small."""
    x = F.where(F.gt(size, _ZERO), _ZERO, size)
    part = F.floor(x * 16) / 16
    decay = F.exp(-(part * part)) * F.exp((part - x) * (part + x))
    middle = _horner(MIDDLE_P, x) / _horner(MIDDLE_Q, x)
    z = F.reciprocal(x * x)
    far = (_ROOT_OF_PI - z * _horner(FAR_P, z) / _horner(FAR_Q, z)) / x
    return decay * F.where(F.gt(x, 4), far, middle)


def _magnitude(self: Tensor, kernel: str) -> tuple[Any, Any]:
    dtype = float_result(self.dtype)
    if dtype.is_complex:
        raise not_implemented(kernel, dtype)
    x = to_dtype(self, widest(dtype))
    return x, F.abs(x)


def erf(self: Tensor) -> Any:
    x, size = _magnitude(self, "erf_vml_cpu")
    far = 1 - _complement(size)
    result = F.where(F.le(size, NEAR_LIMIT), _near(x), F.where(F.lt(x, 0), -far, far))
    return to_dtype(result, float_result(self.dtype))


def erfc(self: Tensor) -> Any:
    x, size = _magnitude(self, "erfc_vml_cpu")
    far = _complement(size)
    result = F.where(F.lt(x, 0), 2 - far, far)
    result = F.where(F.le(size, NEAR_LIMIT), 1 - _near(x), result)
    return to_dtype(result, float_result(self.dtype))
