"""Views, which share memory with their input, and the gradients that undo them.

The core has checked shapes, dimensions and indices. Views launch no kernel.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import NOT_A_VIEW
from plugrad.plugins.strides import diagonal_run, summed_positions
from plugrad_cuda.kernels.family import Family, narrowed, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Shape
from plugrad_cuda.kernels.scattering import add_at

_ALL: Final = slice(None)


def at(dim: int, part: Any) -> Any:
    """An index in one dimension only."""
    return (*(_ALL,) * dim, part, ...)


def diagonal_view(xp: Any, array: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal as the last dimension, to write to."""
    row, column, length = diagonal_run(array.shape[dim1], array.shape[dim2], offset)
    others = [dim for dim in range(array.ndim) if dim not in (dim1, dim2)]
    first: list[Any] = [_ALL] * array.ndim
    if length:
        first[dim1], first[dim2] = slice(row, None), slice(column, None)
    start = array[tuple(first)]
    shape = (*(array.shape[dim] for dim in others), length)
    step = array.strides[dim1] + array.strides[dim2]
    strides = (*(array.strides[dim] for dim in others), step)
    return xp.lib.stride_tricks.as_strided(start, shape, strides)


class Views(Family):
    """Other shapes and parts of the same memory."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "view": self.view,
            "_unsafe_view": self.unsafe_view,
            "permute": self.permute,
            "transpose": self.transpose,
            "t": self.t,
            "squeeze": self.squeeze,
            "unsqueeze": self.unsqueeze,
            "expand": self.expand,
            "select": self.select,
            "slice": self.slice,
            "split": self.split,
            "split_with_sizes": self.split,
            "unbind": self.unbind,
            "diagonal": self.diagonal,
            "_as_strided": self.as_strided,
            "view_as_complex": self.view_as_complex,
            "view_as_real": self.view_as_real,
            "_view_dtype": self.view_dtype,
            "select_backward": self.select_backward,
            "slice_backward": self.slice_backward,
            "diagonal_backward": self.diagonal_backward,
            "_strided_sum": self.strided_sum,
        }

    def strided(self, array: Array, size: Shape, strides: Shape) -> Array:
        return self.xp.lib.stride_tricks.as_strided(array, size, strides)

    def view(self, array: Array, size: Shape) -> Array:
        if array.flags.c_contiguous:
            return array.reshape(size)
        try:
            return self.ns.view_as(array, size)
        except ValueError:
            raise RuntimeError(NOT_A_VIEW) from None

    def unsafe_view(self, array: Array, size: Shape) -> Array:
        return array.reshape(size)

    def permute(self, array: Array, dims: Shape) -> Array:
        return array.transpose(dims)

    def transpose(self, array: Array, dim0: int, dim1: int) -> Array:
        return array.swapaxes(dim0, dim1) if array.ndim else array[...]

    def t(self, array: Array) -> Array:
        return array.T

    def squeeze(self, array: Array, dims: Shape) -> Array:
        return array.squeeze(dims)

    def unsqueeze(self, array: Array, dim: int) -> Array:
        return array[at(dim, None)]

    def expand(self, array: Array, size: Shape) -> Array:
        added = len(size) - array.ndim
        strides = (0,) * added + tuple(
            [
                0 if array.shape[i] == 1 and size[added + i] != 1 else stride
                for i, stride in enumerate(array.strides)
            ]
        )
        return self.strided(array, size, strides)

    def select(self, array: Array, dim: int, index: int) -> Array:
        return array[at(dim, index)]

    def slice(self, array: Array, dim: int, start: int, end: int, step: int) -> Array:
        return array[at(dim, slice(start, end, step))]

    def split(self, array: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
        parts: list[Array] = []
        start = 0
        for size in sizes:
            parts.append(array[at(dim, slice(start, start + size))])
            start += size
        return tuple(parts)

    def unbind(self, array: Array, dim: int) -> tuple[Array, ...]:
        return tuple([array[at(dim, index)] for index in range(array.shape[dim])])

    def diagonal(self, array: Array, offset: int, dim1: int, dim2: int) -> Array:
        return diagonal_view(self.xp, array, offset, dim1, dim2)

    def as_strided(self, array: Array, size: Shape, stride: Shape, storage_offset: int) -> Array:
        return self.ns.memory_of(array, size, stride, storage_offset)

    def view_as_real(self, array: Array) -> Array:
        parts = array.real
        return self.strided(parts, (*parts.shape, 2), (*parts.strides, parts.itemsize))

    def view_as_complex(self, array: Array) -> Array:
        dtype = np.complex128 if array.dtype == np.float64 else np.complex64
        return array.view(dtype)[..., 0]

    def view_dtype(self, array: Array, dtype: Any) -> Array:
        return array.view(dtype)

    def select_backward(self, grad: Array, input_sizes: Shape, dim: int, index: int) -> Array:
        result = self.xp.zeros(input_sizes, grad.dtype)
        result[at(dim, index)] = grad
        return result

    def slice_backward(
        self, grad: Array, input_sizes: Shape, dim: int, start: int, end: int, step: int
    ) -> Array:
        result = self.xp.zeros(input_sizes, grad.dtype)
        result[at(dim, slice(start, end, step))] = grad
        return result

    def diagonal_backward(
        self, grad: Array, input_sizes: Shape, offset: int, dim1: int, dim2: int
    ) -> Array:
        result = self.xp.zeros(input_sizes, grad.dtype)
        diagonal_view(self.xp, result, offset, dim1, dim2)[...] = grad
        return result

    def strided_sum(self, array: Array, *geometry: Any) -> Array:
        """What overlapping views had, added up at each place of the memory they share."""
        added, read, count = summed_positions(self.xp, *geometry)
        values = widen(array)
        memory = self.xp.zeros(count, values.dtype)
        if array.size:
            add_at(self.ns, memory, added.reshape(-1), values.reshape(-1))
        return narrowed(memory[read], array.dtype)
