"""Kernels that work element by element; CuPy broadcasts, the core has promoted the dtypes.

Kernels that need more than one of CuPy's functions are fused into one launch.
"""

from __future__ import annotations

from typing import Any, Final

from plugrad.plugins.kernel_errors import not_implemented
from plugrad_cuda.kernels import expressions
from plugrad_cuda.kernels.family import Family, is_bfloat16, number, rejecting
from plugrad_cuda.kernels.family import scalar as typed
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace

_INTEGRAL: Final = "biu"


# Operator to the function of CuPy that is it.
_BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "true_divide",
    "atan2": "arctan2",
    "eq": "equal",
    "ne": "not_equal",
}
_UNARY: Final = {
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "reciprocal": "reciprocal",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
_CLASSES: Final = ("isnan", "isinf", "isfinite")
# Operator to CuPy's function, the kinds of dtypes that PyTorch refuses, and its name for that.
_REFUSING: Final = {
    "lt": ("less", "c", "lt_cuda"),
    "le": ("less_equal", "c", "le_cuda"),
    "gt": ("greater", "c", "gt_cuda"),
    "ge": ("greater_equal", "c", "ge_cuda"),
    "hypot": ("hypot", "biuc", "hypot_cuda"),
    "maximum": ("maximum", "c", "max_elementwise_cuda"),
    "minimum": ("minimum", "c", "minimum_cuda"),
    "fmax": ("fmax", "c", "fmax_cuda"),
    "fmin": ("fmin", "c", "fmin_cuda"),
    "bitwise_and": ("bitwise_and", "fcV", "bitwise_and_cuda"),
    "bitwise_or": ("bitwise_or", "fcV", "bitwise_or_cuda"),
    "bitwise_xor": ("bitwise_xor", "fcV", "bitwise_xor_cuda"),
    "bitwise_not": ("invert", "fcV", "bitwise_not_cuda"),
    "abs": ("absolute", "b", "abs_cuda"),
    "ceil": ("ceil", "bc", "ceil_cuda"),
    "floor": ("floor", "bc", "floor_cuda"),
    "trunc": ("trunc", "bc", "trunc_cuda"),
}


class Pointwise(Family):
    """Arithmetic, comparisons, logic, transcendental functions."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        erf, erfc = ns.erf, ns.erfc

        def error_function(xp: Any, a: Array) -> Any:
            return erf(a)

        def complementary_error_function(xp: Any, a: Array) -> Any:
            return erfc(a)

        self.cube = self.fused(expressions.cube)
        self.rsqrt = self.fused(expressions.rsqrt)
        self.reciprocal_square = self.fused(expressions.reciprocal_square)
        self.sigmoid = self.fused(expressions.sigmoid)
        self.erf = self.fused(error_function)
        self.erfc = self.fused(complementary_error_function)
        xp = self.xp
        self.floor_divide = self.division(
            "div_floor_cuda", xp.floor_divide, self.fused(expressions.floor_divide)
        )
        self.divide_truncated = self.division(
            "div_trunc_cuda",
            self.fused(expressions.truncated_quotient),
            self.fused(expressions.divide_truncated),
        )
        self.remainder = self.division(
            "remainder_cuda", xp.remainder, self.fused(expressions.remainder)
        )
        self.fmod = self.division("fmod_cuda", xp.fmod, self.fused(expressions.fmod))
        self.integer_power = self.fused(expressions.integer_power)
        self.float_signs = self.fused(expressions.float_signs)
        self.complex_signs = self.fused(expressions.complex_signs)
        self.frac = self.fused(expressions.frac)
        self.round_up_to = self.fused(expressions.round_up_to)
        self.round_down_to = self.fused(expressions.round_down_to)
        self.real_angle = self.fused(expressions.real_angle)
        self.lerp = self.fused(expressions.lerp)
        self.fused_addcmul = self.fused(expressions.addcmul)
        self.addcdiv = self.fused(expressions.addcdiv)
        self.fused_rsub = self.fused(expressions.rsub)
        self.both_clamped = self.fused(expressions.clamp)
        self.fused_nan_to_num = self.fused(expressions.nan_to_num)
        self.fused_left_shift = self.fused(expressions.left_shift)
        self.fused_right_shift = self.fused(expressions.right_shift)

    def kernels(self) -> dict[str, Kernel]:
        xp = self.xp
        found: dict[str, Kernel] = {}
        found.update({name: getattr(xp, function) for name, function in _BINARY.items()})
        found.update({name: getattr(xp, function) for name, function in _UNARY.items()})
        found.update({name: getattr(xp, name) for name in _CLASSES})
        for name, (function, kinds, refused) in _REFUSING.items():
            found[name] = rejecting(kinds, refused, getattr(xp, function))
        found.update(
            {
                "floor_divide": self.floor_divide,
                "remainder": self.remainder,
                "fmod": self.fmod,
                "bitwise_left_shift": rejecting("bfcV", "lshift_cuda", self.left_shift),
                "bitwise_right_shift": rejecting("bfcV", "rshift_cuda", self.right_shift),
            }
        )
        for name in (*("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"),
                     *("floor_divide", "remainder", "fmod"),
                     *("bitwise_and", "bitwise_or", "bitwise_xor")):  # fmt: skip
            found[f"{name}.Scalar"] = self.with_number(found[name])
        for name in ("bitwise_left_shift", "bitwise_right_shift"):
            found[f"{name}.Tensor_Scalar"] = self.with_number(found[name])
        for name in (*("floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift"),
                     *("bitwise_and", "bitwise_or", "bitwise_xor")):  # fmt: skip
            found[f"{name}.Scalar_Tensor"] = self.with_number_first(found[name])
        return found | self.composed() | self.in_place()

    def composed(self) -> dict[str, Kernel]:
        """Those that are not a single function of CuPy."""
        return {
            "div.Tensor_mode": self.divide_rounded,
            "div.Scalar_mode": self.divide_rounded,
            "logaddexp": self.logaddexp,
            "signbit": self.signbit,
            "rsqrt": self.rsqrt,
            "sigmoid": self.sigmoid,
            "imag": self.imag,
            "rsub.Scalar": self.rsub,
            "pow.Tensor_Tensor": self.pow_tensors,
            "pow.Scalar": self.number_pow,
            "pow.Tensor_Scalar": self.pow_number,
            "neg": self.neg,
            "sign": self.sign,
            "sgn": self.sgn,
            "round": self.round_to_even,
            "round.decimals": self.round_decimals,
            "frac": rejecting("biuc", "frac_cuda", self.frac),
            "erf": rejecting("c", "erf_cuda", self.erf),
            "erfc": rejecting("c", "erfc_cuda", self.erfc),
            "conj_physical": self.conj_physical,
            "angle": self.angle,
            "nan_to_num": self.nan_to_num,
            "clamp": self.clamp,
            "clamp_min": self.clamp_min,
            "clamp_max": self.clamp_max,
            "lerp": self.lerp,
            "addcmul": self.addcmul,
            "addcdiv": self.addcdiv,
            "equal": self.equal,
            "where": self.where,
            "where.Scalar": self.where_numbers,
            "logical_and": self.logical(self.xp.logical_and),
            "logical_or": self.logical(self.xp.logical_or),
            "logical_xor": self.logical(self.xp.logical_xor),
            "logical_not": self.logical_not,
        }

    def in_place(self) -> dict[str, Kernel]:
        """What optimizers and gradient accumulation do in place; the core derives the others."""
        found: dict[str, Kernel] = {}
        for name in ("add", "sub", "mul", "div"):
            function = getattr(self.xp, _BINARY[name])
            found[f"{name}_.Tensor"] = self.writing(function)
            found[f"{name}_.Scalar"] = self.writing_with_number(function)
        for name, unary in _UNARY.items():
            found[f"{name}_"] = self.writing_unary(getattr(self.xp, unary))
        return found

    def writing(self, function: Kernel) -> Kernel:
        def kernel(a: Array, b: Array) -> Any:
            return function(a, b, out=a)

        return kernel

    def writing_with_number(self, function: Kernel) -> Kernel:
        def kernel(a: Array, value: Any) -> Any:
            return function(a, typed(value, a.dtype), out=a)

        return kernel

    def writing_unary(self, function: Kernel) -> Kernel:
        def kernel(a: Array) -> Any:
            return function(a, out=a)

        return kernel

    def with_number(self, kernel: Kernel) -> Kernel:
        def number_kernel(a: Array, value: Any) -> Any:
            return kernel(a, typed(value, a.dtype))

        return number_kernel

    def with_number_first(self, kernel: Kernel) -> Kernel:
        """The number as an array, because kernels read the dtype of their first operand."""

        def number_kernel(value: Any, b: Array) -> Any:
            return kernel(self.xp.full((), typed(value, b.dtype), b.dtype), b)

        return number_kernel

    def neg(self, a: Array) -> Any:
        if a.dtype.kind == "b":
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        return self.xp.negative(a)

    def logaddexp(self, a: Array, b: Array) -> Any:
        """Complex numbers are left to the decomposition."""
        if a.dtype.kind in _INTEGRAL:
            raise not_implemented("logaddexp_cuda", a.dtype)
        return NotImplemented if a.dtype.kind == "c" else self.xp.logaddexp(a, b)

    def signbit(self, a: Array) -> Any:
        """Only floating point numbers have one; the decomposition computes bfloat16."""
        return self.xp.signbit(a) if a.dtype.kind == "f" else NotImplemented

    def rsub(self, a: Array, value: Any, alpha: Any) -> Any:
        return self.fused_rsub(a, number(value, a.dtype), number(alpha, a.dtype))

    def check_divisor(self, b: Any) -> None:
        """Raise for a zero among integers, in PyTorch's word."""
        if self.is_array(b) and not self.ns.may_wait():
            return
        if bool((b == 0).any()):
            raise RuntimeError("ZeroDivisionError")

    def divide_rounded(self, a: Array, b: Any, rounding_mode: str | None) -> Any:
        if not self.is_array(b):
            b = typed(b, a.dtype)
        if rounding_mode is None:
            return self.xp.true_divide(a, b)
        return self.floor_divide(a, b) if rounding_mode == "floor" else self.divide_truncated(a, b)

    def division(self, refused: str, of_integers: Kernel, of_floats: Kernel) -> Kernel:
        """A kernel that divides to a whole number, or gives what is left."""

        def kernel(a: Array, b: Any) -> Any:
            kind = a.dtype.kind
            if kind in "bc":
                raise not_implemented(refused, a.dtype)
            if kind not in "iu":
                return of_floats(a, self.plain(b))
            self.check_divisor(b)
            return of_integers(a, self.plain(b))

        return kernel

    def plain(self, value: Any) -> Any:
        """A NumPy scalar as a Python number, which does not decide on a fused kernel's dtype."""
        return value if self.is_array(value) else value.item()

    def pow_tensors(self, a: Array, b: Array) -> Any:
        kind = a.dtype.kind
        if kind == "b":
            raise not_implemented("pow", a.dtype)
        return self.integer_power(a, b) if kind in "iu" else self.xp.power(a, b)

    def number_pow(self, number: Any, exponent: Array) -> Any:
        """As in PyTorch, the number 1 gives 1 also for a complex infinity or nan; True does not."""
        if exponent.dtype.kind == "c" and number == 1 and number is not True:
            return self.xp.ones_like(exponent)
        return self.with_number_first(self.pow_tensors)(number, exponent)

    def pow_number(self, a: Array, exponent: Any) -> Any:
        kind = a.dtype.kind
        if kind in _INTEGRAL:
            if kind == "b":
                return a.copy() if exponent else self.xp.ones_like(a)
            if exponent < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
        elif exponent == 3:
            return self.cube(a)
        elif exponent == 0.5:
            return self.xp.sqrt(a)
        elif exponent == -0.5:
            return self.rsqrt(a)
        elif exponent == -1:
            return self.xp.reciprocal(a)
        elif exponent == -2:
            return self.reciprocal_square(a)
        if exponent == 2:
            return self.xp.square(a)
        return self.xp.power(a, typed(exponent, a.dtype))

    def sign(self, a: Array) -> Any:
        if a.dtype.kind == "c":
            raise NotImplementedError(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. "
                "Please use torch.sgn instead."
            )
        return self.sgn(a)

    def sgn(self, a: Array) -> Any:
        kind = a.dtype.kind
        if kind == "b":
            return a.copy()
        if kind == "c":
            return self.complex_signs(a)
        return self.xp.sign(a) if kind in "iu" else self.float_signs(a)

    def round_to_even(self, a: Array) -> Any:
        kind = a.dtype.kind
        if kind in "iu":
            return a.copy()
        if kind in "bc":
            raise not_implemented("round_cuda", a.dtype)
        return self.xp.rint(a)

    def round_decimals(self, a: Array, decimals: int) -> Any:
        if a.dtype.kind in "biuc":
            raise not_implemented("round_cuda", a.dtype)
        kernel = self.round_up_to if decimals < 0 else self.round_down_to
        return kernel(a, float(f"1e{abs(decimals)}"))

    def conj_physical(self, a: Array) -> Any:
        return self.xp.conjugate(a) if a.dtype.kind == "c" else a.copy()

    def imag(self, a: Array) -> Any:
        return a.imag

    def angle(self, a: Array) -> Any:
        if a.dtype.kind == "c":
            return self.xp.arctan2(a.imag, a.real)
        return self.real_angle(a)

    def equal(self, a: Array, b: Array) -> bool:
        return a.shape == b.shape and bool(self.xp.all(self.xp.equal(a, b)))

    def addcmul(self, a: Array, b: Array, c: Array, value: Any) -> Any:
        return self.fused_addcmul(a, b, c, number(value, a.dtype))

    def nan_to_num(self, a: Array, nan: float, posinf: float, neginf: float) -> Any:
        """The replacements are numbers of the dtype; integers have nothing to replace. Complex
        numbers are left to the decomposition."""
        if a.dtype.kind == "c":
            return NotImplemented
        if a.dtype.kind in _INTEGRAL:
            return a.copy()
        return self.fused_nan_to_num(a, nan, posinf, neginf)

    def bound(self, value: Any, dtype: Any) -> Any:
        return value if self.is_array(value) else number(value, dtype)

    def clamp(self, a: Array, low: Any, high: Any) -> Any:
        """Bounds are arrays or numbers of the dtype's category, or None; the upper one wins."""
        if low is None:
            return self.clamp_max(a, high)
        if high is None:
            return self.clamp_min(a, low)
        return self.both_clamped(a, self.bound(low, a.dtype), self.bound(high, a.dtype))

    def clamp_min(self, a: Array, low: Any) -> Any:
        return self.xp.maximum(a, low if self.is_array(low) else typed(low, a.dtype))

    def clamp_max(self, a: Array, high: Any) -> Any:
        return self.xp.minimum(a, high if self.is_array(high) else typed(high, a.dtype))

    def where(self, condition: Array, a: Any, b: Any) -> Any:
        """At most one of `a` and `b` is a number; the arrays have one dtype."""
        if not self.is_array(a):
            a = typed(a, b.dtype)
        elif not self.is_array(b):
            b = typed(b, a.dtype)
        return self.chosen(condition, a, b)

    def where_numbers(self, condition: Array, a: Any, b: Any, dtype: Any) -> Any:
        return self.chosen(condition, typed(a, dtype), typed(b, dtype))

    def chosen(self, condition: Array, a: Any, b: Any) -> Any:
        """CuPy chooses among bfloat16 in float32."""
        return self.xp.where(condition, a, b).astype(a.dtype, copy=False)

    def logical(self, function: Kernel) -> Kernel:
        def kernel(a: Array, b: Array) -> Any:
            return function(self.truth(a), self.truth(b))

        return kernel

    def logical_not(self, a: Array) -> Any:
        return a == 0 if is_bfloat16(a) or a.dtype.kind == "c" else self.xp.logical_not(a)

    def left_shift(self, a: Array, b: Any) -> Any:
        return self.fused_left_shift(a, self.spread(b, a), 8 * a.itemsize)

    def right_shift(self, a: Array, b: Any) -> Any:
        return self.fused_right_shift(a, self.spread(b, a), 8 * a.itemsize)

    def spread(self, value: Any, like: Array) -> Array:
        """A number as an array: shifts read its sign."""
        return value if self.is_array(value) else self.xp.full((), value, like.dtype)
