"""Kernels that reduce over dimensions, and scans.

`dims` is a tuple of non-negative dimensions, all of them for a full reduction; `dtype` is the
dtype of the result. 16-bit floats are added up in float32.
"""

from __future__ import annotations

import math
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad_jax.kernels.programs import NARROW, Array, Kernel, constant, program, widen

Dims = tuple[int, ...]

_FLOAT32: Final = np.dtype(np.float32)
_INT64: Final = np.dtype(np.int64)


def accumulator(dtype: Any) -> Any:
    """The dtype in which sums of a dtype are kept."""
    return _FLOAT32 if dtype.name in NARROW else dtype


def _count(a: Array, dims: Dims) -> int:
    return math.prod(a.shape[dim] for dim in dims)


def _narrow(a: Array) -> Any:
    """The dtype of magnitudes of an array's elements."""
    return jnp.real(a).dtype


def sum_over(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    wide = accumulator(dtype)
    return jnp.sum(a.astype(wide), dims, wide, keepdims=keepdim).astype(dtype)


def _prod(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    wide = accumulator(dtype)
    return jnp.prod(a.astype(wide), dims, wide, keepdims=keepdim).astype(dtype)


def _nansum(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    if a.dtype.kind not in "biu":
        a = jnp.where(jnp.isnan(a), constant(0, a), a)
    return sum_over(a, dims, keepdim, dtype)


def _mean(a: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    wide = accumulator(dtype)
    total = jnp.sum(a.astype(wide), dims, wide, keepdims=keepdim)
    return (total / constant(_count(a, dims), total)).astype(dtype)


def _square_magnitude(a: Array) -> Array:
    if a.dtype.kind == "c":
        return jnp.square(a.real) + jnp.square(a.imag)
    return jnp.square(a)


def _var_mean(a: Array, dims: Dims, correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """Two passes: the mean, then the mean square of what deviates from it."""
    wide = widen(a)
    total = jnp.sum(wide, dims, keepdims=True)
    center = total / constant(_count(a, dims), total)
    squares = jnp.sum(_square_magnitude(wide - center), dims, keepdims=keepdim)
    variance = squares / constant(max(_count(a, dims) - correction, 0), squares)
    center = center if keepdim else center.reshape(variance.shape)
    return variance.astype(_narrow(a)), center.astype(a.dtype)


def _var(a: Array, dims: Dims, correction: Any, keepdim: bool) -> Array:
    return _var_mean(a, dims, correction, keepdim)[0]


def _std_mean(a: Array, dims: Dims, correction: Any, keepdim: bool) -> tuple[Array, Array]:
    # The variance may need more than 16 bits where its root does not.
    variance, center = _var_mean(widen(a), dims, correction, keepdim)
    return jnp.sqrt(variance).astype(_narrow(a)), center.astype(a.dtype)


def _std(a: Array, dims: Dims, correction: Any, keepdim: bool) -> Array:
    return _std_mean(a, dims, correction, keepdim)[0]


def _amax(a: Array, dims: Dims, keepdim: bool) -> Array:
    return jnp.max(a, dims, keepdims=keepdim)


def _amin(a: Array, dims: Dims, keepdim: bool) -> Array:
    return jnp.min(a, dims, keepdims=keepdim)


def _aminmax(a: Array, dims: Dims, keepdim: bool) -> tuple[Array, Array]:
    return _amin(a, dims, keepdim), _amax(a, dims, keepdim)


def _argmax(a: Array, dim: int | None, keepdim: bool) -> Array:
    return _position(lax.argmax, a, dim, keepdim)


def _argmin(a: Array, dim: int | None, keepdim: bool) -> Array:
    return _position(lax.argmin, a, dim, keepdim)


def _position(function: Kernel, a: Array, dim: int | None, keepdim: bool) -> Array:
    """The first place of an extreme element; a nan is more extreme than any number."""
    if a.dtype.kind == "b":
        a = a.astype(np.uint8)
    if dim is None or a.ndim == 0:
        found = function(a.reshape(-1), 0, _index_dtype())
        return found.reshape((1,) * a.ndim) if keepdim else found
    found = function(a, dim, _index_dtype())
    return jnp.expand_dims(found, dim) if keepdim else found


def _index_dtype() -> Any:
    """int64, or what JAX makes of it in the traces of others while its 64-bit switch is off."""
    return jnp.asarray(0).dtype


def _extremum_with_indices(reduce: Kernel, position: Kernel) -> Kernel:
    def kernel(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        if a.ndim == 0:
            return a, jnp.zeros((), _INT64)
        return reduce(a, dim, keepdims=keepdim), position(a, dim, keepdim)

    return program(kernel, 1, 2)


def _logsumexp(a: Array, dims: Dims, keepdim: bool) -> Array:
    """log of sum of exp, shifted by the maximum so that it does not overflow."""
    wide = widen(a)
    top = jnp.max(jnp.real(wide), dims, keepdims=True, initial=-math.inf)
    top = jnp.where(jnp.isfinite(top), top, constant(0, top))
    total = jnp.log(jnp.sum(jnp.exp(wide - top), dims, keepdims=keepdim))
    return (total + top.reshape(total.shape)).astype(a.dtype)


def _norm(a: Array, order: float, dims: Dims, keepdim: bool) -> Array:
    if order == 2:
        return jnp.sqrt(jnp.sum(_square_magnitude(a), dims, keepdims=keepdim))
    if order == 0:
        return jnp.sum((a != 0).astype(_narrow(a)), dims, keepdims=keepdim)
    magnitude = jnp.abs(a)
    if order == math.inf:
        return jnp.max(magnitude, dims, keepdims=keepdim, initial=0)
    if order == -math.inf:
        return jnp.min(magnitude, dims, keepdims=keepdim, initial=math.inf)
    if order == 1:
        return jnp.sum(magnitude, dims, keepdims=keepdim)
    total = jnp.sum(jnp.power(magnitude, constant(order, magnitude)), dims, keepdims=keepdim)
    return jnp.power(total, constant(1 / order, magnitude))


def _vector_norm(a: Array, order: Any, dims: Dims, keepdim: bool) -> Array:
    return _norm(widen(a), float(order), dims, keepdim).astype(_narrow(a))


def _scan(function: Kernel) -> Kernel:
    def kernel(a: Array, dim: int, dtype: Any) -> Array:
        if a.ndim == 0:
            return a.astype(dtype)
        return function(a.astype(accumulator(dtype)), dim).astype(dtype)

    return program(kernel, 1, 2)


_cumlogsumexp: Final = program(
    lambda a, dim: lax.cumlogsumexp(a.astype(accumulator(a.dtype)), dim).astype(a.dtype), 1
)


def _logcumsumexp(a: Array, dim: int) -> Any:
    if a.ndim == 0:
        return a
    return NotImplemented if a.dtype.kind == "c" else _cumlogsumexp(a, dim)


def _logical(function: Kernel) -> Kernel:
    def kernel(a: Array, dims: Dims, keepdim: bool) -> Array:
        result = function(a, dims, keepdims=keepdim)
        # PyTorch keeps uint8, which served as its bool once.
        return result.astype(a.dtype) if a.dtype == np.uint8 else result

    return program(kernel, 1, 2)


def _count_nonzero(a: Array, dims: Dims) -> Array:
    return jnp.sum((a != constant(0, a)).astype(_INT64), dims)


def _median_all(a: Array) -> Array:
    """The lower of the two in the middle; nan if there is one, or no element at all."""
    flat = a.reshape(-1)
    if flat.size == 0:
        return jnp.full((), math.nan).astype(a.dtype)
    middle = jnp.sort(flat)[(flat.size - 1) // 2]
    if a.dtype.kind in "fV":
        return jnp.where(jnp.any(jnp.isnan(flat)), constant(math.nan, a), middle)
    return middle


def _median_with_indices(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if a.ndim == 0:
        return a, jnp.zeros((), _INT64)
    order = jnp.argsort(a, dim, stable=True)
    middle = (a.shape[dim] - 1) // 2
    indices = lax.slice_in_dim(order, middle, middle + 1, axis=dim).astype(_index_dtype())
    if a.dtype.kind in "fV":
        missing = jnp.isnan(a)
        first = _argmax(missing, dim, True)
        indices = jnp.where(jnp.any(missing, dim, keepdims=True), first, indices)
    values = jnp.take_along_axis(a, indices, dim)
    if keepdim:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


KERNELS: Final[dict[str, Kernel]] = {
    "sum": program(sum_over, 1, 2, 3),
    "nansum": program(_nansum, 1, 2, 3),
    "mean": program(_mean, 1, 2, 3),
    "prod": program(_prod, 1, 2, 3),
    "var": program(_var, 1, 2, 3),
    "std": program(_std, 1, 2, 3),
    "var_mean": program(_var_mean, 1, 2, 3),
    "std_mean": program(_std_mean, 1, 2, 3),
    "max": program(jnp.max),
    "min": program(jnp.min),
    "max.dim": _extremum_with_indices(jnp.max, _argmax),
    "min.dim": _extremum_with_indices(jnp.min, _argmin),
    "amax": program(_amax, 1, 2),
    "amin": program(_amin, 1, 2),
    "aminmax": program(_aminmax, 1, 2),
    "argmax": program(_argmax, 1, 2),
    "argmin": program(_argmin, 1, 2),
    "logsumexp": program(_logsumexp, 1, 2),
    "linalg_vector_norm": program(_vector_norm, 1, 2, 3),
    "cumsum": _scan(jnp.cumsum),
    "cumprod": _scan(jnp.cumprod),
    "logcumsumexp": _logcumsumexp,
    "any": _logical(jnp.any),
    "all": _logical(jnp.all),
    "count_nonzero": program(_count_nonzero, 1),
    "median": program(_median_all),
    "median.dim": program(_median_with_indices, 1, 2),
}
