"""Copies with a part replaced, which implement writes to views.

XLA copies nothing else if it sees that the former array is no longer used, as in a program that
`plugrad_jax.jit` makes. The start of the part is not a constant of the program, so a loop over
positions compiles it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax.numpy as jnp
from jax import lax

from plugrad.plugins.strides import strided_positions
from plugrad_jax.kernels.programs import Array, compiled

Shape = tuple[int, ...]


@compiled(2)
def _put_index(array: Array, source: Array, dim: int, index: Any) -> Array:
    return lax.dynamic_update_index_in_dim(array, source, index, dim, allow_negative_indices=False)


@compiled(3)
def _put_run(array: Array, source: Array, start: Any, dim: int) -> Array:
    return lax.dynamic_update_slice_in_dim(array, source, start, dim, allow_negative_indices=False)


@compiled(3, 4)
def _put_steps(array: Array, source: Array, start: Any, dim: int, step: int) -> Array:
    """Updates the whole run, including the elements between the steps."""
    count = source.shape[dim]
    reach = (count - 1) * step + 1
    gaps = [(0, 0, step - 1 if axis == dim else 0) for axis in range(source.ndim)]
    spread = lax.pad(source, jnp.zeros((), source.dtype), gaps)
    run = lax.dynamic_slice_in_dim(array, start, reach, dim, allow_negative_indices=False)
    taken = lax.broadcasted_iota(jnp.int32, run.shape, dim) % step == 0
    return lax.dynamic_update_slice_in_dim(
        array, jnp.where(taken, spread, run), start, dim, allow_negative_indices=False
    )


@compiled(2, 3, 4)
def diagonal_scatter(array: Array, source: Array, offset: int, dim1: int, dim2: int) -> Array:
    rows, columns = array.shape[dim1], array.shape[dim2]
    i = lax.broadcasted_iota(jnp.int32, (rows, columns), 0)
    j = lax.broadcasted_iota(jnp.int32, (rows, columns), 1)
    matrices = jnp.moveaxis(array, (dim1, dim2), (-2, -1))
    if source.size:
        spread = source[..., jnp.clip(jnp.minimum(i, j), 0, source.shape[-1] - 1)]
        matrices = jnp.where(j - i == offset, spread, matrices)
    return jnp.moveaxis(matrices, (-2, -1), (dim1, dim2))


@compiled(2, 3)
def _put_strided(array: Array, source: Array, size: Shape, stride: Shape, offset: Any) -> Array:
    places = strided_positions(jnp, size, stride, offset)
    return array.reshape(-1).at[places].set(source).reshape(array.shape)


def select_scatter(array: Array, source: Array, dim: int, index: int) -> Array:
    return _put_index(array, source, dim, index)


def slice_scatter(array: Array, source: Array, dim: int, start: int, end: int, step: int) -> Array:
    if source.size == 0:
        return array
    if source.shape == array.shape:
        return source
    if step == 1:
        return _put_run(array, source, start, dim)
    return _put_steps(array, source, start, dim, step)


def as_strided_scatter(
    array: Array, source: Array, size: Shape, stride: Shape, storage_offset: int
) -> Array:
    return array if 0 in size else _put_strided(array, source, size, stride, storage_offset)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
    "diagonal_scatter": diagonal_scatter,
    "_as_strided_scatter": as_strided_scatter,
}
