"""What the families of kernels have in common: dtypes, numbers, fusion, and refused dtypes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import not_implemented
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace

FLOAT32: Final = np.dtype(np.float32)
INT64: Final = np.dtype(np.int64)
_FLOAT16: Final = np.dtype(np.float16)
_DOUBLES: Final = (np.dtype(np.float64), np.dtype(np.complex128))
# Of numbers beside arrays that are not double, and that are.
_PRECISIONS: Final = ((np.float32, np.complex64), (np.float64, np.complex128))


def is_bfloat16(a: Array) -> bool:
    """NumPy's kind of a dtype that others have added."""
    return bool(a.dtype.kind == "V")


def is_narrow(a: Array) -> bool:
    """Whether an array holds 16-bit floats, which are computed with in float32."""
    return a.itemsize == 2 and a.dtype.kind in "fV"


def accumulator(dtype: Any) -> Any:
    """The dtype in which sums of a dtype are kept."""
    return FLOAT32 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def widen(a: Array) -> Array:
    """16-bit floats in float32; the array itself otherwise."""
    return a.astype(FLOAT32) if is_narrow(a) else a


def number(value: Any, dtype: Any) -> Any:
    """A Python number that a dtype can have: CuPy takes it as a kernel's argument, not as an
    array that would have to be copied to the device."""
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return int(np.array(value).astype(dtype))
    return value


def scalar(value: Any, dtype: Any) -> Any:
    """The same as a NumPy scalar, which has a dtype of its own."""
    return np.array(value).astype(dtype)[()]


def rejecting(kinds: str, name: str, kernel: Kernel) -> Kernel:
    """A kernel that refuses a first operand of some NumPy kinds, in PyTorch's words."""

    @functools.wraps(kernel)
    def checked(a: Array, *rest: Any) -> Any:
        if a.dtype.kind in kinds:
            raise not_implemented(name, a.dtype)
        return kernel(a, *rest)

    return checked


def narrowed(result: Any, dtype: Any) -> Any:
    """What was computed in float32 in another dtype; other dtypes, and None, stay."""
    if isinstance(result, tuple):
        return tuple([narrowed(part, dtype) for part in result])
    return result.astype(dtype) if result is not None and result.dtype == FLOAT32 else result


def _widening(function: Kernel) -> Kernel:
    """A function to be fused that computes float16 in float32, without a launch for the casts."""

    def widened(xp: Any, *args: Any) -> Any:
        halves = [getattr(arg, "dtype", None) == _FLOAT16 for arg in args]
        if True not in halves:
            return function(xp, *args)
        wide = [
            arg.astype(np.float32) if half else arg for arg, half in zip(args, halves, strict=True)
        ]
        return narrowed(function(xp, *wide), _FLOAT16)

    return widened


def _with_dtypes(args: Sequence[Any]) -> Sequence[Any]:
    """Floating numbers in the precision of the arrays beside them, if those are floating.

    What a fused kernel makes of numbers alone, such as `1 - weight`, CuPy otherwise computes in
    float16.
    """
    if not any(type(arg) in (float, complex) for arg in args):
        return args
    wide = [arg.dtype for arg in args if hasattr(arg, "dtype") and arg.dtype.kind in "fc"]
    if not wide:
        return args
    real, imaginary = _PRECISIONS[any(dtype in _DOUBLES for dtype in wide)]
    given = {float: real, complex: imaginary}
    return [given[type(arg)](arg) if type(arg) in given else arg for arg in args]


class Family:
    """Kernels on the arrays of one namespace, by operator name."""

    def __init__(self, ns: Namespace) -> None:
        self.ns = ns
        self.xp = ns.xp

    def kernels(self) -> dict[str, Kernel]:
        """The kernels of this family."""
        raise NotImplementedError

    def is_array(self, value: Any) -> bool:
        return isinstance(value, self.xp.ndarray)

    def fused(self, function: Callable[..., Any]) -> Kernel:
        """`function(xp, ...)` of arrays, numbers and None as one kernel.

        float16 is widened within it. CuPy does not fuse bfloat16, so that is widened before.
        """
        kernel = self.ns.fuse(_widening(function), function.__name__.strip("_"))

        def fused(*args: Any) -> Any:
            for arg in args:
                if getattr(arg, "itemsize", 0) == 2 and is_bfloat16(arg):
                    break
            else:
                return kernel(*_with_dtypes(args))
            dtype = arg.dtype
            wide = [widen(value) if self.is_array(value) else value for value in args]
            return narrowed(kernel(*_with_dtypes(wide)), dtype)

        return fused

    def ordered(self, a: Array) -> Array:
        """What sorts and compares like an array: CuPy sorts neither bools nor bfloat16."""
        if a.dtype.kind == "b":
            return a.view(np.uint8)
        return a.astype(FLOAT32) if is_bfloat16(a) else a

    def truth(self, a: Array) -> Array:
        """Which elements are not zero, of dtypes for which CuPy's logic has no loop."""
        return a != 0 if a.dtype.kind in "cV" else a
