"""Kernels that reduce over dimensions, and running sums.

`dims` is a tuple of non-negative dimensions, all of them for a full reduction; it is empty for
0-dim arrays, for which the standard does not define `axis=()`.
"""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.dtype import uint8
from plugrad.plugins.array_namespace.family import Family, Kernel, needs
from plugrad.plugins.array_namespace.namespace import Array

Dims = tuple[int, ...]


class Reductions(Family):
    """Sums, products, extrema, and whether there is any."""

    def _reduced(self, function: Kernel, a: Array, dims: Dims, keepdim: bool, **more: Any) -> Array:
        axis = dims if a.ndim else None
        return function(a, axis=axis, keepdims=keepdim, **more)

    @kernel("sum")
    @needs("sum")
    def sum(self, a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
        return self._reduced(self.xp.sum, self._numbers(a, dtype), dims, keepdim, dtype=dtype)

    @kernel("prod")
    @needs("prod")
    def prod(self, a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
        return self._reduced(self.xp.prod, self._numbers(a, dtype), dims, keepdim, dtype=dtype)

    def _numbers(self, a: Array, dtype: Any) -> Array:
        return self.xp.astype(a, dtype) if self.ns.is_bool(a) else a

    @kernel("amax")
    @needs("max", "any")
    def amax(self, a: Array, dims: Dims, keepdim: bool) -> Array:
        function = self.xp.any if self.ns.is_bool(a) else self.xp.max
        return self._reduced(function, a, dims, keepdim)

    @kernel("amin")
    @needs("min", "all")
    def amin(self, a: Array, dims: Dims, keepdim: bool) -> Array:
        function = self.xp.all if self.ns.is_bool(a) else self.xp.min
        return self._reduced(function, a, dims, keepdim)

    @kernel("aminmax")
    @needs("min", "max", "any", "all")
    def aminmax(self, a: Array, dims: Dims, keepdim: bool) -> tuple[Array, Array]:
        return self.amin(a, dims, keepdim), self.amax(a, dims, keepdim)

    @kernel("max")
    @needs("max", "any")
    def max(self, a: Array) -> Array:
        return self.amax(a, tuple(range(a.ndim)), False)

    @kernel("min")
    @needs("min", "all")
    def min(self, a: Array) -> Array:
        return self.amin(a, tuple(range(a.ndim)), False)

    @kernel("argmax")
    @needs("argmax")
    def argmax(self, a: Array, dim: int | None, keepdim: bool) -> Array:
        return self._position(self.xp.argmax, a, dim, keepdim)

    @kernel("argmin")
    @needs("argmin")
    def argmin(self, a: Array, dim: int | None, keepdim: bool) -> Array:
        return self._position(self.xp.argmin, a, dim, keepdim)

    def _position(self, function: Kernel, a: Array, dim: int | None, keepdim: bool) -> Array:
        found = function(self.ns.without_bools(a), axis=dim, keepdims=keepdim)
        return self.xp.astype(found, self.ns.int64, copy=False)

    @kernel("max.dim")
    @needs("max", "any", "argmax")
    def max_dim(self, a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        axis = dim if a.ndim else None
        dims = (dim,) if a.ndim else ()
        return self.amax(a, dims, keepdim), self.argmax(a, axis, keepdim)

    @kernel("min.dim")
    @needs("min", "all", "argmin")
    def min_dim(self, a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        axis = dim if a.ndim else None
        dims = (dim,) if a.ndim else ()
        return self.amin(a, dims, keepdim), self.argmin(a, axis, keepdim)

    @kernel("any")
    @needs("any")
    def any(self, a: Array, dims: Dims, keepdim: bool) -> Array:
        return self._kept(a, self._reduced(self.xp.any, a, dims, keepdim))

    @kernel("all")
    @needs("all")
    def all(self, a: Array, dims: Dims, keepdim: bool) -> Array:
        return self._kept(a, self._reduced(self.xp.all, a, dims, keepdim))

    def _kept(self, a: Array, truth: Array) -> Array:
        """PyTorch keeps uint8, which served as its bool once."""
        return self.xp.astype(truth, a.dtype) if self.ns.dtype(a) is uint8 else truth

    @kernel("count_nonzero")
    @needs("sum")
    def count_nonzero(self, a: Array, dims: Dims) -> Array:
        return self.sum(a != self.ns.scalar(0, a), dims, False, self.ns.int64)

    @kernel("cumsum")
    @needs("cumulative_sum")
    def cumsum(self, a: Array, dim: int, dtype: Any) -> Array:
        return self._running(self.xp.cumulative_sum, a, dim, dtype)

    @kernel("cumprod")
    @needs("cumulative_prod")
    def cumprod(self, a: Array, dim: int, dtype: Any) -> Array:
        return self._running(self.xp.cumulative_prod, a, dim, dtype)

    def _running(self, function: Kernel, a: Array, dim: int, dtype: Any) -> Array:
        if a.ndim == 0:
            return self.xp.astype(a, dtype)
        return function(self._numbers(a, dtype), axis=dim, dtype=dtype)
