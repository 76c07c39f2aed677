"""Shared code of every backend's kernels: dtypes as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.plugins.kernel_errors import not_implemented

Kernel = Callable[..., Any]


def typed(name: str, function: Kernel, *, complex_numbers: bool = False) -> Kernel:
    """A kernel that returns results in the dtype of its operands, which all share one.

    Results that are always complex have the complex counterpart of that dtype. 16-bit floats are
    computed in float32, the narrowest dtype of the libraries. Results of functions that exist only
    for float64 are cast back.

    Args:
        name: the operator's name, for PyTorch's error about complex operands.
        complex_numbers: whether the function is defined for complex numbers.
    """

    def kernel(*operands: Any) -> Any:
        dtype = next(value.dtype for value in operands if hasattr(value, "dtype"))
        if dtype.kind == "c" and not complex_numbers:
            raise not_implemented(name, dtype)
        if dtype.itemsize == 2:
            operands = tuple(
                value.astype("float32") if hasattr(value, "dtype") else value for value in operands
            )
        return _in_dtype(dtype, function(*operands))

    return kernel


def _in_dtype(dtype: Any, result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_in_dtype(dtype, item) for item in result)
    if result.dtype.kind == "c" and dtype.kind != "c":
        dtype = "complex128" if dtype.itemsize == 8 else "complex64"
    return result if result.dtype == dtype else result.astype(dtype)


def table(kernels: dict[str, Kernel]) -> dict[str, Kernel]:
    """Kernels under the full names of their operators."""
    return {f"special::{name}": kernel for name, kernel in kernels.items()}
