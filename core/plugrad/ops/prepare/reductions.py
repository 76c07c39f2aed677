"""Arguments of reductions: dimensions wrapped and spelled out, dtypes decided, errors raised."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL, COMPLEX, FLOATING, DType, get_default_dtype, int64
from plugrad.tensor.base import TensorBase, ndim_of, numel_of, sizes_of
from plugrad.tensor.calls.promotion import to_dtype


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; a 0-dim tensor has dimension 0 as well."""
    size = ndim if ndim > 0 else 1
    if dim < -size or dim >= size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got "
            f"{dim})"
        )
    return dim + size if dim < 0 else dim


def wrap_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, all of them for None or an empty list.

    Empty for a 0-dim tensor, which has nothing to reduce over.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        wrapped = wrap_dim(dim, ndim)
        return (wrapped,) if ndim > 0 else ()
    given: Iterable[int] = dim
    dims: list[int] = []
    for item in given:
        wrapped = wrap_dim(item, ndim)
        if wrapped in dims:
            raise RuntimeError(f"dim {wrapped} appears multiple times in the list of dims")
        dims.append(wrapped)
    if ndim == 0:
        return ()
    return tuple(dims) if dims else tuple(range(ndim))


def _sum_dtype(self: TensorBase, dtype: DType | None) -> DType:
    if dtype is not None:
        return dtype
    return int64 if self.dtype.category < FLOATING else self.dtype


def _accumulated(
    self: TensorBase, dim: Any, keepdim: bool, dtype: DType | None
) -> tuple[object, ...]:
    """Input, dims, keepdim and the dtype of the result; a cast to int64 is left to the kernel."""
    result = _sum_dtype(self, dtype)
    if dtype is not None and result is not int64:
        self = to_dtype(self, result)
    elif result is int64 and self.dtype.category >= FLOATING:
        self = to_dtype(self, int64)
    return (self, wrap_dims(dim, ndim_of(self)), keepdim, result)


def sum(self: TensorBase, dim: Any, keepdim: bool, dtype: DType | None) -> tuple[object, ...]:
    return _accumulated(self, dim, keepdim, dtype)


def nansum(self: TensorBase, dim: Any, keepdim: bool, dtype: DType | None) -> tuple[object, ...]:
    if self.dtype.category == COMPLEX:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if self.dtype.category == FLOATING and self.dtype.itemsize == 1:
        raise not_implemented("nansum_cpu", self.dtype)
    return _accumulated(self, dim, keepdim, dtype)


def mean(self: TensorBase, dim: Any, keepdim: bool, dtype: DType | None) -> tuple[object, ...]:
    result = self.dtype if dtype is None else dtype
    if result.category < FLOATING:
        which = "Input dtype" if dtype is None else "Optional dtype"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} must be either a floating point or "
            f"complex dtype. Got: {result.scalar_name}"
        )
    return (to_dtype(self, result), wrap_dims(dim, ndim_of(self)), keepdim, result)


def prod(self: TensorBase, dim: Any, keepdim: bool, dtype: DType | None) -> tuple[object, ...]:
    return _accumulated(self, dim, keepdim, dtype)


def variance(self: TensorBase, dim: Any, correction: Any, keepdim: bool) -> tuple[object, ...]:
    if self.dtype.category < FLOATING:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    return (self, wrap_dims(dim, ndim_of(self)), 1 if correction is None else correction, keepdim)


def _check_not_empty(name: str, self: TensorBase, dims: Iterable[int]) -> None:
    """There is no largest element of nothing, unless the result is empty too."""
    sizes = sizes_of(self)
    for dim in dims:
        if sizes and sizes[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _check_numel(name: str, self: TensorBase, error: type[Exception], advice: str) -> None:
    if numel_of(self) == 0:
        raise error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{advice}"
        )


_ADVICE = " Specify the reduction dim with the 'dim' argument."


def _check_ordered(kernel: str, self: TensorBase) -> None:
    if self.dtype.category == COMPLEX:
        raise not_implemented(kernel, self.dtype)


def _extremum_all(name: str, self: TensorBase) -> tuple[object, ...]:
    _check_numel(name, self, RuntimeError, _ADVICE)
    _check_ordered(f"{name}_all", self)
    return (self,)


def max_all(self: TensorBase) -> tuple[object, ...]:
    return _extremum_all("max", self)


def min_all(self: TensorBase) -> tuple[object, ...]:
    return _extremum_all("min", self)


def cummax(self: TensorBase, dim: int) -> tuple[object, ...]:
    return _extrema_so_far("cummax_cpu", self, dim)


def cummin(self: TensorBase, dim: int) -> tuple[object, ...]:
    return _extrema_so_far("cummin_cpu", self, dim)


def _extrema_so_far(name: str, self: TensorBase, dim: int) -> tuple[object, ...]:
    _check_ordered(name, self)
    return (self, wrap_dim(dim, ndim_of(self)))


def _along(name: str, self: TensorBase, dim: int, keepdim: bool) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    _check_not_empty(name, self, (wrapped,))
    _check_ordered(f"{name}_cpu", self)
    return (self, wrapped, keepdim)


def max_dim(self: TensorBase, dim: int, keepdim: bool) -> tuple[object, ...]:
    return _along("max", self, dim, keepdim)


def min_dim(self: TensorBase, dim: int, keepdim: bool) -> tuple[object, ...]:
    return _along("min", self, dim, keepdim)


def _reduced(name: str, kernel: str, self: TensorBase, dim: Any) -> tuple[int, ...]:
    dims = wrap_dims(dim, ndim_of(self))
    if dim is None or dim == () or dim == []:
        _check_numel(name, self, RuntimeError, _ADVICE)
    else:
        _check_not_empty(name, self, dims)
    _check_ordered(kernel, self)
    return dims


def amax(self: TensorBase, dim: Any, keepdim: bool) -> tuple[object, ...]:
    return (self, _reduced("amax", "max_values_cpu", self, dim), keepdim)


def amin(self: TensorBase, dim: Any, keepdim: bool) -> tuple[object, ...]:
    return (self, _reduced("amin", "min_values_cpu", self, dim), keepdim)


def aminmax(self: TensorBase, dim: int | None, keepdim: bool) -> tuple[object, ...]:
    return (self, _reduced("aminmax", "aminmax_cpu", self, dim), keepdim)


def _arg(name: str, self: TensorBase, dim: int | None, keepdim: bool) -> tuple[object, ...]:
    if self.dtype.category == BOOL or self.dtype.category == COMPLEX:
        kind = "bool" if self.dtype.category == BOOL else "complex"
        raise RuntimeError(f"{name}(): does not support {kind} input")
    if dim is None:
        _check_numel(name, self, IndexError, "")
        return (self, None, keepdim)
    wrapped = wrap_dim(dim, ndim_of(self))
    _check_not_empty(name, self, (wrapped,))
    return (self, wrapped if ndim_of(self) > 0 else None, keepdim)


def argmax(self: TensorBase, dim: int | None, keepdim: bool) -> tuple[object, ...]:
    return _arg("argmax", self, dim, keepdim)


def argmin(self: TensorBase, dim: int | None, keepdim: bool) -> tuple[object, ...]:
    return _arg("argmin", self, dim, keepdim)


def logsumexp(self: TensorBase, dim: Any, keepdim: bool) -> tuple[object, ...]:
    if self.dtype.category < FLOATING:
        self = to_dtype(self, get_default_dtype())
    return (self, wrap_dims(dim, ndim_of(self)), keepdim)


def vector_norm(
    self: TensorBase, ord: Any, dim: Any, keepdim: bool, dtype: DType | None
) -> tuple[object, ...]:
    name = "linalg.vector_norm"
    if self.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{self.dtype.scalar_name}"
        )
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
    dims = wrap_dims(dim, ndim_of(self))
    order = float(ord)
    if order < 0 or order == math.inf:
        sizes = sizes_of(self)
        if 0 in [sizes[item] for item in dims]:
            raise RuntimeError(
                f"{name} cannot compute the {ord} norm on an empty tensor because the operation "
                "does not have an identity"
            )
    if dtype is not None:
        if dtype.category < FLOATING or (dtype.category == FLOATING and self.dtype.is_complex):
            kind = "complex" if self.dtype.is_complex else "floating point"
            raise RuntimeError(
                f"{name}: dtype should be {kind} if the inputs are, but got {dtype!r}"
            )
        self = to_dtype(self, dtype)
    return (self, order, dims, keepdim)


def cumsum(self: TensorBase, dim: int, dtype: DType | None) -> tuple[object, ...]:
    return _cumulated("cumsum_out_cpu", self, dim, dtype)


def cumprod(self: TensorBase, dim: int, dtype: DType | None) -> tuple[object, ...]:
    return _cumulated("cumprod_out_cpu", self, dim, dtype)


def _cumulated(kernel: str, self: TensorBase, dim: int, dtype: DType | None) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    result = _sum_dtype(self, dtype)
    if result.category == BOOL:
        raise not_implemented(kernel, result)
    if self.dtype.category >= FLOATING or result is not int64:
        self = to_dtype(self, result)
    return (self, wrapped, result)


def logical(self: TensorBase, dim: Any, keepdim: bool) -> tuple[object, ...]:
    """Over no dimensions, `dim=()`, each element is tested separately."""
    dims = () if reduces_nothing(dim) else wrap_dims(dim, ndim_of(self))
    return (self, dims, keepdim)


def reduces_nothing(dim: Any) -> bool:
    """Whether an empty list of dimensions was given; other reductions take it for all."""
    return dim is not None and not isinstance(dim, int) and len(dim) == 0


def count_nonzero(self: TensorBase, dim: Any) -> tuple[object, ...]:
    return (self, wrap_dims(dim, ndim_of(self)))


def _check_median(self: TensorBase) -> None:
    if self.dtype.category == BOOL or self.dtype.category == COMPLEX:
        raise not_implemented("median_cpu", self.dtype)


def median_all(self: TensorBase) -> tuple[object, ...]:
    _check_median(self)
    return (self,)


def median_dim(self: TensorBase, dim: int, keepdim: bool) -> tuple[object, ...]:
    wrapped = wrap_dim(dim, ndim_of(self))
    _check_not_empty("median", self, (wrapped,))
    _check_median(self)
    return (self, wrapped, keepdim)
