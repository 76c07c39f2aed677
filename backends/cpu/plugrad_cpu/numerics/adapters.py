"""Adapts ufuncs to what PyTorch does: refused dtypes, numbers as operands, 16-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrad.plugins.kernel_errors import not_implemented
from plugrad.plugins.strides import copy_order
from plugrad_cpu.kernels.linalg import is_narrow, widen

Array = Any
Kernel = Callable[..., Any]


def as_operand(number: Any, dtype: Any) -> Array:
    """A Python number as a 0-dim array: ufuncs convert those faster than the number itself."""
    try:
        return np.array(number, dtype)
    except (OverflowError, TypeError):  # ml_dtypes takes no int beyond 64 bits with a sign
        return cut_down(number, dtype)


def cut_down(number: Any, dtype: Any) -> Array:
    """A number in a dtype that need not hold all of it, without NumPy's complaints."""
    if isinstance(number, complex) and np.dtype(dtype).kind != "c":
        number = number.real
    return np.array(number).astype(dtype)


def comes_down_to(lowered: Callable[..., Any]) -> Callable[[Kernel], Kernel]:
    """Attach to a kernel its lowering for given arguments: a function and its arguments, or None.

    A compiled step calls the function in place of the kernel.
    """

    def mark(kernel: Kernel) -> Kernel:
        kernel.lowered = lowered  # type: ignore[attr-defined]  # functions take attributes
        return kernel

    return mark


def with_number(kernel: Kernel) -> Kernel:
    """The overload of a binary kernel with a Python number as second operand."""

    @comes_down_to(lambda a, number: (kernel, (a, as_operand(number, a.dtype))))
    def number_kernel(a: Array, number: Any) -> Any:
        return kernel(a, as_operand(number, a.dtype))

    return number_kernel


def with_number_first(kernel: Kernel) -> Kernel:
    """The overload of a binary kernel with a Python number as first operand."""

    @comes_down_to(lambda number, b: (kernel, (as_operand(number, b.dtype), b)))
    def number_kernel(number: Any, b: Array) -> Any:
        return kernel(as_operand(number, b.dtype), b)

    return number_kernel


def in_memory_order(kernel: Kernel) -> Kernel:
    """An elementwise kernel of one array that keeps the memory layout."""

    def ordered(x: Array, *args: Any) -> Any:
        if x.ndim < 2 or copy_order(x) == "C":
            return kernel(x, *args)
        order = sorted(range(x.ndim), key=lambda dim: -int(x.strides[dim]))
        result = kernel(np.ascontiguousarray(x.transpose(order)), *args)
        return result.transpose([order.index(dim) for dim in range(x.ndim)])

    return ordered


def in_order(kernel: Kernel) -> Kernel:
    """A kernel with a row-major result, for any layout of its operands."""

    def row_major(*args: Any) -> Any:
        result = kernel(*args)
        return np.ascontiguousarray(result) if result.ndim > 1 else result

    return row_major


def rejecting(kinds: str, name: str, kernel: Kernel) -> Kernel:
    """A unary kernel that refuses dtypes of some NumPy kinds, in PyTorch's words."""

    @comes_down_to(lambda a: None if a.dtype.kind in kinds else (kernel, (a,)))
    def checked(a: Array) -> Any:
        if a.dtype.kind in kinds:
            raise not_implemented(name, a.dtype)
        return kernel(a)

    return checked


def rejecting_binary(kinds: str, name: str, kernel: Kernel) -> Kernel:
    """A binary kernel that refuses dtypes of some NumPy kinds, in PyTorch's words."""

    @comes_down_to(lambda a, b: None if a.dtype.kind in kinds else (kernel, (a, b)))
    def checked(a: Array, b: Array) -> Any:
        if a.dtype.kind in kinds:
            raise not_implemented(name, a.dtype)
        return kernel(a, b)

    return checked


def in_float32(kernel: Kernel) -> Kernel:
    """Computes 16-bit floats in float32, as several roundings to 16 bits would show."""

    @comes_down_to(lambda a: None if a.itemsize == 2 else (kernel, (a,)))
    def widened(a: Array) -> Any:
        if a.itemsize == 2:
            return kernel(a.astype(np.float32)).astype(a.dtype)
        return kernel(a)

    return widened


def wide_ternary(kernel: Kernel) -> Kernel:
    """Computes 16-bit floats in float32: three arrays and a number or an array.

    The kernel takes `out`, which it reads no other operand after writing to.
    """

    @comes_down_to(lambda *args: None if args[0].itemsize == 2 else (kernel, args))
    def widened(a: Array, b: Array, c: Any, *rest: Any, out: Array | None = None) -> Any:
        if a.itemsize != 2 or a.dtype.kind in "iu":
            return kernel(a, b, c, *rest, out=out)
        wide = [x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in (a, b, c)]
        found = kernel(*wide, *rest).astype(a.dtype)
        if out is None:
            return found
        np.copyto(out, found)
        return out

    # A compiled step has operators in place written into their target at once.
    widened.in_place = True  # type: ignore[attr-defined]  # functions take attributes
    return widened


def wide_throughout(kernel: Kernel) -> Kernel:
    """Computes 16-bit floats in float32: all arrays of a kernel if the first one has 16-bit
    floats."""

    @comes_down_to(lambda *args: None if args[0].itemsize == 2 else (kernel, args))
    def widened(a: Array, *rest: Any) -> Any:
        if a.itemsize != 2 or not is_narrow(a):
            return kernel(a, *rest)
        wide = [widen(x) if isinstance(x, np.ndarray) else x for x in (a, *rest)]
        return _narrowed(kernel(*wide), a.dtype)

    return widened


def _narrowed(result: Any, dtype: Any) -> Any:
    """What was computed in float32 in another dtype; positions, and None, stay."""
    if isinstance(result, tuple):
        return tuple([_narrowed(part, dtype) for part in result])
    return result.astype(dtype) if result is not None and result.dtype == np.float32 else result
