"""Kernels that work element by element; JAX broadcasts, the core has promoted the dtypes."""

from __future__ import annotations

import math
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from plugrad.plugins.kernel_errors import no_signs, not_implemented
from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.programs import (
    Array,
    Kernel,
    constant,
    fitting,
    in_float32,
    is_narrow,
    program,
    rejecting,
    widen,
    with_number,
    with_number_first,
    with_numbers,
)

_INTEGRAL: Final = "biu"  # numpy.dtype.kind; for bfloat16 it is "V"


def _neg(a: Array) -> Array:
    if a.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return jnp.negative(a)


def _rsub(a: Array, number: Any, alpha: Any) -> Array:
    if alpha != 1 and is_narrow(a):
        # The numbers are rounded, but not the product, as in PyTorch.
        factor = constant(alpha, a).astype("float32")
        return (widen(number.astype(a.dtype)) - widen(a) * factor).astype(a.dtype)
    return number.astype(a.dtype) - (a if alpha == 1 else a * constant(alpha, a))


def _true_divide(a: Array, b: Array) -> Array:
    if a.dtype.kind != "c":
        return lax.div(*jnp.broadcast_arrays(a, b))
    return _divide_complex(a, b)


def _divide_complex(a: Array, b: Array) -> Array:
    """As NumPy and PyTorch do it (Smith): the larger part of the divisor scales the other."""
    flat = jnp.abs(b.real) >= jnp.abs(b.imag)
    large = jnp.where(flat, b.real, b.imag)
    small = jnp.where(flat, b.imag, b.real)
    both_zero = (large == 0) & (small == 0)
    ratio = jnp.where(both_zero, 0, small / large)
    scale = jnp.where(both_zero, jnp.abs(large), large + small * ratio)
    first = jnp.where(flat, a.real + a.imag * ratio, a.real * ratio + a.imag)
    second = jnp.where(flat, a.imag - a.real * ratio, a.imag * ratio - a.real)
    return lax.complex(first / scale, jnp.where(both_zero, a.imag, second) / scale)


def _floor_divide(a: Array, b: Array) -> Array:
    kind = a.dtype.kind
    if kind in "bc":
        raise not_implemented("div_floor_cpu", a.dtype)
    if kind in "iu":
        return jnp.floor_divide(a, b)
    remainder = lax.rem(*jnp.broadcast_arrays(a, b))
    quotient = (a - remainder) / b
    quotient = jnp.where((remainder != 0) & ((b < 0) != (remainder < 0)), quotient - 1, quotient)
    whole = jnp.floor(quotient)
    whole = jnp.where(quotient - whole > 0.5, whole + 1, whole)
    whole = jnp.where(quotient == 0, jnp.copysign(jnp.zeros_like(whole), a / b), whole)
    return jnp.where(b == 0, a / b, whole).astype(a.dtype)


def _trunc_divide(a: Array, b: Array) -> Array:
    kind = a.dtype.kind
    if kind in "bc":
        raise not_implemented("div_trunc_cpu", a.dtype)
    quotient = lax.div(*jnp.broadcast_arrays(a, b))
    return quotient if kind in "iu" else jnp.trunc(quotient)


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind in "bc":
        raise not_implemented("remainder_cpu", a.dtype)
    rest = lax.rem(*jnp.broadcast_arrays(a, b))
    return jnp.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def _fmod(a: Array, b: Array) -> Array:
    if a.dtype.kind in "bc":
        raise not_implemented("fmod_cpu", a.dtype)
    return lax.rem(*jnp.broadcast_arrays(a, b))


def _zero_division(detail: Any) -> Exception:
    return RuntimeError("ZeroDivisionError")


class _Division:
    """A division of two arrays that refuses zero divisors among integers."""

    def __init__(self, function: Kernel) -> None:
        self.function = function
        self.of_floats = program(function)
        self.of_integers = program(lambda a, b: (function(a, b), jnp.any(b == 0)))
        self.by_number = with_number(function)
        self.of_number = with_number_first(function)

    def __call__(self, a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            return self.of_floats(a, b)
        out, bad = self.of_integers(a, b)
        raise_later(bad, _zero_division)
        return out

    def number(self, a: Array, b: Any) -> Array:
        if a.dtype.kind in "iu" and b == 0:
            raise _zero_division(None)
        return self.by_number(a, b)

    def number_first(self, a: Any, b: Array) -> Array:
        if b.dtype.kind in "iu":
            return self(constant(a, b), b)
        return self.of_number(a, b)


_divide_floor: Final = _Division(in_float32(_floor_divide))
_divide_trunc: Final = _Division(_trunc_divide)
_divide_remainder: Final = _Division(in_float32(_remainder))
_divide_fmod: Final = _Division(_fmod)
_divide: Final = program(_true_divide)
_divide_number: Final = with_number(_true_divide)
_ROUNDED: Final = {"floor": _divide_floor, "trunc": _divide_trunc}


def divide_rounded(a: Array, b: Any, rounding_mode: str | None) -> Array:
    is_array = isinstance(b, jax.Array)
    if rounding_mode is None:
        return _divide(a, b) if is_array else _divide_number(a, b)
    division = _ROUNDED[rounding_mode]
    return division(a, b) if is_array else division.number(a, b)


def _power(a: Array, b: Array) -> Array:
    kind = a.dtype.kind
    if kind == "b":
        raise not_implemented("pow", a.dtype)
    if kind not in "iu":
        return jnp.power(a, b)
    if kind == "u":
        return jnp.power(a, b)
    # A negative exponent: the truncated reciprocal, and PyTorch's 0 for base 0.
    power = jnp.power(a, jnp.abs(b))
    return jnp.where((b >= 0) | (jnp.abs(a) == 1), power, 0).astype(a.dtype)


_EASY_POWERS: Final[dict[Any, Kernel]] = {
    2: program(jnp.square),
    3: program(in_float32(lambda a: a * a * a)),
    0.5: program(jnp.sqrt),
    -1: program(lambda a: _true_divide(jnp.ones_like(a), a)),
    -2: program(in_float32(lambda a: _true_divide(jnp.ones_like(a), jnp.square(a)))),
    -0.5: program(in_float32(lambda a: _true_divide(jnp.ones_like(a), jnp.sqrt(a)))),
    1: program(jnp.positive),
    0: program(jnp.ones_like),
}
_power_number: Final = with_number(_power)


def pow_number(a: Array, exponent: Any) -> Array:
    kind = a.dtype.kind
    if kind in "iu" and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if kind == "b":
        return _EASY_POWERS[1 if exponent else 0](a)
    easy = _EASY_POWERS.get(exponent)
    return _power_number(a, exponent) if easy is None else easy(a)


def _sign(a: Array) -> Array:
    if a.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. "
            "Please use torch.sgn instead."
        )
    return _sgn(a)


def _sgn(a: Array) -> Array:
    """PyTorch's sign of nan is 0."""
    kind = a.dtype.kind
    if kind == "b":
        return a
    if kind in "iu":
        return jnp.sign(a)
    if kind == "c":
        magnitude = jnp.abs(a)
        unit = lax.complex(a.real / magnitude, a.imag / magnitude)
        return jnp.where(magnitude == 0, jnp.zeros_like(a), unit)
    return jnp.where(jnp.isnan(a), jnp.zeros_like(a), jnp.sign(a))


def _round(a: Array) -> Array:
    kind = a.dtype.kind
    if kind in "iu":
        return a
    if kind in "bc":
        raise not_implemented("round_vml_cpu", a.dtype)
    return lax.round(a, lax.RoundingMethod.TO_NEAREST_EVEN)


def _round_decimals(a: Array, decimals: int) -> Array:
    if a.dtype.kind in "biuc":
        raise not_implemented("round_cpu", a.dtype)
    if is_narrow(a):
        return _round_decimals(widen(a), decimals).astype(a.dtype)
    scale = constant(float(f"1e{abs(decimals)}"), a)
    if decimals < 0:
        return lax.round(a / scale, lax.RoundingMethod.TO_NEAREST_EVEN) * scale
    return lax.round(a * scale, lax.RoundingMethod.TO_NEAREST_EVEN) / scale


def _of_reals(function: Kernel) -> Kernel:
    """A rounding function, which leaves integers as they are."""
    return lambda a: a if a.dtype.kind in "iu" else function(a)


def _sigmoid(a: Array) -> Array:
    return _reciprocal(jnp.exp(-a) + constant(1, a))


def _reciprocal(a: Array) -> Array:
    return _true_divide(jnp.ones_like(a), a)


def _angle(a: Array) -> Array:
    if a.dtype.kind == "c":
        return jnp.arctan2(a.imag, a.real)
    angles = jnp.where(a < 0, constant(math.pi, a), constant(0, a))
    return jnp.where(jnp.isnan(a), a, angles)


def _nan_to_num(a: Array, nan: Any, posinf: Any, neginf: Any) -> Array:
    if a.dtype.kind in _INTEGRAL:
        return a
    if a.dtype.kind == "c":
        parts = (_nan_to_num(part, nan, posinf, neginf) for part in (a.real, a.imag))
        return lax.complex(*parts)
    out = jnp.where(jnp.isnan(a), constant(nan, a), a)
    out = jnp.where(a == math.inf, constant(posinf, a), out)
    return jnp.where(a == -math.inf, constant(neginf, a), out)


_all_equal: Final = program(lambda a, b: jnp.all(a == b))


def equal(a: Array, b: Array) -> bool:
    """Whether shapes and elements are the same: a Python bool, so it waits for the device."""
    return a.shape == b.shape and bool(_all_equal(a, b))


def _lerp(start: Array, end: Array, weight: Any) -> Array:
    """From the nearer end, so that weight 1 gives `end` exactly."""
    weight = constant(weight, start)
    difference = end - start
    near = jnp.abs(weight) < 0.5
    from_end = end - difference * (constant(1, start) - weight)
    return jnp.where(near, start + weight * difference, from_end)


def _addcmul(a: Array, b: Array, c: Array, value: Any) -> Array:
    return a + constant(value, b) * b * c


def _addcdiv(a: Array, b: Array, c: Array, value: Any) -> Array:
    return a + _true_divide(constant(value, b) * b, c)


_where: Final = program(jnp.where)
_where_typed: Final = program(
    lambda condition, a, b, dtype: jnp.where(condition, a.astype(dtype), b.astype(dtype)), 3
)


def where(condition: Array, a: Any, b: Any) -> Array:
    """At most one of `a` and `b` is a number; the arrays have one dtype."""
    if isinstance(a, jax.Array):
        if isinstance(b, jax.Array):
            return _where(condition, a, b)
        return where_numbers(condition, a, b, a.dtype)
    return where_numbers(condition, a, b, b.dtype)


def where_numbers(condition: Array, a: Any, b: Any, dtype: Any) -> Array:
    return _where_typed(condition, fitting(a, dtype), fitting(b, dtype), dtype)


def _clamp(a: Array, low: Any, high: Any) -> Array:
    """The upper bound wins; nan stays, and in a bound spreads."""
    if low is not None:
        a = jnp.maximum(a, constant(low, a))
    return a if high is None else jnp.minimum(a, constant(high, a))


def _class(function: Kernel, otherwise: bool) -> Kernel:
    """A question about floating point numbers, and what is true of all others."""

    def of_any(a: Array) -> Array:
        if a.dtype.kind in _INTEGRAL:
            return jnp.full(a.shape, otherwise)
        return function(a)

    return of_any


def _signbit(a: Array) -> Array:
    if a.dtype.kind == "c":
        raise no_signs()
    if a.dtype.kind in _INTEGRAL:
        return a < 0
    # A bfloat16 nan has no sign, as every cast to that dtype drops it.
    return jnp.signbit(a) & ~jnp.isnan(a) if a.dtype == jnp.bfloat16 else jnp.signbit(a)


def _logaddexp(a: Array, b: Array) -> Array:
    """JAX would bring the imaginary part of complex numbers between -pi and pi."""
    if a.dtype.kind != "c":
        return jnp.logaddexp(a, b)
    swap = a.real < b.real
    least, greatest = jnp.where(swap, a, b), jnp.where(swap, b, a)
    result = greatest + jnp.log1p(jnp.exp(least - greatest))
    alike = (a.real == b.real) & jnp.isinf(a.real)
    together = jnp.where(a.real < 0, least, jnp.log(jnp.exp(a) + jnp.exp(b)))
    unknown = jnp.isnan(a) | jnp.isnan(b)
    return jnp.where(unknown, complex("nan+nanj"), jnp.where(alike, together, result))


_UNARY: Final[dict[str, Kernel]] = {
    "exp": jnp.exp,
    "exp2": jnp.exp2,
    "expm1": jnp.expm1,
    "log": jnp.log,
    "log2": jnp.log2,
    "log10": jnp.log10,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "rsqrt": in_float32(lambda a: _reciprocal(jnp.sqrt(a))),
    "reciprocal": _reciprocal,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh,
    "atanh": jnp.arctanh,
    "sigmoid": in_float32(_sigmoid),
    "neg": _neg,
    "abs": rejecting("b", "abs_cpu", jnp.abs),
    "sign": _sign,
    "sgn": _sgn,
    "ceil": rejecting("bc", "ceil_vml_cpu", _of_reals(jnp.ceil)),
    "floor": rejecting("bc", "floor_vml_cpu", _of_reals(jnp.floor)),
    "trunc": rejecting("bc", "trunc_vml_cpu", _of_reals(jnp.trunc)),
    "round": _round,
    "frac": rejecting("biuc", "frac_cpu", lambda a: a - jnp.trunc(a)),
    "erf": rejecting("c", "erf_vml_cpu", in_float32(lax.erf)),
    "erfc": rejecting("c", "erfc_vml_cpu", in_float32(lax.erfc)),
    "conj_physical": jnp.conjugate,
    "imag": jnp.imag,
    "angle": _angle,
    "isnan": _class(jnp.isnan, False),
    "signbit": _signbit,
    "isinf": _class(jnp.isinf, False),
    "isfinite": _class(jnp.isfinite, True),
    "logical_not": jnp.logical_not,
    "bitwise_not": rejecting("fcV", "bitwise_not_cpu", jnp.bitwise_not),
}

_BINARY: Final[dict[str, Kernel]] = {
    "atan2": jnp.arctan2,
    "hypot": rejecting("biuc", "hypot_cpu", jnp.hypot),
    "logaddexp": rejecting("biu", "logaddexp_cpu", _logaddexp),
    "maximum": rejecting("c", "maximum", jnp.maximum),
    "minimum": rejecting("c", "minimum", jnp.minimum),
    "fmax": rejecting("c", "fmax", jnp.fmax),
    "fmin": rejecting("c", "fmin", jnp.fmin),
    "logical_and": jnp.logical_and,
    "logical_or": jnp.logical_or,
    "logical_xor": jnp.logical_xor,
    "pow.Tensor_Tensor": _power,
}

# Those that take a number in the second place as well.
_WITH_NUMBER: Final[dict[str, Kernel]] = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": _true_divide,
    "lt": rejecting("c", "lt_cpu", jnp.less),
    "le": rejecting("c", "le_cpu", jnp.less_equal),
    "gt": rejecting("c", "gt_cpu", jnp.greater),
    "ge": rejecting("c", "ge_cpu", jnp.greater_equal),
    "eq": jnp.equal,
    "ne": jnp.not_equal,
}

_BITS: Final[dict[str, Kernel]] = {
    "bitwise_and": rejecting("fcV", "bitwise_and_cpu", jnp.bitwise_and),
    "bitwise_or": rejecting("fcV", "bitwise_or_cpu", jnp.bitwise_or),
    "bitwise_xor": rejecting("fcV", "bitwise_xor_cpu", jnp.bitwise_xor),
}

_SHIFTS: Final[dict[str, Kernel]] = {
    "bitwise_left_shift": rejecting("bfcV", "lshift_cpu", jnp.left_shift),
    "bitwise_right_shift": rejecting("bfcV", "rshift_cpu", jnp.right_shift),
}

_DIVISIONS: Final = {
    "floor_divide": _divide_floor,
    "remainder": _divide_remainder,
    "fmod": _divide_fmod,
}

_clamp_kernel: Final = with_numbers(_clamp, 1, 2)

KERNELS: Final[dict[str, Kernel]] = {
    **{name: program(function) for name, function in _UNARY.items()},
    **{
        name: program(function)
        for name, function in (_BINARY | _WITH_NUMBER | _BITS | _SHIFTS).items()
    },
    **{
        f"{name}.Scalar": with_number(function) for name, function in (_WITH_NUMBER | _BITS).items()
    },
    **{f"{name}.Tensor_Scalar": with_number(function) for name, function in _SHIFTS.items()},
    **{
        f"{name}.Scalar_Tensor": with_number_first(function)
        for name, function in (_BITS | _SHIFTS).items()
    },
    **_DIVISIONS,
    **{f"{name}.Scalar": division.number for name, division in _DIVISIONS.items()},
    "floor_divide.Scalar_Tensor": _divide_floor.number_first,
    "remainder.Scalar_Tensor": _divide_remainder.number_first,
    "div.Tensor_mode": divide_rounded,
    "div.Scalar_mode": divide_rounded,
    "rsub.Scalar": with_numbers(_rsub, 1, static=(2,)),
    "pow.Scalar": with_number_first(_power),
    "pow.Tensor_Scalar": pow_number,
    "round.decimals": program(_round_decimals, 1),
    "nan_to_num": with_numbers(_nan_to_num, 1, 2, 3),
    "clamp": _clamp_kernel,
    "clamp_min": lambda a, low: _clamp_kernel(a, low, None),
    "clamp_max": lambda a, high: _clamp_kernel(a, None, high),
    "lerp": with_numbers(in_float32(_lerp), 2),
    "addcmul": with_numbers(in_float32(_addcmul), 3),
    "addcdiv": with_numbers(in_float32(_addcdiv), 3),
    "equal": equal,
    "where": where,
    "where.Scalar": where_numbers,
}
