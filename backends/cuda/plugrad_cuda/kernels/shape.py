"""Kernels that copy: joining, repeating, reordering, sorting, casting."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad.plugins.kernel_errors import NEGATIVE_REPEATS, OTHER_OUTPUT_SIZE
from plugrad.plugins.strides import copy_order, diagonal_sizes
from plugrad_cuda.kernels.family import INT64, Family
from plugrad_cuda.kernels.namespace import Array, Kernel, Shape
from plugrad_cuda.kernels.views import diagonal_view


class Reordering(Family):
    """Copies in another order, shape or dtype."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "cat": self.cat,
            "stack": self.stack,
            "flip": self.flip,
            "roll": self.roll,
            "repeat": self.repeat,
            "repeat_interleave.Tensor": self.repeat_interleave,
            "tril": self.tril,
            "triu": self.triu,
            "sort": self.sort,
            "topk": self.topk,
            "_unique2": self.unique,
            "diag_embed": self.diag_embed,
            "clone": self.clone,
            "_to_copy": self.cast,
            "copy_": self.copy_,
        }

    def cat(self, arrays: list[Array], dim: int) -> Array:
        return self.xp.concatenate(arrays, axis=dim)

    def stack(self, arrays: list[Array], dim: int) -> Array:
        return self.xp.stack(arrays, axis=dim)

    def flip(self, array: Array, dims: Shape) -> Array:
        """A copy, since tensors have no negative strides."""
        return self.xp.flip(array, axis=dims).copy() if dims else array.copy()

    def roll(self, array: Array, shifts: Shape, dims: Shape) -> Array:
        if dims:
            return self.xp.roll(array, shifts, axis=dims)
        return self.xp.roll(array, shifts[0])

    def repeat(self, array: Array, repeats: Shape) -> Array:
        return self.xp.tile(array, repeats)

    def repeat_interleave(self, repeats: Array, output_size: int | None) -> Array:
        """Each position, repeated by its count. CuPy's own repeat needs the counts on the host;
        here only their sum is copied there."""
        if self.ns.may_wait() and bool(self.xp.any(repeats < 0)):
            raise RuntimeError(NEGATIVE_REPEATS)
        if repeats.size == 0:
            return repeats.copy()
        ends = self.xp.cumsum(repeats, dtype=INT64)
        if self.ns.may_wait() or output_size is None:
            total = int(ends[-1])
            if output_size is not None and output_size != total:
                raise RuntimeError(OTHER_OUTPUT_SIZE)
            output_size = total
        places = self.xp.arange(output_size, dtype=INT64)
        found = self.xp.searchsorted(ends, places, side="right")
        return found.astype(repeats.dtype, copy=False)

    def tril(self, array: Array, diagonal: int) -> Array:
        return self.xp.tril(array, diagonal).astype(array.dtype, copy=False)

    def triu(self, array: Array, diagonal: int) -> Array:
        return self.xp.triu(array, diagonal).astype(array.dtype, copy=False)

    def argsort(self, array: Array, dim: int, descending: bool) -> Array:
        """Stable also when descending: the reversed array is sorted, and reversed again."""
        if array.size == 0:
            return self.xp.zeros(array.shape, INT64)
        keys = self.ordered(array)
        if not descending:
            return self.xp.argsort(keys, axis=dim, kind="stable")
        reverse = self.xp.argsort(self.xp.flip(keys, axis=dim), axis=dim, kind="stable")
        return self.xp.flip(array.shape[dim] - 1 - reverse, axis=dim)

    def sort(self, array: Array, dim: int, descending: bool) -> tuple[Array, Array]:
        if array.ndim == 0:
            return array.copy(), self.xp.zeros((), INT64)
        indices = self.xp.ascontiguousarray(self.argsort(array, dim, descending))
        return self.xp.take_along_axis(array, indices, dim), indices

    def topk(self, array: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
        if array.ndim == 0:
            return array.copy(), self.xp.zeros((), INT64)
        order = self.argsort(array, dim, largest)
        indices = self.xp.ascontiguousarray(order[(*(slice(None),) * dim, slice(k))])
        return self.xp.take_along_axis(array, indices, dim), indices

    def unique(
        self, array: Array, is_sorted: bool, return_inverse: bool, return_counts: bool
    ) -> Any:
        """The different elements; where each element is among them; and how often each occurs.
        The host needs their number. Each nan is different from the others."""
        if array.size == 0 or array.dtype.kind == "c":
            return NotImplemented
        xp = self.xp
        keys = self.ordered(array).reshape(-1)
        order = xp.argsort(keys, kind="stable")
        ordered = keys[order]
        begins = xp.concatenate((xp.ones(1, np.bool_), ordered[1:] != ordered[:-1]))
        starts = xp.flatnonzero(begins)
        inverse, counts = xp.empty(0, INT64), xp.empty(0, INT64)
        if return_inverse:
            inverse = xp.empty(array.size, INT64)
            inverse[order] = xp.cumsum(begins, dtype=INT64) - 1
            inverse = inverse.reshape(array.shape)
        if return_counts:
            ends = xp.concatenate((starts[1:], xp.full(1, array.size, starts.dtype)))
            counts = ends - starts
        return array.reshape(-1)[order[starts]], inverse, counts

    def diag_embed(self, array: Array, offset: int, dim1: int, dim2: int) -> Array:
        result = self.xp.zeros(diagonal_sizes(array.shape, offset, dim1, dim2), array.dtype)
        diagonal_view(self.xp, result, offset, dim1, dim2)[...] = array
        return result

    def clone(self, array: Array, keep_strides: bool) -> Array:
        return array.copy(copy_order(array) if keep_strides else "C")

    def cast(self, array: Array, dtype: Any) -> Array:
        """Complex to real drops the imaginary part; what does not fit an integer is undefined."""
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        return array.astype(dtype, order=copy_order(array))

    def copy_(self, target: Array, source: Array) -> Array:
        if source.dtype.kind == "c" and target.dtype.kind not in "cb":
            source = source.real
        self.xp.copyto(target, source, casting="unsafe")
        return target
