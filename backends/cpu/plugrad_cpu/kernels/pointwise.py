"""Kernels that work element by element; NumPy broadcasts, the core has promoted the dtypes.

If a ufunc does what PyTorch does, it is the kernel itself: on small arrays a Python function around
it would be a fifth of the time.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import no_signs, not_implemented
from plugrad_cpu.kernels.linalg import is_narrow, widen
from plugrad_cpu.kernels.selection import (
    clamp,
    clamp_max,
    clamp_min,
    nan_to_num,
    where,
    where_numbers,
)
from plugrad_cpu.numerics.adapters import (
    Array,
    Kernel,
    as_operand,
    comes_down_to,
    in_float32,
    in_order,
    rejecting,
    rejecting_binary,
    wide_ternary,
    with_number,
    with_number_first,
)
from plugrad_cpu.numerics.floating_errors import run_integer_division

_INTEGRAL: Final = "biu"  # numpy.dtype.kind; for bfloat16 it is "V"


def neg(a: Array) -> Any:
    try:
        return np.negative(a)
    except TypeError:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        ) from None


def divide_rounded(a: Array, b: Any, rounding_mode: str | None) -> Any:
    if is_narrow(a) and not isinstance(b, np.ndarray):
        return divide_rounded(widen(a), b, rounding_mode).astype(a.dtype)
    if not isinstance(b, np.ndarray):
        b = as_operand(b, a.dtype)
    if rounding_mode is None:
        return np.true_divide(a, b)
    return floor_divide(a, b) if rounding_mode == "floor" else _divide_truncated(a, b)


def rsub_number(a: Array, number: Any, alpha: Any) -> Any:
    if alpha != 1 and is_narrow(a):
        # The numbers are rounded, but not the product, as in PyTorch.
        number, alpha = float(as_operand(number, a.dtype)), float(as_operand(alpha, a.dtype))
        return rsub_number(widen(a), number, alpha).astype(a.dtype)
    return np.subtract(
        as_operand(number, a.dtype), a if alpha == 1 else a * as_operand(alpha, a.dtype)
    )


def floor_divide(a: Array, b: Array) -> Any:
    kind = a.dtype.kind
    if kind in "iu":
        return run_integer_division(np.floor_divide, a, b)
    if kind in "bc":
        raise not_implemented("div_floor_cpu", a.dtype)
    return np.floor_divide(a, b)


def _truncated_quotient(a: Array, b: Array) -> Any:
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


def _divide_truncated(a: Array, b: Array) -> Any:
    kind = a.dtype.kind
    if kind in "iu":
        return run_integer_division(_truncated_quotient, a, b)
    if kind in "bc":
        raise not_implemented("div_trunc_cpu", a.dtype)
    return np.trunc(np.true_divide(a, b))


def _modulo(ufunc: Kernel, name: str) -> Kernel:
    def kernel(a: Array, b: Array) -> Any:
        kind = a.dtype.kind
        if kind in "iu":
            return run_integer_division(ufunc, a, b)
        if kind in "bc":
            raise not_implemented(name, a.dtype)
        return ufunc(a, b)

    return kernel


def _remainder(a: Array, b: Array) -> Any:
    """A zero has the sign of `a`; NumPy's have the sign of `b`."""
    out = np.remainder(a, b)
    if out.dtype.kind in "iu" or np.all(out):
        return out
    out = np.asarray(out)
    np.putmask(out, out == 0, np.copysign(out, a))
    return out


def _is_one_half(exponent: Array) -> bool:
    """Whether an array is a half that is repeated, if at all, without memory of its own."""
    if exponent.size == 1 or (exponent.size and not any(exponent.strides)):
        return bool(exponent.flat[0] == 0.5)
    return False


def pow_tensors(a: Array, b: Array) -> Any:
    kind = a.dtype.kind
    if kind not in _INTEGRAL:
        if kind == "f" and _is_one_half(b):
            # NumPy takes the root for a single exponent: -0.0 of -0.0, and nan of -infinity.
            a = np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape))
            return np.where(np.isinf(a), np.inf, np.sqrt(a) + 0.0).astype(a.dtype, copy=False)
        return np.power(a, b)
    if kind == "b":
        raise not_implemented("pow", a.dtype)
    try:
        return np.power(a, b)
    except ValueError:
        # The truncated reciprocal: 0 except for bases 1 and -1, where only the exponent's parity
        # matters; PyTorch has 0 for base 0.
        power = np.power(a, np.where(b >= 0, b, b & 1))
        return np.where(b >= 0, power, np.where(np.abs(a) == 1, power, 0)).astype(a.dtype)


def number_pow(number: Any, exponent: Array) -> Any:
    """As in PyTorch, the number 1 gives 1 also for a complex infinity or nan; a bool does not."""
    if exponent.dtype.kind == "c" and number == 1 and number is not True:
        return np.ones_like(exponent)
    return pow_tensors(as_operand(number, exponent.dtype), exponent)


def _one(a: Array) -> Any:
    return np.ones_like(a)


def reciprocal(a: Array, out: Array | None = None) -> Any:
    """Complex numbers use division: NumPy's own gives nan for 0, and -0 where PyTorch has 0."""
    if a.dtype.kind == "c":
        return np.true_divide(as_operand(1, a.dtype), a, out=out)
    return np.reciprocal(a, out=out)


def _reciprocal_square(a: Array) -> Any:
    return np.reciprocal(np.square(a))


def rsqrt(a: Array) -> Any:
    return np.reciprocal(np.sqrt(a))


def _cube(a: Array) -> Any:
    return a * a * a


_EASY_POWERS: Final[dict[Any, Kernel]] = {
    2: np.square,
    3: in_float32(_cube),
    0.5: np.sqrt,
    -1: reciprocal,
    -2: in_float32(_reciprocal_square),
    -0.5: in_float32(rsqrt),
    1: np.positive,
    0: _one,
}


def pow_number(a: Array, exponent: Any) -> Any:
    kind = a.dtype.kind
    if kind in _INTEGRAL:
        if kind == "b":
            return a.copy() if exponent else np.ones_like(a)
        if exponent == 2:
            return np.square(a)
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
    else:
        easy = _EASY_POWERS.get(exponent)
        if easy is not None:
            return easy(a)
    return np.power(a, as_operand(exponent, a.dtype))


def sign(a: Array) -> Any:
    kind = a.dtype.kind
    if kind == "b":
        return a.copy()
    if kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. "
            "Please use torch.sgn instead."
        )
    return _signs(a)


def sgn(a: Array) -> Any:
    return a.copy() if a.dtype.kind == "b" else _signs(a)


def _signs(a: Array) -> Any:
    """Signs of numbers; PyTorch's sign of nan is 0, NumPy's is nan."""
    signs = np.sign(a)
    kind = a.dtype.kind
    if kind in "iuc":
        return signs
    # The squares of signs sum up to nan if one is nan: cheaper than looking at each.
    any_nan = np.vdot(signs, signs) if kind == "f" else np.isnan(signs).any() * math.nan
    if any_nan != any_nan:
        return np.where(np.isnan(a), signs.dtype.type(0), signs)
    return signs


def round_to_even(a: Array) -> Any:
    kind = a.dtype.kind
    if kind in "iu":
        return a.copy()
    if kind in "bc":
        raise not_implemented("round_vml_cpu", a.dtype)
    return np.rint(a)


def round_decimals(a: Array, decimals: int) -> Any:
    if a.dtype.kind in "biuc":
        raise not_implemented("round_cpu", a.dtype)
    if a.itemsize == 2:
        return round_decimals(a.astype(np.float32), decimals).astype(a.dtype)
    scale = as_operand(float(f"1e{abs(decimals)}"), a.dtype)
    if decimals < 0:
        return np.multiply(np.rint(a / scale), scale)
    return np.divide(np.rint(a * scale), scale)


def frac(a: Array) -> Any:
    return a - np.trunc(a)


def sigmoid(a: Array) -> Any:
    if a.ndim == 0 or a.itemsize == 2:
        return in_float32(_sigmoid_expression)(a)
    result = np.negative(a)
    np.exp(result, out=result)
    np.add(result, 1, out=result)
    return np.true_divide(1, result, out=result)


def _sigmoid_expression(a: Array) -> Any:
    return np.reciprocal(np.exp(-a) + as_operand(1, a.dtype))


def _load_special(name: str) -> Kernel:
    """`scipy.special.<name>` if SciPy is installed, else the slower function of `math`."""
    try:
        special = importlib.import_module("scipy.special")
    except ImportError:
        of_objects = np.frompyfunc(getattr(math, name), 1, 1)

        def by_elements(a: Array) -> Any:
            return np.asarray(of_objects(a.astype(np.float64))).astype(a.dtype)

        return by_elements
    found: Kernel = getattr(special, name)
    return found


class _Special:
    """A special function that is looked for when it is first called: SciPy imports slowly."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.function: Kernel | None = None

    def __call__(self, a: Array) -> Any:
        if self.function is None:
            self.function = in_float32(_load_special(self.name))
        return self.function(a)


def conj_physical(a: Array) -> Any:
    return np.conjugate(a) if a.dtype.kind == "c" else a.copy()


def imag(a: Array) -> Any:
    return a.imag


def angle(a: Array) -> Any:
    if a.dtype.kind == "c":
        return np.arctan2(a.imag, a.real)
    result = np.where(a < 0, a.dtype.type(math.pi), a.dtype.type(0))
    return np.where(np.isnan(a), a, result)


def equal(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(np.equal(a, b).all())


def lerp(start: Array, end: Array, weight: Any, out: Array | None = None) -> Any:
    """From the nearer end, so that weight 1 gives `end` exactly."""
    difference = end - start
    if isinstance(weight, np.ndarray) and weight.ndim > 0:
        from_end = end - difference * (1 - weight)
        found = np.where(np.abs(weight) < 0.5, start + weight * difference, from_end)
        return found if out is None else np.positive(found, out)
    if abs(weight) < 0.5:
        return np.add(start, difference * as_operand(weight, start.dtype), out)
    return np.subtract(end, difference * as_operand(1 - weight, start.dtype), out)


def addcmul(a: Array, b: Array, c: Array, value: Any, out: Array | None = None) -> Any:
    product = b * c if value == 1 else as_operand(value, b.dtype) * b * c
    return np.add(a, product, out)


def addcdiv(a: Array, b: Array, c: Array, value: Any, out: Array | None = None) -> Any:
    return np.add(a, (b if value == 1 else as_operand(value, b.dtype) * b) / c, out)


def signbit(a: Array) -> Any:
    if a.dtype.kind == "c":
        raise no_signs()
    if a.dtype.kind in _INTEGRAL:
        return a < 0
    # A bfloat16 nan has no sign, as every cast to that dtype drops it.
    return np.signbit(a) & ~np.isnan(a) if a.dtype.kind == "V" else np.signbit(a)


def logaddexp(a: Array, b: Array) -> Any:
    if a.dtype.kind == "c":
        return NotImplemented
    if a.dtype.kind in _INTEGRAL:
        raise not_implemented("logaddexp_cpu", a.dtype)
    return np.logaddexp(a, b)


_BINARY: Final[dict[str, Kernel]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "atan2": np.arctan2,
    "hypot": rejecting_binary("biuc", "hypot_cpu", np.hypot),
    "logaddexp": logaddexp,
}

_UNARY: Final[dict[str, Kernel]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": in_float32(rsqrt),
    "reciprocal": reciprocal,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sigmoid": sigmoid,
}

_COMPARISONS: Final[dict[str, Kernel]] = {
    "lt": rejecting_binary("c", "lt_cpu", np.less),
    "le": rejecting_binary("c", "le_cpu", np.less_equal),
    "gt": rejecting_binary("c", "gt_cpu", np.greater),
    "ge": rejecting_binary("c", "ge_cpu", np.greater_equal),
    "eq": np.equal,
    "ne": np.not_equal,
}

_BITWISE: Final[dict[str, Kernel]] = {
    "bitwise_and": rejecting_binary("fcV", "bitwise_and_cpu", np.bitwise_and),
    "bitwise_or": rejecting_binary("fcV", "bitwise_or_cpu", np.bitwise_or),
    "bitwise_xor": rejecting_binary("fcV", "bitwise_xor_cpu", np.bitwise_xor),
    "bitwise_left_shift": rejecting_binary("bfcV", "lshift_cpu", np.left_shift),
    "bitwise_right_shift": rejecting_binary("bfcV", "rshift_cpu", np.right_shift),
}

_MODULO: Final[dict[str, Kernel]] = {
    "floor_divide": floor_divide,
    "remainder": _modulo(_remainder, "remainder_cpu"),
    "fmod": _modulo(np.fmod, "fmod_cpu"),
}

KERNELS: Final[dict[str, Kernel]] = {
    **_BINARY,
    **_UNARY,
    **_COMPARISONS,
    **_BITWISE,
    **_MODULO,
    "div.Tensor_mode": divide_rounded,
    "div.Scalar_mode": divide_rounded,
    "imag": imag,
    "rsub.Scalar": rsub_number,
    "pow.Tensor_Tensor": pow_tensors,
    "pow.Scalar": in_order(number_pow),
    "pow.Tensor_Scalar": pow_number,
    "neg": neg,
    "abs": rejecting("b", "abs_cpu", np.abs),
    "sign": sign,
    "sgn": sgn,
    "ceil": rejecting("bc", "ceil_vml_cpu", np.ceil),
    "floor": rejecting("bc", "floor_vml_cpu", np.floor),
    "trunc": rejecting("bc", "trunc_vml_cpu", np.trunc),
    "round": round_to_even,
    "round.decimals": round_decimals,
    "frac": rejecting("biuc", "frac_cpu", frac),
    "erf": rejecting("c", "erf_vml_cpu", _Special("erf")),
    "erfc": rejecting("c", "erfc_vml_cpu", _Special("erfc")),
    "conj_physical": conj_physical,
    "angle": angle,
    "nan_to_num": nan_to_num,
    "maximum": rejecting_binary("c", "maximum", np.maximum),
    "minimum": rejecting_binary("c", "minimum", np.minimum),
    "fmax": rejecting_binary("c", "fmax", np.fmax),
    "fmin": rejecting_binary("c", "fmin", np.fmin),
    "clamp": clamp,
    "clamp_min": clamp_min,
    "clamp_max": clamp_max,
    "lerp": wide_ternary(lerp),
    "addcmul": wide_ternary(addcmul),
    "addcdiv": wide_ternary(addcdiv),
    "equal": equal,
    "where": where,
    "where.Scalar": where_numbers,
    "isnan": np.isnan,
    "signbit": signbit,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bitwise_not": rejecting("fcV", "bitwise_not_cpu", np.invert),
}

_WITH_NUMBER: Final = ("add", "sub", "mul", "div", *_MODULO, *_COMPARISONS)
_SHIFTS: Final = ("bitwise_left_shift", "bitwise_right_shift")
_BITS: Final = ("bitwise_and", "bitwise_or", "bitwise_xor")

KERNELS.update({f"{name}.Scalar": with_number(KERNELS[name]) for name in (*_WITH_NUMBER, *_BITS)})
KERNELS.update({f"{name}.Tensor_Scalar": with_number(KERNELS[name]) for name in _SHIFTS})
KERNELS.update(
    {
        f"{name}.Scalar_Tensor": with_number_first(KERNELS[name])
        for name in ("floor_divide", "remainder", *_BITS, *_SHIFTS)
    }
)


def _in_place(ufunc: Kernel) -> Kernel:
    @comes_down_to(lambda a, b: (ufunc, (a, b, a)) if isinstance(ufunc, np.ufunc) else None)
    def kernel(a: Array, b: Array) -> Any:
        return ufunc(a, b, out=a)

    return kernel


def _in_place_unary(ufunc: Kernel) -> Kernel:
    @comes_down_to(lambda a: (ufunc, (a, a)) if isinstance(ufunc, np.ufunc) else None)
    def kernel(a: Array) -> Any:
        return ufunc(a, out=a)

    return kernel


def _in_place_with_number(ufunc: Kernel) -> Kernel:
    def lowered(a: Array, number: Any) -> Any:
        plain = isinstance(ufunc, np.ufunc)
        return (ufunc, (a, as_operand(number, a.dtype), a)) if plain else None

    @comes_down_to(lowered)
    def kernel(a: Array, number: Any) -> Any:
        return ufunc(a, as_operand(number, a.dtype), out=a)

    return kernel


# What optimizers and gradient accumulation do in place. The others are derived by the core.
for _name in ("add", "sub", "mul", "div"):
    KERNELS[f"{_name}_.Tensor"] = _in_place(_BINARY[_name])
    KERNELS[f"{_name}_.Scalar"] = _in_place_with_number(_BINARY[_name])
for _name, _function in _UNARY.items():
    if isinstance(_function, np.ufunc) or _function is reciprocal:
        KERNELS[f"{_name}_"] = _in_place_unary(_function)
