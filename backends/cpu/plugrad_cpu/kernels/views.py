"""Views of NumPy arrays, which share memory with their input, and the gradients that undo them.

The core has checked shapes, dimensions and indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import NOT_A_VIEW
from plugrad.plugins.strides import may_overlap, reach, strided_positions
from plugrad_cpu.memory import flat_memory, strided

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_ALL: Final = slice(None)
# How many elements `np.add.at` adds in the time of one addition of arrays.
_WORTH_A_CALL: Final = 100


def view(array: Array, size: Shape) -> Array:
    if array.flags.c_contiguous:
        return array.reshape(size)
    try:
        return array.reshape(size, copy=False)
    except ValueError:
        raise RuntimeError(NOT_A_VIEW) from None


def permute(array: Array, dims: Shape) -> Array:
    return array.transpose(dims)


def transpose(array: Array, dim0: int, dim1: int) -> Array:
    return array.swapaxes(dim0, dim1) if array.ndim else array[...]


def t(array: Array) -> Array:
    return array.T


def squeeze(array: Array, dims: Shape) -> Array:
    return array.squeeze(dims)


def unsqueeze(array: Array, dim: int) -> Array:
    place: Any = (*(_ALL,) * dim, None, ...) if dim else None
    result: Array = array[place]
    return result


def expand(array: Array, size: Shape) -> Array:
    """NumPy's own broadcast_to is read-only, and slower."""
    old = array.shape
    added = len(size) - len(old)
    strides = (0,) * added + array.strides
    if old != size[added:]:
        strides = _repeated((*(1,) * added, *old), size, strides)
    if array.size and array.flags.c_contiguous:
        try:
            return np.ndarray(size, array.dtype, array, 0, strides)
        except (ValueError, TypeError):  # a dtype or array that exports no buffer
            pass
    return np.lib.stride_tricks.as_strided(array, size, strides)


def _repeated(old: Shape, size: Shape, strides: Shape) -> Shape:
    """The strides in a larger size: none along the dimensions that are repeated."""
    return tuple(
        [
            stride if before == after else 0
            for before, after, stride in zip(old, size, strides, strict=True)
        ]
    )


def select(array: Array, dim: int, index: int) -> Array:
    place: Any = (*(_ALL,) * dim, index, ...) if dim else (index, ...)
    result: Array = array[place]
    return result


def slice_(array: Array, dim: int, start: int, end: int, step: int) -> Array:
    place: Any = (*(_ALL,) * dim, slice(start, end, step)) if dim else slice(start, end, step)
    result: Array = array[place]
    return result


def split(array: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    parts: list[Array] = []
    start = 0
    for size in sizes:
        parts.append(slice_(array, dim, start, start + size, 1))
        start += size
    return tuple(parts)


def unbind(array: Array, dim: int) -> tuple[Array, ...]:
    return tuple([select(array, dim, index) for index in range(array.shape[dim])])


def diagonal(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = array.diagonal(offset, dim1, dim2)
    if array.flags.writeable:
        result.flags.writeable = True
    return result


def as_strided(array: Array, size: Shape, stride: Shape, storage_offset: int) -> Array:
    return strided(flat_memory(array), size, stride, storage_offset)


def view_as_real(array: Array) -> Array:
    parts = array.real
    return np.lib.stride_tricks.as_strided(
        parts, (*parts.shape, 2), (*parts.strides, parts.itemsize)
    )


def view_as_complex(array: Array) -> Array:
    dtype = np.complex128 if array.dtype == np.float64 else np.complex64
    result: Array = array.view(dtype)[..., 0]
    return result


def view_dtype(array: Array, dtype: Any) -> Array:
    result: Array = array.view(dtype)
    return result


def select_backward(grad: Array, input_sizes: Shape, dim: int, index: int) -> Array:
    result = np.zeros(input_sizes, grad.dtype)
    select(result, dim, index)[...] = grad
    return result


def slice_backward(
    grad: Array, input_sizes: Shape, dim: int, start: int, end: int, step: int
) -> Array:
    result = np.zeros(input_sizes, grad.dtype)
    slice_(result, dim, start, end, step)[...] = grad
    return result


def diagonal_backward(grad: Array, input_sizes: Shape, offset: int, dim1: int, dim2: int) -> Array:
    result = np.zeros(input_sizes, grad.dtype)
    diagonal(result, offset, dim1, dim2)[...] = grad
    return result


def strided_sum(array: Array, size: Shape, stride: Shape, offset: int, *output: Any) -> Array:
    """What overlapping views had, added up at each place of the memory they share."""
    shape, steps, start = output
    memory = np.zeros(max(reach(size, stride, offset), reach(shape, steps, start), 1), array.dtype)
    if array.size > 0:
        _add_strided(memory, array, size, stride, offset)
    result: Array = strided(memory, shape, steps, start)
    # A whole memory in order is the result; anything else would show the rest of it.
    return result if result.size == memory.size and result.flags.c_contiguous else result.copy("C")


def _add_strided(memory: Array, array: Array, size: Shape, stride: Shape, offset: int) -> None:
    if not may_overlap(size, stride):
        target = strided(memory, size, stride, offset)
        target += array
        return
    # Slices that do not overlap, one after the other, as long as they are worth a call each.
    for dim in sorted(range(len(size)), key=lambda dim: size[dim]):
        if size[dim] * _WORTH_A_CALL > array.size:
            break
        inner, steps = (_without(dim, size), _without(dim, stride))
        if may_overlap(inner, steps):
            continue
        for index in range(size[dim]):
            target = strided(memory, inner, steps, offset + index * stride[dim])
            place: Any = (*[_ALL] * dim, index)
            target += array[place]
        return
    # np.add.at, unlike `+=`, counts a place as often as it occurs.
    places = strided_positions(np, size, stride, offset)
    np.add.at(memory, places.reshape(-1), array.reshape(-1))


def _without(dim: int, values: Shape) -> Shape:
    return (*values[:dim], *values[dim + 1 :])


def unsafe_view(array: Array, size: Shape) -> Array:
    return array.reshape(size)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "view": view,
    "_unsafe_view": unsafe_view,
    "permute": permute,
    "transpose": transpose,
    "t": t,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    "expand": expand,
    "select": select,
    "slice": slice_,
    "split": split,
    "split_with_sizes": split,
    "unbind": unbind,
    "diagonal": diagonal,
    "_as_strided": as_strided,
    "view_as_complex": view_as_complex,
    "view_as_real": view_as_real,
    "_view_dtype": view_dtype,
    "select_backward": select_backward,
    "slice_backward": slice_backward,
    "diagonal_backward": diagonal_backward,
    "_strided_sum": strided_sum,
}
