"""Bits of integers by arithmetic, for backends without kernels: many operations, but exact."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL, FLOATING, DType, iinfo
from plugrad.ops.composite.elementwise.scalars import digits_of, number_beside, widest_float
from plugrad.tensor.calls.promotion import promote_pair, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _promoted(self: Tensor, other: Tensor, kernel: str) -> tuple[Any, Any]:
    dtype = promote_pair(self, other)
    _check_integral(dtype, kernel)
    return to_dtype(self, dtype), to_dtype(other, dtype)


def _check_integral(dtype: DType, kernel: str) -> None:
    if dtype.category >= FLOATING:
        raise not_implemented(kernel, dtype)


def bitwise_not(self: Tensor) -> Tensor:
    _check_integral(self.dtype, "bitwise_not_cpu")
    if self.dtype.category == BOOL:
        return F.logical_not(self)
    return (-1 if self.dtype.is_signed else iinfo(self.dtype).max) - self


def bitwise_and(self: Tensor, other: Tensor) -> Tensor:
    a, b = _promoted(self, other, "bitwise_and_cpu")
    if a.dtype.category == BOOL:
        return F.mul(a, b)
    return _common_bits(a, b)


def bitwise_or(self: Tensor, other: Tensor) -> Tensor:
    a, b = _promoted(self, other, "bitwise_or_cpu")
    if a.dtype.category == BOOL:
        return F.logical_or(a, b)
    return a + b - _common_bits(a, b)


def bitwise_xor(self: Tensor, other: Tensor) -> Tensor:
    a, b = _promoted(self, other, "bitwise_xor_cpu")
    if a.dtype.category == BOOL:
        return F.ne(a, b)
    return a + b - _common_bits(a, b) * 2


def _common_bits(a: Any, b: Any) -> Any:
    """The highest bit apart, if it is a sign; the others in parts that floats hold exactly."""
    dtype = a.dtype
    width = 8 * dtype.itemsize
    result: Any = None
    if dtype.is_signed:
        width -= 1
        least = iinfo(dtype).min
        negative = [F.lt(operand, 0) for operand in (a, b)]
        a, b = [
            F.where(sign, operand + least, operand)
            for sign, operand in zip(negative, (a, b), strict=True)
        ]
        result = F.where(F.logical_and(negative[0], negative[1]), least, F.zeros_like(a + b))
    wide = widest_float(a.device)
    length = 32 if digits_of(wide) > 32 else 16
    place = 0
    while place < width:
        low = [a, b]
        if width - place > length:
            high = [F.floor_divide(operand, 2**length) for operand in (a, b)]
            low = [operand - top * 2**length for operand, top in zip((a, b), high, strict=True)]
            a, b = high
        part = _common_low_bits(low[0], low[1], min(length, width - place), wide) * 2**place
        result = part if result is None else result + part
        place += length
    return result


def _common_low_bits(a: Any, b: Any, width: int, wide: DType) -> Any:
    dtype = a.dtype
    x: Any = to_dtype(a, wide)
    y: Any = to_dtype(b, wide)
    total: Any = None
    for place in range(width):
        half_x, half_y = F.floor(x * 0.5), F.floor(y * 0.5)
        bit = (x - half_x * 2) * (y - half_y * 2) * 2.0**place
        total = bit if total is None else total + bit
        x, y = half_x, half_y
    return to_dtype(total, dtype)


def bitwise_left_shift(self: Tensor, other: Tensor) -> Tensor:
    a, b, inside = _shifted(self, other, "lshift_cpu", 0)
    return F.where(inside, a * _power_of_2(b, inside), 0)


def bitwise_right_shift(self: Tensor, other: Tensor) -> Tensor:
    # Shifted by all bits but the sign, what is left is the sign.
    a, b, inside = _shifted(self, other, "rshift_cpu", 1)
    zero = F.zeros_like(a)
    rest = F.where(F.lt(a, 0), -1, zero) if a.dtype.is_signed else zero
    return F.where(inside, F.floor_divide(a, _power_of_2(b, inside)), rest)


def _shifted(self: Tensor, other: Tensor, kernel: str, sign: int) -> tuple[Any, Any, Any]:
    """The operands, and where the number of places is less than the number of bits."""
    a, b = _promoted(self, other, kernel)
    if a.dtype.category == BOOL:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    width = 8 * a.dtype.itemsize - (sign if a.dtype.is_signed else 0)
    return a, b, F.logical_and(F.ge(b, 0), F.lt(b, width))


def _power_of_2(places: Any, inside: Any) -> Any:
    return F.pow(number_beside(places, 2), F.where(inside, places, 0))


def and_number(self: Tensor, other: Any) -> Tensor:
    return F.bitwise_and(self, number_beside(self, other))


def number_and(self: Any, other: Tensor) -> Tensor:
    return F.bitwise_and(number_beside(other, self), other)


def or_number(self: Tensor, other: Any) -> Tensor:
    return F.bitwise_or(self, number_beside(self, other))


def number_or(self: Any, other: Tensor) -> Tensor:
    return F.bitwise_or(number_beside(other, self), other)


def xor_number(self: Tensor, other: Any) -> Tensor:
    return F.bitwise_xor(self, number_beside(self, other))


def number_xor(self: Any, other: Tensor) -> Tensor:
    return F.bitwise_xor(number_beside(other, self), other)


def left_shift_number(self: Tensor, other: Any) -> Tensor:
    return F.bitwise_left_shift(self, number_beside(self, other))


def number_left_shift(self: Any, other: Tensor) -> Tensor:
    return F.bitwise_left_shift(number_beside(other, self), other)


def right_shift_number(self: Tensor, other: Any) -> Tensor:
    return F.bitwise_right_shift(self, number_beside(self, other))


def number_right_shift(self: Any, other: Tensor) -> Tensor:
    return F.bitwise_right_shift(number_beside(other, self), other)
