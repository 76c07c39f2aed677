"""Views, which are copies here since arrays are immutable, and the gradients that undo them.

The core has checked shapes, dimensions and indices. A position that a loop may vary is not a
constant of the program, so it is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax.numpy as jnp
from jax import lax

from plugrad.plugins.strides import (
    check_reach,
    diagonal_run,
    strided_positions,
    summed_positions,
)
from plugrad_jax.kernels.programs import Array, compiled, program

Shape = tuple[int, ...]

# Programs with more results than this take longer to compile than they save.
_PARTS: Final = 64


@compiled(1)
def view(array: Array, size: Shape) -> Array:
    return lax.reshape(array, size)


@compiled(1)
def permute(array: Array, dims: Shape) -> Array:
    return lax.transpose(array, dims)


@compiled(1, 2)
def transpose(array: Array, dim0: int, dim1: int) -> Array:
    return jnp.swapaxes(array, dim0, dim1) if array.ndim else array


@compiled()
def t(array: Array) -> Array:
    return array.T


@compiled(1)
def squeeze(array: Array, dims: Shape) -> Array:
    return lax.squeeze(array, dims)


@compiled(1)
def unsqueeze(array: Array, dim: int) -> Array:
    return lax.expand_dims(array, (dim,))


@compiled(1)
def expand(array: Array, size: Shape) -> Array:
    return jnp.broadcast_to(array, size)


@compiled(1)
def select(array: Array, dim: int, index: Any) -> Array:
    return lax.dynamic_index_in_dim(array, index, dim, False, allow_negative_indices=False)


def slice_(array: Array, dim: int, start: int, end: int, step: int) -> Array:
    return _part(array, start, dim, max(0, -((start - end) // step)), step)


def _run(array: Array, start: Any, dim: int, length: int, step: int) -> Array:
    if length == 0:
        return lax.slice_in_dim(array, 0, 0, 1, dim)
    reach = (length - 1) * step + 1
    run = lax.dynamic_slice_in_dim(array, start, reach, dim, allow_negative_indices=False)
    return run if step == 1 else lax.slice_in_dim(run, 0, reach, step, dim)


_part = program(_run, 2, 3, 4)


@compiled(1, 2)
def split(array: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    return tuple(lax.split(array, sizes, dim))


def unbind(array: Array, dim: int) -> tuple[Array, ...]:
    count = array.shape[dim]
    found: list[Array] = []
    for start in range(0, count, _PARTS):
        found += _unbound(array, start, dim, min(_PARTS, count - start))
    return tuple(found)


@compiled(2, 3)
def _unbound(array: Array, start: Any, dim: int, count: int) -> list[Array]:
    run = _run(array, start, dim, count, 1)
    return [lax.index_in_dim(run, i, dim, False) for i in range(count)]


@compiled(1, 2, 3)
def diagonal(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    return jnp.diagonal(array, offset, dim1, dim2)


def as_strided(array: Array, size: Shape, stride: Shape, storage_offset: int) -> Array:
    check_reach(size, stride, storage_offset, array.dtype.itemsize, array.nbytes)
    return _strided(array, storage_offset, size, stride)


@compiled(2, 3)
def _strided(array: Array, offset: Any, size: Shape, stride: Shape) -> Array:
    if 0 in size:
        return jnp.zeros(size, array.dtype)
    return array.reshape(-1)[strided_positions(jnp, size, stride, offset)]


@compiled()
def view_as_real(array: Array) -> Array:
    return jnp.stack([lax.real(array), lax.imag(array)], -1)


@compiled()
def view_as_complex(array: Array) -> Array:
    return lax.complex(array[..., 0], array[..., 1])


@compiled(1)
def view_dtype(array: Array, dtype: Any) -> Array:
    """Complex numbers by their parts: JAX would compute with them, and lose denormal ones."""
    wanted = jnp.dtype(dtype)
    size = array.shape
    if array.dtype.itemsize != wanted.itemsize:
        size = (*size[:-1], size[-1] * array.dtype.itemsize // wanted.itemsize)
    if array.dtype.kind == "c":
        array = view_as_real(array)
    flat = array.reshape(-1)
    if wanted.kind != "c":
        return flat.view(wanted).reshape(size)
    parts = flat.view(jnp.float32 if wanted.itemsize == 8 else jnp.float64)
    return lax.complex(parts[::2], parts[1::2]).reshape(size)


@compiled(1, 2)
def select_backward(grad: Array, input_sizes: Shape, dim: int, index: Any) -> Array:
    result = jnp.zeros(input_sizes, grad.dtype)
    return lax.dynamic_update_index_in_dim(result, grad, index, dim, allow_negative_indices=False)


def slice_backward(
    grad: Array, input_sizes: Shape, dim: int, start: int, end: int, step: int
) -> Array:
    return _slice_backward(grad, start, input_sizes, dim, step)


@compiled(2, 3, 4)
def _slice_backward(grad: Array, start: Any, input_sizes: Shape, dim: int, step: int) -> Array:
    result = jnp.zeros(input_sizes, grad.dtype)
    if grad.size == 0:
        return result
    if step != 1:
        gaps = [(0, 0, step - 1 if axis == dim else 0) for axis in range(grad.ndim)]
        grad = lax.pad(grad, jnp.zeros((), grad.dtype), gaps)
    return lax.dynamic_update_slice_in_dim(result, grad, start, dim)


@compiled(1, 2, 3, 4)
def diagonal_backward(grad: Array, input_sizes: Shape, offset: int, dim1: int, dim2: int) -> Array:
    others = [size for axis, size in enumerate(input_sizes) if axis not in (dim1, dim2)]
    matrices = (*others, input_sizes[dim1], input_sizes[dim2])
    row, column, length = diagonal_run(matrices[-2], matrices[-1], offset)
    where = (..., jnp.arange(row, row + length), jnp.arange(column, column + length))
    result = jnp.zeros(matrices, grad.dtype).at[where].set(grad, unique_indices=True)
    return jnp.moveaxis(result, (-2, -1), (dim1, dim2))


@compiled(1, 2, 3, 4, 5, 6)
def strided_sum(array: Array, *geometry: Any) -> Array:
    """What overlapping views had, added up at each place of the memory they share."""
    added, read, count = summed_positions(jnp, *geometry)
    memory = jnp.zeros(count, array.dtype).at[added.reshape(-1)].add(array.reshape(-1))
    return memory[read]


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "view": view,
    "_unsafe_view": view,
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
