"""Matrix products for which CuPy does not use cuBLAS: while a stream is captured, and of bfloat16.

cuBLAS can be captured, but CuPy does not call it then, and multiplies no stacks of bfloat16. So
this module calls it, with CuPy's handle.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import math
import sys
from typing import Any, Final, NamedTuple

Array = Any
Shape = tuple[int, ...]

# By dtype: cuBLAS' number for it, and for the type that sums have: cudaDataType and
# cublasComputeType_t, in library_types.h and cublas_api.h.
_TYPES: Final = {
    "float16": (2, 68),
    "bfloat16": (14, 68),
    "float32": (0, 68),
    "float64": (1, 70),
    "complex64": (4, 68),
    "complex128": (5, 70),
}
_DOUBLE: Final = 70
_DEFAULT_ALGORITHM: Final = -1
# What cuBLAS takes for itself: on GPUs of capability 9 and later, and before.
_WORKSPACE: Final = (32 << 20, 4 << 20)


class Stack(NamedTuple):
    """Matrices as cuBLAS reads them.

    Attributes:
        array: the array with the memory that is read.
        turned: whether the matrix is column-major rather than row-major.
        leading: the distance to the next row or column; all distances are in elements.
        step: the distance to the next matrix; 0 if all are the same.
    """

    array: Array
    turned: bool
    leading: int
    step: int


def stack(xp: Any, array: Array, batch: Shape) -> Stack:
    """The matrices of an array, which is broadcast to `batch`; copied only if they have to be."""
    rows, columns = array.shape[-2:]
    found = xp.broadcast_to(array, (*batch, rows, columns)) if array.ndim > 2 else array
    for _ in range(2):
        sizes = [size // found.itemsize for size in found.strides]
        step = _step(batch, sizes[:-2]) if found.ndim > 2 else 0
        down, right = sizes[-2:]
        if step is not None:
            if (right == 1 or columns == 1) and (down >= columns or rows == 1):
                return Stack(found, False, down if rows > 1 else columns, step)
            if (down == 1 or rows == 1) and (right >= rows or columns == 1):
                return Stack(found, True, right if columns > 1 else rows, step)
        found = xp.ascontiguousarray(found)
    raise AssertionError("a contiguous array is a stack of matrices")


def _step(batch: Shape, strides: list[int]) -> int | None:
    """The one step that all dimensions of a batch come to; None if there is none."""
    several = [at for at, size in enumerate(batch) if size > 1]
    for outer, inner in itertools.pairwise(several):
        if strides[outer] != strides[inner] * batch[inner]:
            return None
    return strides[several[-1]] if several else 0


def product(xp: Any, a: Array, b: Array) -> Array:
    """`a @ b` of arrays of one floating or complex dtype, of one dimension or more.

    Raises:
        NotImplementedError: cuBLAS does not multiply this dtype.
        RuntimeError: cuBLAS failed.
    """
    if a.dtype.name not in _TYPES:
        raise NotImplementedError(f"cuBLAS does not multiply matrices of {a.dtype}")
    if b.ndim == 1:
        return product(xp, a, b[:, None])[..., 0]
    if a.ndim == 1:
        return product(xp, a[None, :], b)[..., 0, :]
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    out = xp.empty((*batch, rows, columns), a.dtype)
    if not out.size or not inner:
        out.fill(0)
        return out
    # To cuBLAS, which counts down the columns, our rows are the columns of what is turned: so it
    # makes out.T = b.T @ a.T.
    first, second = stack(xp, b, batch), stack(xp, a, batch)
    ready = _ready(xp)
    number, compute = _TYPES[a.dtype.name]
    real = ctypes.c_double if compute == _DOUBLE else ctypes.c_float
    one, zero = (real * 2)(1.0, 0.0), (real * 2)(0.0, 0.0)  # complex, or its first half
    _check(
        _library(ready.major).cublasGemmStridedBatchedEx(
            *(ready.handle, int(first.turned), int(second.turned), columns, rows, inner),
            *(ctypes.byref(one), _pointer(first.array), number, first.leading),
            *(ctypes.c_longlong(first.step), _pointer(second.array), number, second.leading),
            *(ctypes.c_longlong(second.step), ctypes.byref(zero), _pointer(out), number, columns),
            *(ctypes.c_longlong(rows * columns), math.prod(batch), compute, _DEFAULT_ALGORITHM),
        )
    )
    return out


def _broadcast(one: Shape, other: Shape) -> Shape:
    """The shape of two batches of matrices."""
    if one == other:
        return one
    length = max(len(one), len(other))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(other)) + other, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


class _Ready(NamedTuple):
    """A handle that works on the current stream; the memory that it may use is the graph's."""

    handle: ctypes.c_void_p
    major: int


def _ready(xp: Any) -> _Ready:
    cublas = importlib.import_module("cupy_backends.cuda.libs.cublas")
    handle = xp.cuda.device.get_cublas_handle()
    ready = _Ready(ctypes.c_void_p(handle), cublas.getVersion(handle) // 10_000)
    library = _library(ready.major)
    capability = int(xp.cuda.Device().compute_capability)
    workspace = xp.empty((_WORKSPACE[0 if capability >= 90 else 1],), "uint8")
    stream = ctypes.c_void_p(xp.cuda.get_current_stream().ptr)
    _check(library.cublasSetStream_v2(ready.handle, stream))
    # The memory can be reused at once on this stream, because later work runs after it.
    pointer = ctypes.c_void_p(_pointer(workspace))
    size = ctypes.c_size_t(workspace.nbytes)
    _check(library.cublasSetWorkspace_v2(ready.handle, pointer, size))
    return ready


@functools.cache
def _library(major: int) -> Any:
    """The library that CuPy has loaded."""
    name = f"cublas64_{major}.dll" if sys.platform == "win32" else f"libcublas.so.{major}"
    library = ctypes.CDLL(name)
    pointer, number, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    operand = (pointer, number, number, long)
    library.cublasGemmStridedBatchedEx.argtypes = (
        *(pointer, number, number, number, number, number),
        *(pointer, *operand, *operand, pointer, *operand),
        *(number, number, number),
    )
    return library


def _pointer(array: Array) -> int:
    address: int = array.data.ptr
    return address


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cuBLAS failed with status {status} (see cublasStatus_t)")
