"""Kernels that reduce over dimensions, and scans.

`dims` is a tuple of non-negative dimensions, all of them for a full reduction; `dtype` is the
dtype of the result. 16-bit floats are added up in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad_cuda.kernels import expressions
from plugrad_cuda.kernels.family import INT64, Family, accumulator, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace, Shape


def _square_magnitude(xp: Any, a: Array) -> Any:
    return xp.square(xp.abs(a))


def _square_deviation(xp: Any, a: Array, center: Array) -> Any:
    return xp.square(xp.abs(a - center))


def _without_nan(xp: Any, a: Array) -> Any:
    return xp.where(xp.isnan(a), 0.0, a)


def _finite_or_zero(xp: Any, a: Array) -> Any:
    return xp.where(xp.isfinite(a), a, 0.0)


def _log_plus(xp: Any, total: Array, top: Array) -> Any:
    return xp.log(total) + top


def _magnitude_power(xp: Any, a: Array, order: float) -> Any:
    return xp.power(xp.abs(a), order)


class Reductions(Family):
    """Sums, products, extrema, moments, norms, scans, medians."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.square_magnitude = self.fused(_square_magnitude)
        self.square_deviation = self.fused(_square_deviation)
        self.without_nan = self.fused(_without_nan)
        self.finite_or_zero = self.fused(_finite_or_zero)
        self.shifted_exp = self.fused(expressions.shifted_exp)
        self.log_plus = self.fused(_log_plus)
        self.magnitude_power = self.fused(_magnitude_power)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "sum": self.sum,
            "nansum": self.nansum,
            "mean": self.mean,
            "prod": self.prod,
            "var": self.var,
            "std": self.std,
            "var_mean": self.var_mean,
            "std_mean": self.std_mean,
            "max": self.max_all,
            "min": self.min_all,
            "max.dim": self.max_with_indices,
            "min.dim": self.min_with_indices,
            "amax": self.amax,
            "amin": self.amin,
            "aminmax": self.aminmax,
            "argmax": self.argmax,
            "argmin": self.argmin,
            "logsumexp": self.logsumexp,
            "linalg_vector_norm": self.vector_norm,
            "cumsum": self.cumsum,
            "cumprod": self.cumprod,
            "logcumsumexp": self.logcumsumexp,
            "any": self.any,
            "all": self.all,
            "count_nonzero": self.count_nonzero,
            "median": self.median,
            "median.dim": self.median_with_indices,
        }

    def axis(self, a: Array, dims: Shape) -> Any:
        """All dimensions as None: CuPy has a faster way for that, and 0-dim arrays have none."""
        return None if len(dims) == a.ndim else dims

    def total(self, a: Array, dims: Shape, keepdim: bool, dtype: Any = None) -> Array:
        return self.xp.sum(a, axis=self.axis(a, dims), dtype=dtype, keepdims=keepdim)

    def sum(self, a: Array, dims: Shape, keepdim: bool, dtype: Any) -> Any:
        return self.total(a, dims, keepdim, accumulator(dtype)).astype(dtype, copy=False)

    def prod(self, a: Array, dims: Shape, keepdim: bool, dtype: Any) -> Any:
        wide = accumulator(dtype)
        result = self.xp.prod(a, axis=self.axis(a, dims), dtype=wide, keepdims=keepdim)
        return result.astype(dtype, copy=False)

    def nansum(self, a: Array, dims: Shape, keepdim: bool, dtype: Any) -> Any:
        return self.sum(a if a.dtype.kind in "biu" else self.without_nan(a), dims, keepdim, dtype)

    def mean(self, a: Array, dims: Shape, keepdim: bool, dtype: Any) -> Any:
        wide = accumulator(dtype)
        result = self.xp.true_divide(self.total(a, dims, keepdim, wide), _count(a, dims))
        return result.astype(dtype, copy=False)

    def var_mean(self, a: Array, dims: Shape, correction: Any, keepdim: bool) -> tuple[Any, Any]:
        """Two passes: the mean, then the mean square of what deviates from it."""
        wide = widen(a)
        count = _count(a, dims)
        center = self.xp.true_divide(self.total(wide, dims, True), count)
        total = self.total(self.square_deviation(wide, center), dims, keepdim)
        variance = self.xp.true_divide(total, max(count - correction, 0))
        if not keepdim:
            center = center.reshape(variance.shape)
        narrow = _real(a.dtype)
        return variance.astype(narrow, copy=False), center.astype(a.dtype, copy=False)

    def var(self, a: Array, dims: Shape, correction: Any, keepdim: bool) -> Any:
        return self.var_mean(a, dims, correction, keepdim)[0]

    def std_mean(self, a: Array, dims: Shape, correction: Any, keepdim: bool) -> tuple[Any, Any]:
        # The variance may need more than 16 bits where its root does not.
        variance, center = self.var_mean(widen(a), dims, correction, keepdim)
        root = self.xp.sqrt(variance).astype(_real(a.dtype), copy=False)
        return root, center.astype(a.dtype, copy=False)

    def std(self, a: Array, dims: Shape, correction: Any, keepdim: bool) -> Any:
        return self.std_mean(a, dims, correction, keepdim)[0]

    def amax(self, a: Array, dims: Shape, keepdim: bool) -> Any:
        return self.xp.amax(a, axis=self.axis(a, dims), keepdims=keepdim)

    def amin(self, a: Array, dims: Shape, keepdim: bool) -> Any:
        return self.xp.amin(a, axis=self.axis(a, dims), keepdims=keepdim)

    def aminmax(self, a: Array, dims: Shape, keepdim: bool) -> tuple[Any, Any]:
        return self.amin(a, dims, keepdim), self.amax(a, dims, keepdim)

    def max_all(self, a: Array) -> Any:
        return self.xp.amax(a)

    def min_all(self, a: Array) -> Any:
        return self.xp.amin(a)

    def argmax(self, a: Array, dim: int | None, keepdim: bool) -> Any:
        return self.xp.argmax(self.ordered(a), axis=dim, keepdims=keepdim)

    def argmin(self, a: Array, dim: int | None, keepdim: bool) -> Any:
        return self.xp.argmin(self.ordered(a), axis=dim, keepdims=keepdim)

    def max_with_indices(self, a: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
        """Values and first indices; a nan is more extreme than any number."""
        return self.extremum(self.xp.amax, self.argmax, a, dim, keepdim)

    def min_with_indices(self, a: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
        return self.extremum(self.xp.amin, self.argmin, a, dim, keepdim)

    def extremum(
        self, reduce: Kernel, arg: Kernel, a: Array, dim: int, keepdim: bool
    ) -> tuple[Any, Any]:
        if a.ndim == 0:
            return a.copy(), self.xp.zeros((), INT64)
        return reduce(a, axis=dim, keepdims=keepdim), arg(a, dim, keepdim)

    def logsumexp(self, a: Array, dims: Shape, keepdim: bool) -> Any:
        """log of sum of exp, shifted by the maximum so that it does not overflow."""
        wide = widen(a)
        axis = self.axis(a, dims)
        if _count(a, dims) == 0:
            total = self.total(wide, dims, keepdim)
            return self.xp.log(total).astype(a.dtype, copy=False)
        top = self.finite_or_zero(self.xp.amax(wide.real, axis=axis, keepdims=True))
        total = self.total(self.shifted_exp(wide, top), dims, keepdim)
        result = self.log_plus(total, top.reshape(total.shape))
        return result.astype(a.dtype, copy=False)

    def vector_norm(self, a: Array, order: Any, dims: Shape, keepdim: bool) -> Any:
        result = self.norm(widen(a), float(order), dims, keepdim)
        return result.astype(_real(a.dtype), copy=False)

    def norm(self, a: Array, order: float, dims: Shape, keepdim: bool) -> Any:
        if order == 2:
            return self.xp.sqrt(self.total(self.square_magnitude(a), dims, keepdim))
        if order == 0:
            return self.total(a != 0, dims, keepdim, _real(a.dtype))
        if math.isinf(order):
            return self.extreme_norm(self.xp.abs(a), order, dims, keepdim)
        if order == 1:
            return self.total(self.xp.abs(a), dims, keepdim)
        total = self.total(self.magnitude_power(a, order), dims, keepdim)
        return self.xp.power(total, total.dtype.type(1 / order))

    def extreme_norm(self, magnitude: Array, order: float, dims: Shape, keepdim: bool) -> Any:
        """The norm of no elements is 0 or inf; CuPy's reductions refuse that."""
        if _count(magnitude, dims) == 0:
            shape = self.total(magnitude, dims, keepdim).shape
            return self.xp.full(shape, 0.0 if order > 0 else math.inf, magnitude.dtype)
        reduce = self.amax if order > 0 else self.amin
        return reduce(magnitude, dims, keepdim)

    def scan(self, function: Kernel, a: Array, dim: int, dtype: Any) -> Any:
        if a.ndim == 0:
            return a.astype(dtype)
        wide = a.astype(accumulator(dtype), copy=False)
        return function(wide, axis=dim, dtype=wide.dtype).astype(dtype, copy=False)

    def cumsum(self, a: Array, dim: int, dtype: Any) -> Any:
        return self.scan(self.xp.cumsum, a, dim, dtype)

    def cumprod(self, a: Array, dim: int, dtype: Any) -> Any:
        return self.scan(self.xp.cumprod, a, dim, dtype)

    def logcumsumexp(self, a: Array, dim: int) -> Any:
        """In as many rounds as the length has bits: after n of them each element combines the 2 **
        n elements that end at it. CuPy's functions accumulate only sums and products."""
        if a.dtype.kind == "c":
            return NotImplemented
        if a.ndim == 0 or a.shape[dim] < 2:
            return a.copy()
        sums = self.xp.moveaxis(widen(a), dim, -1)
        step = 1
        while step < sums.shape[-1]:
            later = self.xp.logaddexp(sums[..., step:], sums[..., :-step])
            sums = self.xp.concatenate((sums[..., :step], later), axis=-1)
            step *= 2
        return self.xp.ascontiguousarray(self.xp.moveaxis(sums, -1, dim)).astype(a.dtype)

    def logical(self, function: Kernel, a: Array, dims: Shape, keepdim: bool) -> Any:
        if dims:
            result = function(self.truth(a), axis=self.axis(a, dims), keepdims=keepdim)
        else:
            result = self.truth(a).astype(np.bool_)
        # PyTorch keeps uint8, which served as its bool once.
        return result.astype(a.dtype) if a.dtype == np.uint8 else result

    def any(self, a: Array, dims: Shape, keepdim: bool) -> Any:
        return self.logical(self.xp.any, a, dims, keepdim)

    def all(self, a: Array, dims: Shape, keepdim: bool) -> Any:
        return self.logical(self.xp.all, a, dims, keepdim)

    def count_nonzero(self, a: Array, dims: Shape) -> Any:
        return self.total(a != 0, dims, False, INT64)

    def median(self, a: Array) -> Any:
        """The lower of the two in the middle; nan if there is one, or no element at all."""
        if a.size == 0:
            return self.xp.full((), math.nan).astype(a.dtype)
        flat = self.ordered(a).reshape(-1)
        middle = self.xp.sort(flat)[(flat.size - 1) // 2]
        if flat.dtype.kind == "f":
            middle = self.xp.where(self.xp.any(self.xp.isnan(flat)), math.nan, middle)
        return middle.astype(a.dtype, copy=False)

    def median_with_indices(self, a: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
        if a.ndim == 0:
            return a.copy(), self.xp.zeros((), INT64)
        keys = self.ordered(a)
        order = self.xp.argsort(keys, axis=dim, kind="stable")
        middle = (a.shape[dim] - 1) // 2
        indices = order[(*(slice(None),) * dim, slice(middle, middle + 1))]
        if keys.dtype.kind == "f":
            missing = self.xp.isnan(keys)
            has_missing = self.xp.any(missing, axis=dim, keepdims=True)
            first = self.xp.argmax(missing, axis=dim, keepdims=True)
            indices = self.xp.where(has_missing, first, indices)
        values = self.xp.take_along_axis(a, indices, dim)
        if keepdim:
            return values, indices.copy()
        return values.squeeze(dim), indices.squeeze(dim).copy()


def _count(a: Array, dims: Shape) -> int:
    return math.prod(a.shape[dim] for dim in dims)


def _real(dtype: Any) -> Any:
    """The dtype of an absolute value."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
