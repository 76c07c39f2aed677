"""Kernels that copy: joining, repeating, reordering, casting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import NEGATIVE_REPEATS, OTHER_OUTPUT_SIZE
from plugrad.plugins.strides import copy_order, diagonal_sizes
from plugrad_cpu.kernels.views import diagonal

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def cat(arrays: list[Array], dim: int) -> Array:
    joined = np.concatenate(arrays, dim)
    # Images keep channels last if all of them have them so, which is NumPy's way of joining.
    return joined if joined.ndim in (4, 5) else _in_order(joined)


def stack(arrays: list[Array], dim: int) -> Array:
    # np.stack does the same by several functions of Python.
    place: Any = (slice(None),) * (dim % (arrays[0].ndim + 1)) + (None,)
    return _in_order(np.concatenate([array[place] for array in arrays], dim))


def _in_order(array: Array) -> Array:
    """Row-major for any layout of the operands, so that dependent results do not vary with it."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def flip(array: Array, dims: Shape) -> Array:
    """A copy, since tensors have no negative strides."""
    flipped = np.flip(array, dims)
    return flipped.copy(copy_order(array))


def roll(array: Array, shifts: Shape, dims: Shape) -> Array:
    return _in_order(np.roll(array, shifts, dims) if dims else np.roll(array, shifts[0]))


def repeat(array: Array, repeats: Shape) -> Array:
    return np.tile(array, repeats)


def repeat_interleave(repeats: Array, output_size: int | None) -> Array:
    if (repeats < 0).any():
        raise RuntimeError(NEGATIVE_REPEATS)
    # NumPy adds up without a look at overflow, and then writes where no array is.
    total = repeats.sum(dtype=np.float64)
    if total >= 2.0**62:
        raise RuntimeError(f"Storage size calculation overflowed with sizes=[{int(total)}]")
    result = np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)
    if output_size is not None and output_size != result.size:
        raise RuntimeError(OTHER_OUTPUT_SIZE)
    return result


def tril(array: Array, diagonal: int) -> Array:
    return np.tril(array, diagonal)


def triu(array: Array, diagonal: int) -> Array:
    return np.triu(array, diagonal)


def diag_embed(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = np.zeros(diagonal_sizes(array.shape, offset, dim1, dim2), array.dtype)
    diagonal(result, offset, dim1, dim2)[...] = array
    return result


def clone(array: Array, keep_strides: bool) -> Array:
    return array.copy(copy_order(array) if keep_strides else "C")


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Complex to real drops the imaginary part; what does not fit an integer is undefined."""
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    if dtype.kind == "V" and dtype.itemsize == 1:
        array = _saturated(array)
    result: Array = array.astype(dtype, copy_order(array))
    return result


def _saturated(array: Array) -> Array:
    """For float8_e4m3fn, which has no infinity: what is too large becomes its largest number."""
    return np.clip(array.astype(np.float32), -448, 448)


def copy_(target: Array, source: Array) -> Array:
    kind = target.dtype.kind
    if source.dtype is not target.dtype:
        if source.dtype.kind == "c" and kind not in "cb":
            source = source.real
        if kind == "V" and target.itemsize == 1:
            source = _saturated(source)
        _copy_casting(target, source)
    else:
        np.copyto(target, source)
    return target


def _copy_casting(target: Array, source: Array) -> None:
    np.copyto(target, source, casting="unsafe")


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "cat": cat,
    "stack": stack,
    "flip": flip,
    "roll": roll,
    "repeat": repeat,
    "repeat_interleave.Tensor": repeat_interleave,
    "tril": tril,
    "triu": triu,
    "diag_embed": diag_embed,
    "clone": clone,
    "_to_copy": cast,
    "copy_": copy_,
}
