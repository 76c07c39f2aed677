"""Kernels that copy: joining, repeating, reordering, sorting, casting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax.numpy as jnp
from jax import lax

from plugrad.plugins.kernel_errors import NEGATIVE_REPEATS
from plugrad.plugins.strides import diagonal_sizes
from plugrad_jax.kernels.placement import require_values
from plugrad_jax.kernels.programs import Array, compiled
from plugrad_jax.kernels.views import diagonal_backward

Shape = tuple[int, ...]


@compiled(1)
def cat(arrays: list[Array], dim: int) -> Array:
    return lax.concatenate(arrays, dim)


@compiled(1)
def stack(arrays: list[Array], dim: int) -> Array:
    return jnp.stack(arrays, dim)


@compiled(1)
def flip(array: Array, dims: Shape) -> Array:
    return lax.rev(array, dims)


@compiled(1, 2)
def roll(array: Array, shifts: Shape, dims: Shape) -> Array:
    return jnp.roll(array, shifts, dims) if dims else jnp.roll(array, shifts[0])


@compiled(1)
def repeat(array: Array, repeats: Shape) -> Array:
    return jnp.tile(array, repeats)


def repeat_interleave(repeats: Array, output_size: int | None) -> Array:
    """With an `output_size` there is no wait and no check."""
    if output_size is None:
        require_values(repeats, "repeat_interleave.Tensor", "give it an output_size")
        least, output_size = [int(number) for number in _least_and_sum(repeats)]
        if least < 0:
            raise RuntimeError(NEGATIVE_REPEATS)
    return _repeat_interleave(repeats, output_size)


@compiled()
def _least_and_sum(repeats: Array) -> tuple[Array, Array]:
    return jnp.min(repeats, initial=0), jnp.sum(repeats)


@compiled(1)
def _repeat_interleave(repeats: Array, output_size: int) -> Array:
    numbers = lax.iota(repeats.dtype, repeats.size)
    return jnp.repeat(numbers, repeats, total_repeat_length=output_size)


@compiled(1)
def tril(array: Array, diagonal: int) -> Array:
    return jnp.tril(array, diagonal)


@compiled(1)
def triu(array: Array, diagonal: int) -> Array:
    return jnp.triu(array, diagonal)


def ordered(array: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Sorted, with the original position of each element. Equal ones stay in order, also when
    descending: then the reversed array is sorted, and reversed again."""
    places = lax.broadcasted_iota(jnp.int64, array.shape, dim)
    if descending:
        array, places = lax.rev(array, (dim,)), lax.rev(places, (dim,))
    values, indices = lax.sort((array, places), dimension=dim, is_stable=True, num_keys=1)
    if descending:
        return lax.rev(values, (dim,)), lax.rev(indices, (dim,))
    return values, indices


@compiled(1, 2)
def sort(array: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if array.ndim == 0:
        return array, jnp.zeros((), jnp.int64)
    return ordered(array, dim, descending)


@compiled(1, 2, 3)
def topk(array: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    if array.ndim == 0:
        return array, jnp.zeros((), jnp.int64)
    values, indices = ordered(array, dim, largest)
    return lax.slice_in_dim(values, 0, k, 1, dim), lax.slice_in_dim(indices, 0, k, 1, dim)


@compiled(1, 2, 3)
def diag_embed(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    sizes = diagonal_sizes(array.shape, offset, dim1, dim2)
    return diagonal_backward(array, sizes, offset, dim1, dim2)


@compiled(1)
def clone(array: Array, keep_strides: bool) -> Array:
    """In memory of its own: what `plugrad_jax.jit` donates may be the original's."""
    return jnp.copy(array)


@compiled(1)
def cast(array: Array, dtype: Any) -> Array:
    """Complex to real drops the imaginary part; what does not fit an integer is undefined."""
    if array.dtype == dtype:
        return jnp.copy(array)
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = lax.real(array)
    if dtype == jnp.bool_:
        return array != 0
    if dtype == jnp.float8_e4m3fn:
        # It has no infinity: what is too large becomes its largest number.
        array = jnp.clip(lax.convert_element_type(array, jnp.float32), -448, 448)
    return lax.convert_element_type(array, dtype)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "cat": cat,
    "stack": stack,
    "flip": flip,
    "roll": roll,
    "repeat": repeat,
    "repeat_interleave.Tensor": repeat_interleave,
    "tril": tril,
    "triu": triu,
    "sort": sort,
    "topk": topk,
    "diag_embed": diag_embed,
    "clone": clone,
    "_to_copy": cast,
}
