"""Arithmetic, comparisons, logic and functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import computes_in
from plugrad_onnx.onnx.registry import lowers

# Functions that give floats.
FLOAT = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log",
    "reciprocal": "Reciprocal", "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
# Functions that keep the dtype.
SAME = {"abs": "Abs", "neg": "Neg", "sign": "Sign", "relu": "Relu"}
ROUNDED = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
ARITHMETIC = {"mul": "Mul", "maximum": "Max", "minimum": "Min"}
COMPARED = {
    "eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less",
}  # fmt: skip
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
BITWISE = {
    "bitwise_and": ("And", "BitwiseAnd"),
    "bitwise_or": ("Or", "BitwiseOr"),
    "bitwise_xor": ("Xor", "BitwiseXor"),
}


def is_float(dtype: Any) -> bool:
    """Whether a dtype is real floating point."""
    return bool(dtype.is_floating_point)


def promoted(x: Any, y: Any) -> Any:
    """The dtype in which two operands are compared; one may be a number."""

    def example(value: Any) -> Any:
        if not isinstance(value, Value):
            return value if isinstance(value, (bool, int, float)) else 0
        return plugrad.empty((0,) * min(value.ndim, 1) or (), dtype=value.dtype)

    return plugrad.result_type(example(x), example(y))


def _float(name: str) -> Callable[..., Value]:
    def lower(b: Builder, x: Value) -> Value:
        return b.op(name, b.cast(x, b.dtype))

    return lower


def _same(name: str) -> Callable[..., Value]:
    def lower(b: Builder, x: Value) -> Value:
        return b.cast(b.op(name, b.cast(x, computes_in(b.dtype))), b.dtype)

    return lower


def _rounded(name: str) -> Callable[..., Value]:
    def lower(b: Builder, x: Value) -> Value:
        return b.op(name, x) if is_float(x.dtype) else x

    return lower


def _arithmetic(name: str) -> Callable[..., Value]:
    def lower(b: Builder, x: Any, y: Any) -> Value:
        dtype = computes_in(b.dtype)
        return b.cast(b.op(name, b.operand(x, dtype), b.operand(y, dtype)), b.dtype)

    return lower


def compared(b: Builder, name: str, x: Any, y: Any) -> Value:
    """A comparison of two operands; one may be a number."""
    dtype = promoted(x, y)
    dtype = computes_in(dtype) if dtype != plugrad.bool or name != "Equal" else dtype
    return b.op(name, b.operand(x, dtype), b.operand(y, dtype), dtype=plugrad.bool)


def _compared(name: str) -> Callable[..., Value]:
    return lambda b, x, y: compared(b, name, x, y)


def _logical(name: str) -> Callable[..., Value]:
    def lower(b: Builder, x: Any, y: Any) -> Value:
        return b.op(name, b.operand(x, plugrad.bool), b.operand(y, plugrad.bool))

    return lower


def _bitwise(of_bools: str, of_ints: str) -> Callable[..., Value]:
    def lower(b: Builder, x: Any, y: Any) -> Value:
        name = of_bools if b.dtype == plugrad.bool else of_ints
        return b.op(name, b.operand(x, b.dtype), b.operand(y, b.dtype))

    return lower


for _name, _onnx in FLOAT.items():
    lowers(_name)(_float(_onnx))
for _name, _onnx in SAME.items():
    lowers(_name)(_same(_onnx))
for _name, _onnx in ROUNDED.items():
    lowers(_name)(_rounded(_onnx))
for _name, _onnx in ARITHMETIC.items():
    lowers(_name, f"{_name}.Tensor", f"{_name}.Scalar")(_arithmetic(_onnx))
for _name, _onnx in COMPARED.items():
    lowers(f"{_name}.Tensor", f"{_name}.Scalar")(_compared(_onnx))
for _name, _onnx in LOGICAL.items():
    lowers(_name)(_logical(_onnx))
for _name, (_bools, _ints) in BITWISE.items():
    lowers(f"{_name}.Tensor", f"{_name}.Scalar", f"{_name}.Scalar_Tensor")(_bitwise(_bools, _ints))


@lowers("ne.Tensor", "ne.Scalar")
def ne(b: Builder, x: Any, y: Any) -> Value:
    return b.op("Not", compared(b, "Equal", x, y))


@lowers("logical_not")
def logical_not(b: Builder, x: Value) -> Value:
    return b.op("Not", b.cast(x, plugrad.bool))


@lowers("bitwise_not")
def bitwise_not(b: Builder, x: Value) -> Value:
    return b.op("Not" if x.dtype == plugrad.bool else "BitwiseNot", x)


def _sum(b: Builder, name: str, x: Any, y: Any, alpha: Any) -> Value:
    dtype = computes_in(b.dtype)
    second = b.operand(y, dtype)
    if alpha != 1:
        second = b.op("Mul", second, b.number(alpha, dtype))
    return b.cast(b.op(name, b.operand(x, dtype), second), b.dtype)


@lowers("add.Tensor", "add.Scalar")
def add(b: Builder, x: Any, y: Any, alpha: Any = 1) -> Value:
    return _sum(b, "Add", x, y, alpha)


@lowers("sub.Tensor", "sub.Scalar")
def sub(b: Builder, x: Any, y: Any, alpha: Any = 1) -> Value:
    return _sum(b, "Sub", x, y, alpha)


@lowers("rsub.Tensor", "rsub.Scalar")
def rsub(b: Builder, x: Any, y: Any, alpha: Any = 1) -> Value:
    return _sum(b, "Sub", y, x, alpha)


@lowers("div.Tensor", "div.Scalar")
def div(b: Builder, x: Any, y: Any) -> Value:
    return b.op("Div", b.operand(x, b.dtype), b.operand(y, b.dtype))


@lowers("div.Tensor_mode", "div.Scalar_mode")
def div_mode(b: Builder, x: Any, y: Any, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return div(b, x, y)
    if rounding_mode == "floor":
        return floor_divide(b, x, y)
    dtype = computes_in(b.dtype)
    quotient = b.op("Div", b.operand(x, dtype), b.operand(y, dtype))
    return b.cast(truncated(b, quotient) if is_float(dtype) else quotient, b.dtype)


@lowers("floor_divide", "floor_divide.Scalar", "floor_divide.Scalar_Tensor")
def floor_divide(b: Builder, x: Any, y: Any) -> Value:
    dtype = computes_in(b.dtype)
    first, second = b.operand(x, dtype), b.operand(y, dtype)
    if is_float(dtype):
        return b.op("Floor", b.op("Div", first, second))
    # Div of integers rounds toward zero; the remainder must have the sign of the divisor.
    whole = b.op("Sub", first, b.op("Mod", first, second))
    return b.cast(b.op("Div", whole, second), b.dtype)


@lowers("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(b: Builder, x: Any, y: Any) -> Value:
    dtype = computes_in(b.dtype)
    first, second = b.operand(x, dtype), b.operand(y, dtype)
    if not is_float(dtype):
        return b.cast(b.op("Mod", first, second), b.dtype)
    rest = b.op("Mod", first, second, fmod=1)
    zero = b.number(0, dtype)
    negative = b.op("Less", rest, zero, dtype=plugrad.bool)
    other = b.op("Less", second, zero, dtype=plugrad.bool)
    some = b.op("Not", b.op("Equal", rest, zero, dtype=plugrad.bool))
    wrong = b.op("And", some, b.op("Xor", negative, other))
    return b.op("Where", wrong, b.op("Add", rest, second), rest, dtype=dtype)


@lowers("fmod.Tensor", "fmod.Scalar")
def fmod(b: Builder, x: Any, y: Any) -> Value:
    dtype = computes_in(b.dtype)
    return b.cast(b.op("Mod", b.operand(x, dtype), b.operand(y, dtype), fmod=1), b.dtype)


@lowers("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(b: Builder, x: Any, y: Any) -> Value:
    dtype = computes_in(b.dtype)
    if not isinstance(y, Value) and is_float(dtype):
        if y == 0.5:
            return b.op("Sqrt", b.operand(x, dtype))
        if y == 2:
            first = b.operand(x, dtype)
            return b.op("Mul", first, first)
    return b.cast(b.op("Pow", b.operand(x, dtype), b.operand(y, dtype)), b.dtype)


@lowers("rsqrt")
def rsqrt(b: Builder, x: Value) -> Value:
    return b.op("Reciprocal", b.op("Sqrt", b.cast(x, b.dtype)))


def truncated(b: Builder, x: Value) -> Value:
    """Floats, truncated."""
    return b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x)))


@lowers("trunc")
def trunc(b: Builder, x: Value) -> Value:
    return truncated(b, x) if is_float(x.dtype) else x


@lowers("square")
def square(b: Builder, x: Value) -> Value:
    dtype = computes_in(b.dtype)
    wide = b.cast(x, dtype)
    return b.cast(b.op("Mul", wide, wide), b.dtype)


@lowers("log2")
def log2(b: Builder, x: Value) -> Value:
    return b.op("Div", b.op("Log", b.cast(x, b.dtype)), b.number(math.log(2), b.dtype))


@lowers("log10")
def log10(b: Builder, x: Value) -> Value:
    return b.op("Div", b.op("Log", b.cast(x, b.dtype)), b.number(math.log(10), b.dtype))


@lowers("erfc")
def erfc(b: Builder, x: Value) -> Value:
    return b.op("Sub", b.number(1, b.dtype), b.op("Erf", b.cast(x, b.dtype)))


@lowers("isnan")
def isnan(b: Builder, x: Value) -> Value:
    if not is_float(x.dtype):
        return b.expand(b.number(False, plugrad.bool), x.sizes)
    return b.op("IsNaN", x, dtype=plugrad.bool)


@lowers("isinf")
def isinf(b: Builder, x: Value) -> Value:
    if not is_float(x.dtype):
        return b.expand(b.number(False, plugrad.bool), x.sizes)
    wide = x if x.dtype == plugrad.float64 else b.cast(x, plugrad.float32)
    return b.op("IsInf", wide, dtype=plugrad.bool)


@lowers("where.self", "where.Scalar", "where.ScalarSelf", "where.ScalarOther")
def where(b: Builder, condition: Value, x: Any, y: Any) -> Value:
    dtype = computes_in(b.dtype)
    chosen = b.cast(condition, plugrad.bool)
    found = b.op("Where", chosen, b.operand(x, dtype), b.operand(y, dtype), dtype=dtype)
    return b.cast(found, b.dtype)


@lowers("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(b: Builder, x: Value, mask: Value, value: Any) -> Value:
    return where(b, mask, value, x)


@lowers("clamp", "clip", "clamp.Tensor", "clip.Tensor")
def clamp(b: Builder, x: Value, min: Any = None, max: Any = None) -> Value:
    dtype = computes_in(b.dtype)
    result = b.cast(x, dtype)
    if min is not None:
        result = b.op("Max", result, b.operand(min, dtype))
    if max is not None:
        result = b.op("Min", result, b.operand(max, dtype))
    return b.cast(result, b.dtype)


@lowers("clamp_min", "clamp_min.Tensor")
def clamp_min(b: Builder, x: Value, min: Any) -> Value:
    return clamp(b, x, min)


@lowers("clamp_max", "clamp_max.Tensor")
def clamp_max(b: Builder, x: Value, max: Any) -> Value:
    return clamp(b, x, None, max)


@lowers(*[f"bitwise_left_shift.{name}" for name in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")])
def left_shift(b: Builder, x: Any, y: Any) -> Value:
    # BitShift supports only unsigned integers.
    wide = plugrad.float64
    power_of_two = b.op("Pow", b.number(2, wide), b.operand(y, wide))
    factor = b.cast(power_of_two, plugrad.int64)
    return b.cast(b.op("Mul", b.operand(x, plugrad.int64), factor), b.dtype)


@lowers("lerp.Scalar", "lerp.Tensor")
def lerp(b: Builder, x: Value, end: Value, weight: Any) -> Value:
    return b.op("Add", x, b.op("Mul", b.operand(weight, b.dtype), b.op("Sub", end, x)))
