"""What NumPy's operators and universal functions do with tensors: `Tensor.__array_ufunc__`.

array * tensor, numpy.sin(tensor)       plugrad's operator, recorded if a gradient is needed
array += tensor, numpy.cbrt(tensor)     NumPy; refused if the tensor requires grad
"""

from __future__ import annotations

# Interpreted: it runs seldom, and builds its tables from names.
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad._generated import functions
from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.foreign_operands import promoted_matmul, tensor_of_array
from plugrad.tensor.creation.from_data import tensor as new_tensor
from plugrad.tensor.interop.arrays import array_wrap, to_numpy

_Function = Callable[..., Any]

# These take numbers as they are, as in `tensor * 2`.
_OPERATORS: Final[dict[str, _Function]] = {
    "add": operator.add,
    # A scalar of NumPy's counts as a number here, not as a bool that cannot be subtracted.
    "subtract": lambda x, y: operator.sub(int(x) if isinstance(x, bool) else x, y),
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": lambda x, y: (x // y, x % y),
    "power": operator.pow,
    "matmul": lambda x, y: (
        promoted_matmul(x, y) if isinstance(x, TensorBase) and isinstance(y, TensorBase) else x @ y
    ),
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
    "invert": operator.invert,
}

# NumPy's name and plugrad's, where they differ.
_RENAMED: Final = {"rint": "round", "conjugate": "conj", "fabs": "abs"}
_SAME: Final = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
    *("arcsinh", "arccosh", "arctanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sqrt", "square", "reciprocal", "sign", "floor", "ceil", "trunc"),
    *("isfinite", "isinf", "isnan", "signbit", "deg2rad", "rad2deg"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("maximum", "minimum", "fmax", "fmin", "arctan2", "hypot", "logaddexp", "logaddexp2"),
    *("fmod", "float_power", "copysign", "heaviside", "nextafter", "gcd", "lcm", "ldexp"),
)
_FUNCTIONS: Final[dict[str, _Function]] = {
    theirs: getattr(functions, ours)
    for theirs, ours in [*_RENAMED.items(), *((name, name) for name in _SAME)]
    if hasattr(functions, ours)
}


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a universal function with a tensor among its arguments.

    Raises:
        TypeError: it would write into a tensor.
        RuntimeError: only NumPy has it, and a tensor requires grad.
    """
    if not isinstance(ufunc, np.ufunc) or not isinstance(method, str):
        raise TypeError(
            "Tensor.__array_ufunc__() is for NumPy: expected numpy.ufunc and the name of a method, "
            f"got {type_name(ufunc)} and {type_name(method)}"
        )
    outputs = options.get("out", ())
    for given in (*inputs, *outputs):
        if not _is_known(given):
            return NotImplemented
    if any(isinstance(given, TensorBase) for given in outputs) or (
        method == "at" and isinstance(inputs[0], TensorBase)
    ):
        raise TypeError(
            f"numpy.{ufunc.__name__}(): NumPy cannot write into a Tensor; use the operator in place"
        )
    if method == "__call__" and not options:
        name = ufunc.__name__
        if name in _OPERATORS and ufunc is getattr(np, name, None):
            return _OPERATORS[name](*[_operand(given, inputs) for given in inputs])
        if name in _FUNCTIONS and ufunc is getattr(np, name, None):
            return _FUNCTIONS[name](*[_tensor(given, inputs) for given in inputs])
    return _by_numpy(ufunc, method, inputs, options)


def _is_known(value: Any) -> bool:
    """Whether it is a tensor, or something that NumPy makes an array of without asking it."""
    if value is None or isinstance(value, (TensorBase, np.ndarray, np.generic)):
        return True
    return not hasattr(type(value), "__array_ufunc__")


def _operand(given: Any, inputs: tuple[Any, ...]) -> Any:
    """A tensor or a Python number: a NumPy scalar would call NumPy's operator again."""
    if isinstance(given, TensorBase):
        return given
    for kind, plain in _NUMBERS:
        if isinstance(given, kind):
            return plain(given)
    recorded = current_state().grad_enabled and any(
        needs_grad(item) for item in inputs if isinstance(item, TensorBase)
    )
    return tensor_of_array(np.asarray(given), recorded)


_NUMBERS: Final[tuple[tuple[Any, _Function], ...]] = (
    ((bool, np.bool_), bool),
    ((int, np.integer), int),
    ((float, np.floating), float),
    ((complex, np.complexfloating), complex),
)


def _tensor(given: Any, inputs: tuple[Any, ...]) -> Any:
    """The operand as a tensor; a number becomes a 0-dim one."""
    operand = _operand(given, inputs)
    if isinstance(operand, TensorBase):
        return operand
    device = next(item.device for item in inputs if isinstance(item, TensorBase))
    return new_tensor(operand, device=device)


def _by_numpy(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What NumPy computes: tensors on the CPU, or the arrays that were given for the results."""
    shown = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    arrays: list[Any] = []
    first: Any = None
    for given in inputs:
        if not isinstance(given, TensorBase):
            arrays.append(given)
            continue
        first = given if first is None else first
        if needs_grad(given) and current_state().grad_enabled:
            reason = "writes into a NumPy array" if options.get("out") else "is NumPy's alone"
            raise RuntimeError(
                f"{shown}() {reason}, so that the gradient of a Tensor that requires grad would be "
                "lost. Use tensor.detach() if that is meant."
            )
        arrays.append(to_numpy(given))
    results = getattr(ufunc, method)(*arrays, **options)
    if options.get("out") or results is None:
        return results
    if isinstance(results, tuple):
        return tuple([_wrapped(first, result) for result in results])
    return _wrapped(first, results)


def _wrapped(tensor: Any, result: Any) -> Any:
    array = np.asarray(result)
    if tensor is None or array.dtype.hasobject:
        return result
    return array_wrap(tensor, array)
