"""Kernels that reduce over dimensions, and scans.

`dims` is a tuple of non-negative dimensions, all of them for a full reduction; `dtype` is the
dtype of the result. 16-bit floats are added up in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_cpu.numerics.scans import cummax, cummin, cumprod, cumsum
from plugrad_cpu.numerics.sorting import stable_order
from plugrad_cpu.numerics.summation import LARGE, add

Array = Any
Dims = tuple[int, ...]
Kernel = Callable[..., Any]

# NumPy's stubs lack these arguments by position, which is faster.
_add: Final[Kernel] = np.add.reduce
_maximum: Final[Kernel] = np.maximum.reduce
_minimum: Final[Kernel] = np.minimum.reduce

_FLOAT32: Final = np.dtype(np.float32)
_INT64: Final = np.dtype(np.int64)


def accumulator(dtype: Any) -> Any:
    """The dtype in which sums of a dtype are kept."""
    return _FLOAT32 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def _count(a: Array, dims: Dims) -> int:
    if len(dims) == a.ndim:
        return int(a.size)
    count = 1
    for dim in dims:
        count *= a.shape[dim]
    return count


def _accumulate(ufunc: Any) -> Kernel:
    """The reduction by a ufunc, in the accumulator dtype."""
    reduce = ufunc.reduce

    def kernel(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
        wide = accumulator(dtype)
        total = reduce(a, dims, wide, None, keepdim)
        return total if wide is dtype else total.astype(dtype)

    return kernel


def sum_over(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is a.dtype and a.size < LARGE and dtype.itemsize != 2:
        return _add(a, dims, dtype, None, keepdim)
    wide = accumulator(dtype)
    total = add(a, dims, wide, keepdim)
    return total if wide is dtype else total.astype(dtype)


prod: Final = _accumulate(np.multiply)


def nansum(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if a.dtype.kind not in "biu":
        a = np.where(np.isnan(a), a.dtype.type(0), a)
    return sum_over(a, dims, keepdim, dtype)


def mean(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    wide = accumulator(dtype)
    total = add(a, dims, wide, keepdim)
    count = _count(a, dims)
    result = total / count if count else np.true_divide(total, count)
    return result if wide is dtype else result.astype(dtype)


def _square_magnitude(a: Array) -> Any:
    return np.square(a.real) + np.square(a.imag) if a.dtype.kind == "c" else np.square(a)


def _mean_and_var(a: Array, dims: Dims, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    count = _count(a, dims)
    center = _add(a, dims, None, None, True) / count
    deviation = a - center
    freedom = max(count - correction, 0)
    total = _add(_square_magnitude(deviation), dims, None, None, keepdim)
    variance = np.true_divide(total, freedom)
    return (center if keepdim else center.reshape(variance.shape)), variance


def var_mean(a: Array, dims: Dims, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Two passes: the mean, then the mean square of what deviates from it."""
    wide = a.astype(accumulator(a.dtype), copy=False)
    center, variance = _mean_and_var(wide, dims, correction, keepdim)
    narrow = a.real.dtype if a.dtype.kind == "c" else a.dtype
    return variance.astype(narrow, copy=False), center.astype(a.dtype, copy=False)


def var(a: Array, dims: Dims, correction: Any, keepdim: bool) -> Any:
    return var_mean(a, dims, correction, keepdim)[0]


def std_mean(a: Array, dims: Dims, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    # The variance may need more than 16 bits where its root does not.
    wide = a.astype(accumulator(a.dtype), copy=False)
    variance, center = var_mean(wide, dims, correction, keepdim)
    narrow = a.real.dtype if a.dtype.kind == "c" else a.dtype
    return np.sqrt(variance).astype(narrow, copy=False), center.astype(a.dtype, copy=False)


def std(a: Array, dims: Dims, correction: Any, keepdim: bool) -> Any:
    return std_mean(a, dims, correction, keepdim)[0]


def amax(a: Array, dims: Dims, keepdim: bool) -> Any:
    return _maximum(a, dims, None, None, keepdim)


def amin(a: Array, dims: Dims, keepdim: bool) -> Any:
    return _minimum(a, dims, None, None, keepdim)


def aminmax(a: Array, dims: Dims, keepdim: bool) -> tuple[Any, Any]:
    return amin(a, dims, keepdim), amax(a, dims, keepdim)


def max_all(a: Array) -> Any:
    return _maximum(a, None)


def min_all(a: Array) -> Any:
    return _minimum(a, None)


def _argmin(a: Array, dim: int | None, keepdim: bool) -> Any:
    return np.argmin(a, dim, keepdims=keepdim)


def _argmax(a: Array, dim: int | None, keepdim: bool) -> Any:
    return np.argmax(a, dim, keepdims=keepdim)


def _extremum_with_indices(reduce: Any, arg: Kernel) -> Kernel:
    """Values and first indices along one dimension; a nan is more extreme than any number."""

    def kernel(a: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
        if a.ndim == 0:
            return a.copy(), np.zeros((), _INT64)
        return reduce(a, dim, None, None, keepdim), arg(a, dim, keepdim)

    return kernel


def _logsumexp(a: Array, dims: Dims, keepdim: bool) -> Any:
    top = _maximum(a.real, dims, None, None, True, -math.inf)
    top = np.where(np.isfinite(top), top, top.dtype.type(0))
    shifted = np.asarray(a - top)
    total = np.log(_add(np.exp(shifted, out=shifted), dims, None, None, keepdim))
    return total + (top if keepdim else top.reshape(np.shape(total)))


def logsumexp(a: Array, dims: Dims, keepdim: bool) -> Any:
    """log of sum of exp, shifted by the maximum so that it does not overflow."""
    wide = a.astype(accumulator(a.dtype), copy=False)
    return _logsumexp(wide, dims, keepdim).astype(a.dtype, copy=False)


def _norm(a: Array, order: float, dims: Dims, keepdim: bool) -> Any:
    if order == 2:
        return np.sqrt(_add(_square_magnitude(a), dims, None, None, keepdim))
    if order == 0:
        real = a.real.dtype if a.dtype.kind == "c" else a.dtype
        return _add(a != 0, dims, real, None, keepdim)
    magnitude = np.abs(a)
    if order == math.inf:
        return _maximum(magnitude, dims, None, None, keepdim, 0)
    if order == -math.inf:
        return _minimum(magnitude, dims, None, None, keepdim, math.inf)
    if order == 1:
        return _add(magnitude, dims, None, None, keepdim)
    order_ = np.array(order, magnitude.dtype)
    total = _add(np.power(magnitude, order_), dims, None, None, keepdim)
    return np.power(total, 1 / order_)


def vector_norm(a: Array, order: Any, dims: Dims, keepdim: bool) -> Any:
    wide = a.astype(accumulator(a.dtype), copy=False)
    narrow = a.real.dtype if a.dtype.kind == "c" else a.dtype
    return _norm(wide, float(order), dims, keepdim).astype(narrow, copy=False)


def _logical(reduce: Any) -> Kernel:
    def kernel(a: Array, dims: Dims, keepdim: bool) -> Any:
        result = reduce(a, dims, None, None, keepdim)
        # PyTorch keeps uint8, which served as its bool once.
        return result.astype(a.dtype) if a.dtype == np.uint8 else result

    return kernel


def count_nonzero(a: Array, dims: Dims) -> Any:
    return _add(np.not_equal(a, a.dtype.type(0)), dims, _INT64)


def median_all(a: Array) -> Any:
    """The lower of the two in the middle; nan if there is one, or no element at all."""
    flat = a.reshape(-1)
    if flat.size == 0:
        return np.full((), math.nan).astype(a.dtype)
    if a.dtype.kind in "fV":
        missing = np.isnan(flat)
        if missing.any():
            return flat[int(missing.argmax())]
    middle = (flat.size - 1) // 2
    return np.partition(flat, middle)[middle]


def median_with_indices(a: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if a.ndim == 0:
        return a.copy(), np.zeros((), _INT64)
    order = stable_order(a, dim)
    indices = np.take(order, [(a.shape[dim] - 1) // 2], dim)
    if a.dtype.kind in "fV":
        missing = np.isnan(a)
        has_missing = missing.any(dim, keepdims=True)
        if has_missing.any():
            indices = np.where(has_missing, missing.argmax(dim, keepdims=True), indices)
    values = np.take_along_axis(a, indices, dim)
    if keepdim:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


def logcumsumexp(a: Array, dim: int) -> Any:
    if a.dtype.kind == "c":
        return NotImplemented
    if a.ndim == 0:
        return a.copy()
    result = np.logaddexp.accumulate(a.astype(accumulator(a.dtype), copy=False), dim)
    return np.ascontiguousarray(result).astype(a.dtype, copy=False)


KERNELS: Final[dict[str, Kernel]] = {
    "sum": sum_over,
    "nansum": nansum,
    "mean": mean,
    "prod": prod,
    "var": var,
    "std": std,
    "var_mean": var_mean,
    "std_mean": std_mean,
    "max": max_all,
    "min": min_all,
    "max.dim": _extremum_with_indices(_maximum, _argmax),
    "min.dim": _extremum_with_indices(_minimum, _argmin),
    "amax": amax,
    "amin": amin,
    "aminmax": aminmax,
    "argmax": _argmax,
    "argmin": _argmin,
    "logsumexp": logsumexp,
    "linalg_vector_norm": vector_norm,
    "cumsum": cumsum,
    "cumprod": cumprod,
    "cummax": cummax,
    "cummin": cummin,
    "logcumsumexp": logcumsumexp,
    "any": _logical(np.logical_or.reduce),
    "all": _logical(np.logical_and.reduce),
    "count_nonzero": count_nonzero,
    "median": median_all,
    "median.dim": median_with_indices,
}
