"""Kernels that work element by element: arithmetic, comparisons, logic, transcendental functions.

The core has promoted the operands to one dtype; the namespace broadcasts. The standard has no
arithmetic on bools; PyTorch treats them as the numbers 0 and 1.
"""

from __future__ import annotations

from typing import Any, Final

from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.dtype import BOOL, INTEGER
from plugrad.plugins.array_namespace.family import Family, Kernel, needs
from plugrad.plugins.array_namespace.namespace import Array

# Operators that are the function of the standard with this name.
UNARY: Final = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt"),
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    "abs",
)
# Those that the standard has for complex numbers as well, or may have, but PyTorch has not.
ROUNDING: Final = ("ceil", "floor", "trunc", "round")
# Operator to function, for numbers on either side as well.
BINARY: Final = {
    "sub": "subtract",
    "div.Tensor": "divide",
    "div.Scalar": "divide",
    "atan2": "atan2",
    "hypot": "hypot",
    "eq": "equal",
    "ne": "not_equal",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
}
# Operator to the function for numbers, and to that for bools.
BINARY_WITH_BOOLS: Final = {
    "add": ("add", "logical_or"),
    "mul": ("multiply", "logical_and"),
    "maximum": ("maximum", "logical_or"),
    "minimum": ("minimum", "logical_and"),
    "clamp_min": ("maximum", "logical_or"),
    "clamp_max": ("minimum", "logical_and"),
}
# Comparisons that the standard has for real numbers.
ORDER: Final = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
LOGIC: Final = ("logical_and", "logical_or", "logical_xor")
# Predicates of floating point numbers, and their result for all other numbers.
CLASSES: Final = {"isnan": False, "isinf": False, "isfinite": True}


class Elementwise(Family):
    """Kernels on each element by itself."""

    def table(self) -> dict[str, Kernel]:
        xp, has = self.xp, self.ns.has
        found: dict[str, Kernel] = {name: getattr(xp, name) for name in UNARY if has(name)}
        found |= {name: self._of_reals(getattr(xp, name)) for name in ROUNDING if has(name)}
        for name, function in BINARY.items():
            if has(function):
                found[name] = self._binary(getattr(xp, function))
        if has("logaddexp"):
            found["logaddexp"] = self._declining_complex(xp.logaddexp)
        for name, (of_numbers, of_bools) in BINARY_WITH_BOOLS.items():
            if has(of_numbers):
                known = getattr(xp, of_bools) if has(of_bools) else None
                found[name] = self._with_bools(getattr(xp, of_numbers), known)
        for name, function in ORDER.items():
            if has(function):
                found[name] = self._comparison(getattr(xp, function))
        found |= {name: self._logic(getattr(xp, name)) for name in LOGIC if has(name)}
        for name, otherwise in CLASSES.items():
            if has(name):
                found[name] = self._class(getattr(xp, name), otherwise)
        return found

    def _of_reals(self, function: Kernel) -> Kernel:
        def kernel(a: Array) -> Array:
            if self.ns.is_complex(a):
                raise TypeError("complex numbers have no order")
            return function(a)

        return kernel

    def _declining_complex(self, function: Kernel) -> Kernel:
        """What the standard has for real numbers only, and a decomposition for all."""
        operand = self.ns.operand

        def kernel(a: Any, b: Any) -> Any:
            x, y = operand(a, b), operand(b, a)
            return NotImplemented if self.ns.is_complex(x) else function(x, y)

        return kernel

    def _binary(self, function: Kernel) -> Kernel:
        operand = self.ns.operand

        def kernel(a: Any, b: Any) -> Array:
            return function(operand(a, b), operand(b, a))

        return kernel

    def _with_bools(self, of_numbers: Kernel, of_bools: Kernel | None) -> Kernel:
        ns = self.ns

        def kernel(a: Any, b: Any) -> Array:
            x, y = ns.operand(a, b), ns.operand(b, a)
            if not ns.is_bool(x):
                return of_numbers(x, y)
            if of_bools is not None:
                return of_bools(x, y)
            return self.truth(of_numbers(ns.without_bools(x), ns.without_bools(y)))

        return kernel

    def _comparison(self, function: Kernel) -> Kernel:
        ns = self.ns

        def kernel(a: Any, b: Any) -> Array:
            x, y = ns.operand(a, b), ns.operand(b, a)
            return function(ns.without_bools(x), ns.without_bools(y))

        return kernel

    def _logic(self, function: Kernel) -> Kernel:
        def kernel(a: Array, b: Array) -> Array:
            return function(self.truth(a), self.truth(b))

        return kernel

    def _class(self, function: Kernel, otherwise: bool) -> Kernel:
        def kernel(a: Array) -> Array:
            if self.ns.is_floating(a):
                return function(a)
            return self.xp.full(a.shape, otherwise, dtype=self.ns.bool_, device=a.device)

        return kernel

    def truth(self, a: Array) -> Array:
        """Which elements are not zero."""
        return a if self.ns.is_bool(a) else a != self.ns.scalar(0, a)

    @kernel("logical_not")
    @needs("logical_not")
    def logical_not(self, a: Array) -> Array:
        return self.xp.logical_not(self.truth(a))

    @kernel("bitwise_not")
    @needs("bitwise_invert")
    def bitwise_not(self, a: Array) -> Array:
        return self.xp.bitwise_invert(a)

    @kernel("neg")
    @needs("negative", "subtract")
    def neg(self, a: Array) -> Array:
        if self.ns.is_bool(a):
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        if self.ns.dtype(a).is_signed:
            return self.xp.negative(a)
        return self.xp.subtract(self.ns.scalar(0, a), a)

    @kernel("sign")
    @needs("sign", "isnan", "where")
    def sign(self, a: Array) -> Array:
        if self.ns.is_complex(a):
            raise NotImplementedError(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. "
                "Please use torch.sgn instead."
            )
        return self.sgn(a)

    @kernel("sgn")
    @needs("sign", "isnan", "where")
    def sgn(self, a: Array) -> Array:
        """PyTorch's sign of nan is 0, the standard's is nan."""
        if self.ns.is_bool(a):
            return a
        signs = self.xp.sign(a)
        if not self.ns.is_floating(a):
            return signs
        return self.xp.where(self.xp.isnan(a), self.ns.scalar(0, a), signs)

    @kernel("floor_divide")
    @needs("floor_divide", "any")
    def floor_divide(self, a: Any, b: Any) -> Array:
        return self._integer_division(self.xp.floor_divide, a, b)

    @kernel("remainder")
    @needs("remainder", "any")
    def remainder(self, a: Any, b: Any) -> Array:
        return self._integer_division(self.xp.remainder, a, b)

    @kernel("fmod")
    @needs("abs", "remainder", "any", "where")
    def fmod(self, a: Any, b: Any) -> Array:
        """The remainder of the absolute values, with the sign of the dividend."""
        x, y = self.ns.operand(a, b), self.ns.operand(b, a)
        if self.ns.is_complex(x):
            raise TypeError("complex numbers have no order")
        xp = self.xp
        rest = self._integer_division(xp.remainder, xp.abs(x), xp.abs(y))
        zero = self.ns.scalar(0, x)
        signed = xp.where(x < zero, zero - rest, rest)
        # Nothing is left of -0.0 either, but its sign.
        return xp.where(rest == zero, x * zero, signed)

    @kernel("pow.Tensor_Scalar")
    @needs("pow", "ones")
    def power_by_number(self, a: Array, exponent: Any) -> Array:
        kind = self.ns.dtype(a).category
        if kind == BOOL:
            ones = self.xp.ones(a.shape, dtype=a.dtype, device=a.device)
            return self.xp.asarray(a, copy=True) if exponent else ones
        if kind == INTEGER and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return self.xp.pow(a, self.ns.scalar(exponent, a))

    @kernel("pow.Scalar")
    @needs("pow", "where", "bitwise_and", "abs", "ones_like")
    def power_of_number(self, number: Any, exponent: Array) -> Array:
        """As in PyTorch, the number 1 gives 1 also for a complex infinity or nan; True does not."""
        if self.ns.is_complex(exponent) and number == 1 and number is not True:
            return self.xp.ones_like(exponent)
        return self.power(number, exponent)

    @kernel("pow.Tensor_Tensor")
    @needs("pow", "where", "bitwise_and", "abs")
    def power(self, a: Any, b: Any) -> Array:
        """What integers give for a negative exponent the standard leaves open; for PyTorch it is
        the reciprocal without its fraction, and 0 for base 0."""
        x, y = self.ns.operand(a, b), self.ns.operand(b, a)
        dtype = self.ns.dtype(x)
        if dtype.category == BOOL:
            raise TypeError("bools have no powers")
        if dtype.category != INTEGER or not dtype.is_signed:
            return self.xp.pow(x, y)
        zero, one = self.ns.scalar(0, y), self.ns.scalar(1, y)
        # For the bases 1 and -1 it matters whether the exponent is odd.
        power = self.xp.pow(x, self.xp.where(y < zero, self.xp.bitwise_and(y, one), y))
        unit = self.xp.abs(x) == one
        return self.xp.where((y < zero) & ~unit, zero, power)

    @kernel("bitwise_left_shift")
    @needs("bitwise_left_shift", "logical_and", "where")
    def left_shift(self, a: Any, b: Any) -> Array:
        x, amount, inside = self._shift(a, b)
        shifted = self.xp.bitwise_left_shift(x, amount)
        return self.xp.where(inside, shifted, self.ns.scalar(0, x))

    @kernel("bitwise_right_shift")
    @needs("bitwise_right_shift", "logical_and", "where")
    def right_shift(self, a: Any, b: Any) -> Array:
        """What is shifted by too much is all sign."""
        x, amount, inside = self._shift(a, b)
        sign = self.xp.where(x < self.ns.scalar(0, x), self.ns.scalar(-1, x), self.ns.scalar(0, x))
        return self.xp.where(inside, self.xp.bitwise_right_shift(x, amount), sign)

    def _shift(self, a: Any, b: Any) -> tuple[Array, Array, Array]:
        """Operands, with the second one made harmless where it is negative or exceeds the number of
        bits, which the standard leaves undefined; and where it is not."""
        x, y = self.ns.operand(a, b), self.ns.operand(b, a)
        dtype = self.ns.dtype(x)
        if dtype.category != INTEGER:
            raise TypeError("only integers are shifted")
        zero, bits = self.ns.scalar(0, y), self.ns.scalar(8 * dtype.itemsize, y)
        inside = self.xp.logical_and(y >= zero, y < bits)
        return x, self.xp.where(inside, y, zero), inside

    def _integer_division(self, function: Kernel, a: Any, b: Any) -> Array:
        """What integers give when divided by zero the standard leaves open; PyTorch raises."""
        x, y = self.ns.operand(a, b), self.ns.operand(b, a)
        if not self.ns.is_floating(y) and bool(self.xp.any(y == self.ns.scalar(0, y))):
            raise RuntimeError("ZeroDivisionError")
        return function(x, y)

    @kernel("imag")
    @needs("imag")
    def imag(self, a: Array) -> Array:
        return self.xp.imag(a)

    @kernel("conj_physical")
    @needs("conj")
    def conj_physical(self, a: Array) -> Array:
        return self.xp.conj(a) if self.ns.is_complex(a) else a

    @kernel("where")
    @needs("where")
    def where(self, condition: Array, a: Any, b: Any) -> Array:
        return self.xp.where(condition, self.ns.operand(a, b), self.ns.operand(b, a))

    @kernel("where.Scalar")
    @needs("where")
    def where_numbers(self, condition: Array, a: Any, b: Any, dtype: Any) -> Array:
        device = condition.device
        x, y = self.ns.filled(a, dtype, device), self.ns.filled(b, dtype, device)
        return self.xp.where(condition, x, y)

    @kernel("round.decimals")
    @needs("round", "divide", "multiply")
    def round_decimals(self, a: Array, decimals: int) -> Array:
        scale = self.ns.scalar(float(f"1e{abs(decimals)}"), a)
        if decimals < 0:
            return self.xp.multiply(self.xp.round(self.xp.divide(a, scale)), scale)
        return self.xp.divide(self.xp.round(self.xp.multiply(a, scale)), scale)

    @kernel("equal")
    @needs("all")
    def equal(self, a: Array, b: Array) -> bool:
        return a.shape == b.shape and bool(self.xp.all(a == b))
