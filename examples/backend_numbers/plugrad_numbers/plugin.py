"""The backend for `device="numbers"`: arrays that are Python lists, and autograd on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from operator import add, eq, lt, mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

import plugrad
from plugrad.plugins import Backend, hookimpl

# The dtypes, and the Python types of their elements.
KINDS: dict[plugrad.dtype, type] = {
    plugrad.bool: bool,
    plugrad.int64: int,
    plugrad.float32: float,
    plugrad.float64: float,
}
Function = Callable[..., Any]


class Numbers:
    """An array: its elements in one list in row-major order, its shape and its dtype."""

    def __init__(self, elements: list[Any], shape: Sequence[int], dtype: plugrad.dtype) -> None:
        self.elements, self.shape, self.dtype = elements, tuple(shape), dtype


def steps_of(shape: Sequence[int]) -> list[int]:
    """The distance of neighbours in the list, for each dimension."""
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def gather(a: Numbers, shape: Sequence[int], steps: list[int], start: int = 0) -> Numbers:
    """An array of `shape` that reads the list of `a` with strides `steps`."""
    places = [start]
    for size, step in zip(shape, steps, strict=True):
        places = [place + i * step for place in places for i in range(size)]
    return Numbers([a.elements[place] for place in places], shape, a.dtype)


def permute(a: Numbers, dims: Sequence[int]) -> Numbers:
    steps = steps_of(a.shape)
    return gather(a, [a.shape[dim] for dim in dims], [steps[dim] for dim in dims])


def expand(a: Numbers, shape: Sequence[int]) -> Numbers:
    added = len(shape) - len(a.shape)
    if any(old not in (1, new) for old, new in zip(a.shape, shape[added:], strict=True)):
        raise ValueError(f"{a.shape} does not broadcast to {shape}")
    sizes = zip(a.shape, steps_of(a.shape), strict=True)
    return gather(a, shape, [0] * added + [step if size != 1 else 0 for size, step in sizes])


def slice_(a: Numbers, dim: int, start: int, end: int, step: int) -> Numbers:
    shape, steps = list(a.shape), steps_of(a.shape)
    first, shape[dim] = start * steps[dim], len(range(start, end, step))
    steps[dim] *= step
    return gather(a, shape, steps, first)


def elementwise(function: Function, dtype: plugrad.dtype | None = None) -> Function:
    """A kernel that applies a function of numbers to arrays, broadcast to one shape."""

    def kernel(*arrays: Numbers) -> Numbers:
        sizes = zip_longest(*(reversed(a.shape) for a in arrays), fillvalue=1)
        shape = [0 if 0 in dim else max(dim) for dim in sizes][::-1]
        spread = [expand(a, shape).elements for a in arrays]
        elements = [function(*numbers) for numbers in zip(*spread, strict=True)]
        result = dtype or arrays[-1].dtype
        if result is plugrad.int64:  # numbers that are too large wrap around
            elements = [(x + 2**63) % 2**64 - 2**63 for x in elements]
        return Numbers(elements, shape, result)

    return kernel


def reduce(
    function: Function, a: Numbers, dims: Sequence[int], keepdim: bool, dtype: plugrad.dtype
) -> Numbers:
    """Apply a function of lists to the elements along some dimensions."""
    kept = [dim for dim in range(len(a.shape)) if dim not in dims]
    count = math.prod(a.shape[dim] for dim in dims)
    rows = permute(a, [*kept, *dims]).elements
    places = range(math.prod(a.shape[dim] for dim in kept))
    elements = [function(rows[place * count : (place + 1) * count]) for place in places]
    shape = [1 if dim in dims else size for dim, size in enumerate(a.shape)]
    return Numbers(elements, shape if keepdim else [a.shape[dim] for dim in kept], dtype)


def sum_(a: Numbers, dims: Sequence[int], keepdim: bool, dtype: plugrad.dtype) -> Numbers:
    return reduce(lambda row: sum(row, KINDS[dtype](0)), a, dims, keepdim, dtype)


def amax(a: Numbers, dims: Sequence[int], keepdim: bool) -> Numbers:
    # A value that is not equal to itself is nan, which counts as the largest.
    return reduce(lambda row: max(row, key=lambda x: (x != x, x)), a, dims, keepdim, a.dtype)


def mm(a: Numbers, b: Numbers) -> Numbers:
    (n, k), m = a.shape, b.shape[1]
    rows = [a.elements[i * k : (i + 1) * k] for i in range(n)]
    columns = [b.elements[j::m] for j in range(m)]
    zero = KINDS[a.dtype](0)
    elements = [sum(map(mul, row, column), zero) for row in rows for column in columns]
    return Numbers(elements, (n, m), a.dtype)


def take(a: Numbers, index: Numbers) -> Numbers:
    size = len(a.elements)
    for place in index.elements:
        if not -size <= place < size:
            said = f"out of range: tried to access index {place} on a tensor of {size} elements."
            raise IndexError(said)
    return Numbers([a.elements[place] for place in index.elements], index.shape, a.dtype)


def quiet(function: Function) -> Function:
    """A function of numbers that returns inf or nan where Python's raises."""

    def total(*numbers: Any) -> Any:
        try:
            return function(*numbers)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return total


def divide(x: Any, y: Any) -> Any:
    if y != 0:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)


def remainder(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        return quiet(math.fmod)(x, y)
    if y == 0:
        raise RuntimeError("ZeroDivisionError")
    return abs(x) % abs(y) * (1 if x >= 0 else -1)


def power(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        return math.inf if x == 0 > y else quiet(math.pow)(x, y)
    return x**y if y >= 0 else (x == 1) + (x == -1) * (-1) ** y


KERNELS: dict[str, Function] = {
    "add.Tensor": elementwise(add),
    "mul.Tensor": elementwise(mul),
    "div.Tensor": elementwise(divide),
    "fmod.Tensor": elementwise(remainder),
    "pow.Tensor_Tensor": elementwise(power),
    "eq.Tensor": elementwise(eq, plugrad.bool),
    "lt.Tensor": elementwise(lt, plugrad.bool),
    "where.self": elementwise(lambda condition, x, y: x if condition else y),
    "exp": elementwise(quiet(math.exp)),
    "log": elementwise(lambda x: quiet(math.log)(x) if x else -math.inf),
    "sqrt": elementwise(quiet(math.sqrt)),
    "sin": elementwise(quiet(math.sin)),
    "cos": elementwise(quiet(math.cos)),
    "atan": elementwise(math.atan),
    "floor": elementwise(lambda x: x // 1 if math.isfinite(x) else x),
    "sum": sum_,
    "amax": amax,
    "mm": mm,
    "take": take,
    "permute": permute,
    "expand": expand,
    "slice.Tensor": slice_,
    "view": lambda a, shape: Numbers(a.elements, shape, a.dtype),
}


class NumbersBackend(Backend):
    """Python lists. They are never written to: in-place operators make new lists."""

    def __init__(self) -> None:
        super().__init__("numbers", array_type=Numbers, mutable=False, api_version=(1, 0))

    def kernels(self) -> dict[str, Function]:
        return KERNELS

    def native_dtype(self, dtype: plugrad.dtype) -> plugrad.dtype:
        if dtype not in KINDS:
            raise TypeError(f"{dtype} is not supported on 'numbers', which has {list(KINDS)}")
        return dtype

    def from_host(self, array: NDArray[Any], index: int) -> Numbers:
        dtype = self.native_dtype(getattr(plugrad, array.dtype.name))
        return Numbers(array.reshape(-1).tolist(), array.shape, dtype)

    def to_host(self, array: Numbers) -> NDArray[Any]:
        return np.array(array.elements, array.dtype.numpy).reshape(array.shape)


@hookimpl
def plugrad_backends() -> list[type[Backend]]:
    return [NumbersBackend]
