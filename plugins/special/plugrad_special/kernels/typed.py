"""What the kernels of every backend share: dtypes as PyTorch has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.plugins.kernel_errors import not_implemented

Kernel = Callable[..., Any]


def typed(name: str, function: Kernel, *, complex_numbers: bool = False) -> Kernel:
    """A kernel that gives results in the dtype of its operands, which are all of one.

    Results that are complex by nature are of the complex counterpart. 16-bit floats are computed
    in float32, as libraries have nothing narrower; what they have for float64 only is cast back.

    Args:
        name: the operator's, for PyTorch's error about complex operands.
        complex_numbers: whether the function is defined for these.
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
