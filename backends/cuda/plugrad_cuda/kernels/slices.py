"""Copies with a part replaced. The core has checked the part."""

from __future__ import annotations

from plugrad_cuda.kernels.family import Family
from plugrad_cuda.kernels.namespace import Array, Kernel, Shape
from plugrad_cuda.kernels.views import at, diagonal_view


class Slices(Family):
    """The array in order, whatever order it was in, then the part."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "select_scatter": self.select_scatter,
            "slice_scatter": self.slice_scatter,
            "diagonal_scatter": self.diagonal_scatter,
            "_as_strided_scatter": self.as_strided_scatter,
        }

    def select_scatter(self, array: Array, source: Array, dim: int, index: int) -> Array:
        result = array.copy("C")
        result[at(dim, index)] = source
        return result

    def slice_scatter(
        self, array: Array, source: Array, dim: int, start: int, end: int, step: int
    ) -> Array:
        result = array.copy("C")
        result[at(dim, slice(start, end, step))] = source
        return result

    def diagonal_scatter(
        self, array: Array, source: Array, offset: int, dim1: int, dim2: int
    ) -> Array:
        result = array.copy("C")
        diagonal_view(self.xp, result, offset, dim1, dim2)[...] = source
        return result

    def as_strided_scatter(
        self, array: Array, source: Array, size: Shape, stride: Shape, storage_offset: int
    ) -> Array:
        result = array.copy("C")
        self.ns.memory_of(result, size, stride, storage_offset)[...] = source
        return result
