"""Kernels that make or copy arrays. They get devices as indices and dtypes of the namespace."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.plugins.array_namespace.family import Family, needs
from plugrad.plugins.array_namespace.namespace import Array

Shape = tuple[int, ...]


class Creation(Family):
    """Arrays of one number, the unit matrix, copies and casts."""

    @kernel("empty")
    @needs("empty")
    def empty(self, size: Shape, dtype: Any, index: int) -> Array:
        return self.xp.empty(size, dtype=dtype, device=self.ns.devices[index])

    @kernel("zeros")
    def zeros(self, size: Shape, dtype: Any, index: int) -> Array:
        return self.xp.zeros(size, dtype=dtype, device=self.ns.devices[index])

    @kernel("ones")
    @needs("ones")
    def ones(self, size: Shape, dtype: Any, index: int) -> Array:
        return self.xp.ones(size, dtype=dtype, device=self.ns.devices[index])

    @kernel("full")
    def full(self, size: Shape, value: Any, dtype: Any, index: int) -> Array:
        return self.ns.filled(value, dtype, self.ns.devices[index], size)

    @kernel("eye")
    @needs("eye")
    def eye(self, n: int, m: int, dtype: Any, index: int) -> Array:
        return self.xp.eye(n, m, dtype=dtype, device=self.ns.devices[index])

    @kernel("clone")
    def clone(self, a: Array, keep_strides: bool) -> Array:
        return self.xp.asarray(a, copy=True)

    @kernel("_to_copy")
    def to_copy(self, a: Array, dtype: Any) -> Array:
        return self.ns.cast(a, dtype)
