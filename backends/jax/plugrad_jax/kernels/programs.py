"""Makes kernels from functions on arrays: compiled as one program, with numbers as operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from plugrad.plugins.kernel_errors import not_implemented

Array = Any
Kernel = Callable[..., Any]

NARROW: Final = ("float16", "bfloat16")


def program(function: Kernel, *static: int) -> Kernel:
    """`function` as one compiled program for each shape and dtype of its arrays.

    Args:
        static: positions of the arguments that are part of the program: dimensions, dtypes, modes.
            Those that are equal to Python (1, 1.0 and True) share a program.

    In a function that is traced it is inlined.
    """
    compiled: Kernel = jax.jit(function, static_argnums=static, inline=True)
    return compiled


def compiled(*static: int) -> Callable[[Kernel], Kernel]:
    """`program` as a decorator."""
    return lambda function: program(function, *static)


def rejecting(kinds: str, name: str, function: Kernel) -> Kernel:
    """A function with a first argument that must not have some kinds of dtype, in NumPy's
    letters."""

    def checked(a: Array, *rest: Any) -> Any:
        if a.dtype.kind in kinds:
            raise not_implemented(name, a.dtype)
        return function(a, *rest)

    return checked


def is_narrow(a: Array) -> bool:
    """Whether an array holds 16-bit floats, which are computed with in float32."""
    return a.dtype.name in NARROW


def widen(a: Array) -> Array:
    """16-bit floats in float32; what is none as it is, numbers and None included."""
    return a.astype(jnp.float32) if isinstance(a, jax.Array) and is_narrow(a) else a


def in_float32(function: Kernel) -> Kernel:
    """A function that computes 16-bit floats in float32: of all its arrays, if the first is so."""

    def widened(a: Array, *rest: Any) -> Any:
        if is_narrow(a):
            found = function(widen(a), *[widen(x) for x in rest])
            return jax.tree.map(lambda x: x.astype(a.dtype), found)
        return function(a, *rest)

    return widened


def constant(number: Any, like: Array) -> Array:
    """A number, which may be traced, in an array's dtype."""
    if isinstance(number, jax.Array):
        return number.astype(like.dtype)
    return np.array(fitting(number, like.dtype)).astype(like.dtype)


def fitting(number: Any, dtype: Any) -> Any:
    """A Python number as the kind that the dtype is of, so that all its values share a program."""
    if isinstance(number, jax.Array):
        return number
    kind = dtype.kind
    if kind == "f" or kind == "V":
        return float(number)
    if kind == "c":
        return complex(number)
    if kind == "b":
        return bool(number)
    whole = int(number)
    return whole if -(1 << 63) <= whole < 1 << 63 else (whole + (1 << 63)) % (1 << 64) - (1 << 63)


def with_number(function: Kernel) -> Kernel:
    """A kernel of an array and a number, from a function of two arrays."""
    compiled = program(lambda a, number: function(a, number.astype(a.dtype)))

    def kernel(a: Array, number: Any) -> Any:
        return compiled(a, fitting(number, a.dtype))

    return kernel


def with_number_first(function: Kernel) -> Kernel:
    """A kernel of a number and an array, from a function of two arrays."""
    compiled = program(lambda number, b: function(number.astype(b.dtype), b))

    def kernel(number: Any, b: Array) -> Any:
        return compiled(fitting(number, b.dtype), b)

    return kernel


def with_numbers(function: Kernel, *numbers: int, static: tuple[int, ...] = ()) -> Kernel:
    """A kernel with arguments that may be numbers, which the program takes as arguments.

    Args:
        numbers: their positions; arrays and None at these stay as they are.
    """
    compiled = program(function, *static)

    def kernel(a: Array, *rest: Any) -> Any:
        given = list(rest)
        for position in numbers:
            number = given[position - 1]
            if isinstance(number, (bool, int, float, complex)):
                given[position - 1] = fitting(number, a.dtype)
        return compiled(a, *given)

    return kernel
