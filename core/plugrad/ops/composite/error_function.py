"""The error function and its complement by rational approximations, with errors below 1e-15.

Source: W. J. Cody, Rational Chebyshev Approximations for the Error Function, Mathematics of
Computation 23, 1969; the argument of exp(-x * x) is split as in his program CALERF, 1990.
"""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dtype import float32
from plugrad.ops.composite.elementary import is_narrow
from plugrad.tensor.promotion import float_result, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# Coefficients from the highest power down. Near zero: erf(x) = x * P(x^2) / Q(x^2).
_NEAR_P: Final = [
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
]
_NEAR_Q: Final = [
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
]
# Up to 4: erfc(x) = exp(-x^2) * P(x) / Q(x).
_MIDDLE_P: Final = [
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
]
_MIDDLE_Q: Final = [
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
]
# Farther, with z = 1 / x^2: erfc(x) = exp(-x^2) / x * (1 / sqrt(pi) - z * P(z) / Q(z)).
_FAR_P: Final = [
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
]
_FAR_Q: Final = [
    1.0,
    2.56852019228982242e0,
    1.87295284992346047e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
]
_NEAR_LIMIT: Final = 0.46875
_ROOT_OF_PI: Final = 5.6418958354775628695e-1
# Here erfc is 0 in float64, and nothing below overflows.
_ZERO: Final = 30.0


def _horner(coefficients: list[float], x: Any) -> Any:
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def _near(x: Any) -> Any:
    square = x * x
    return x * _horner(_NEAR_P, square) / _horner(_NEAR_Q, square)


def _complement(size: Any) -> Any:
    """erfc of magnitudes that are not small."""
    x = F.where(F.gt(size, _ZERO), _ZERO, size)
    part = F.floor(x * 16) / 16
    decay = F.exp(-(part * part)) * F.exp((part - x) * (part + x))
    middle = _horner(_MIDDLE_P, x) / _horner(_MIDDLE_Q, x)
    z = F.reciprocal(x * x)
    far = (_ROOT_OF_PI - z * _horner(_FAR_P, z) / _horner(_FAR_Q, z)) / x
    return decay * F.where(F.gt(x, 4), far, middle)


def _magnitude(self: Tensor, kernel: str) -> tuple[Any, Any]:
    dtype = float_result(self.dtype)
    if dtype.is_complex:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'")
    x = to_dtype(self, float32 if is_narrow(dtype) else dtype)
    return x, F.abs(x)


def erf(self: Tensor) -> Any:
    x, size = _magnitude(self, "erf_vml_cpu")
    far = 1 - _complement(size)
    result = F.where(F.le(size, _NEAR_LIMIT), _near(x), F.where(F.lt(x, 0), -far, far))
    return to_dtype(result, float_result(self.dtype))


def erfc(self: Tensor) -> Any:
    x, size = _magnitude(self, "erfc_vml_cpu")
    far = _complement(size)
    result = F.where(F.lt(x, 0), 2 - far, far)
    result = F.where(F.le(size, _NEAR_LIMIT), 1 - _near(x), result)
    return to_dtype(result, float_result(self.dtype))
