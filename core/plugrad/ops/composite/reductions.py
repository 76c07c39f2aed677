"""Reductions that are composed of other operators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import FLOATING, DType, int64, uint8
from plugrad.ops.composite.elementwise.precision import in_dtype_of, is_narrow, widened, widest
from plugrad.ops.composite.scans import cumprod as cumprod
from plugrad.ops.composite.scans import cumsum as cumsum
from plugrad.ops.composite.scans import prod as prod
from plugrad.ops.composite.selection.extrema import amin as amin
from plugrad.ops.composite.selection.extrema import aminmax as aminmax
from plugrad.ops.composite.selection.extrema import argmax as argmax
from plugrad.ops.composite.selection.extrema import argmin as argmin
from plugrad.ops.composite.selection.extrema import max_all as max_all
from plugrad.ops.composite.selection.extrema import max_dim as max_dim
from plugrad.ops.composite.selection.extrema import median_all as median_all
from plugrad.ops.composite.selection.extrema import median_dim as median_dim
from plugrad.ops.composite.selection.extrema import min_all as min_all
from plugrad.ops.composite.selection.extrema import min_dim as min_dim
from plugrad.ops.prepare import reductions as prepare
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import to_dtype
from plugrad.tensor.calls.schema_facts import named_results

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _correction(unbiased: bool) -> int:
    return 1 if unbiased else 0


def var_all(self: Tensor, unbiased: bool = True) -> Tensor:
    result: Tensor = F.var(self, correction=_correction(unbiased))
    return result


def var_dim(self: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    result: Tensor = F.var(self, dim, correction=_correction(unbiased), keepdim=keepdim)
    return result


def std_all(self: Tensor, unbiased: bool = True) -> Tensor:
    result: Tensor = F.std(self, correction=_correction(unbiased))
    return result


def std_dim(self: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    result: Tensor = F.std(self, dim, correction=_correction(unbiased), keepdim=keepdim)
    return result


def var_mean_all(self: Tensor, unbiased: bool = True) -> Any:
    return F.var_mean(self, correction=_correction(unbiased))


def var_mean_dim(self: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return F.var_mean(self, dim, correction=_correction(unbiased), keepdim=keepdim)


def std_mean_all(self: Tensor, unbiased: bool = True) -> Any:
    return F.std_mean(self, correction=_correction(unbiased))


def std_mean_dim(self: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return F.std_mean(self, dim, correction=_correction(unbiased), keepdim=keepdim)


def max_other(self: Tensor, other: Tensor) -> Tensor:
    return F.maximum(self, other)


def min_other(self: Tensor, other: Tensor) -> Tensor:
    return F.minimum(self, other)


def norm(
    self: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    return F.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def norm_by_name(
    self: Tensor, p: str, dim: Any = None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    """The norms with a name: "fro", "nuc", and "inf" and "-inf" as strings."""
    if p == "nuc":
        # It is loaded on demand.
        nuclear_norm: Any = getattr(F, "nuclear_norm")  # noqa: B009  # the compiler looks for it
        given: Any = self
        summed = given if dtype is None else given.to(dtype)
        result: Tensor = nuclear_norm(summed, (-2, -1) if dim is None else dim, keepdim)
        return result
    orders = {"fro": 2.0, "inf": math.inf, "-inf": -math.inf}
    if p not in orders:
        raise RuntimeError(f"norm(): expected p to be a number or one of {list(orders)}, got {p!r}")
    return F.linalg_vector_norm(self, orders[p], dim, keepdim, dtype=dtype)


def _count(self: Tensor, dims: tuple[int, ...]) -> int:
    """How many elements a reduction over some dimensions puts together."""
    sizes = sizes_of(self)
    return math.prod([sizes[dim] for dim in dims])


def mean(self: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    checked: Any = prepare.mean(self, dim, keepdim, dtype)
    operand, dims, _, kind = checked
    wide = widest(kind)
    total: Tensor = F.sum(operand, dims, keepdim, dtype=wide)
    result: Tensor = F.div(total, _count(self, dims))
    return result if wide is kind else F._to_copy(result, kind)


def nansum(self: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    prepare.nansum(self, dim, keepdim, dtype)
    result: Tensor = F.sum(F.where(F.isnan(self), 0, self), dim, keepdim, dtype=dtype)
    return result


def var_mean(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    spread, center = _var_mean(widened(self), dim, correction, keepdim)
    return _narrowed(spread, self), _narrowed(center, self)


def _narrowed(x: Tensor, like: Tensor) -> Tensor:
    """What was computed of a tensor, in its own dtype if that has 16 bits."""
    return in_dtype_of(x, like) if is_narrow(like.dtype) else x


def _var_mean(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    checked: Any = prepare.variance(self, dim, correction, keepdim)
    _, dims, less, _ = checked
    center: Tensor = F.mean(self, dims, True)
    distance = F.abs(self - center) if self.dtype.is_complex else self - center
    total: Tensor = F.sum(distance * distance, dims, keepdim)
    spread: Tensor = F.div(total, max(_count(self, dims) - less, 0))
    if not keepdim:
        center = center.reshape(sizes_of(total))
    return spread, center


def var(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    spread: Tensor = var_mean(self, dim, correction, keepdim)[0]
    return spread


def std_mean(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    spread, center = _var_mean(widened(self), dim, correction, keepdim)
    return _narrowed(F.sqrt(spread), self), _narrowed(center, self)


def std(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    spread = F.var(widened(self), dim, correction=correction, keepdim=keepdim)
    return _narrowed(F.sqrt(spread), self)


def nanmean(self: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    if self.dtype.category < FLOATING:
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{self.dtype.scalar_name}"
        )
    total = F.nansum(self, dim, keepdim, dtype=dtype)
    count: Tensor = F.sum(F.logical_not(F.isnan(self.detach())), dim, keepdim)
    result: Tensor = F.div(total, count)
    return result


def dist(self: Tensor, other: Tensor, p: Any) -> Tensor:
    return F.linalg_vector_norm(self - other, p)


# They choose how PyTorch computes, not what.
_CDIST_MODES: Final = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: str | None) -> Tensor:
    if x1.ndim < 2 or x2.ndim < 2:
        name, ndim = ("X1", x1.ndim) if x1.ndim < 2 else ("X2", x2.ndim)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {ndim}D")
    columns = (sizes_of(x1)[-1], sizes_of(x2)[-1])
    if columns[0] != columns[1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {columns[0]} X2: {columns[1]}"
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dtype.category != FLOATING:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}"
            )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode is not None and compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1.dtype is not x2.dtype:
        if x1.numel() != 0 and x2.numel() != 0:
            _raise_two_dtypes(x1, x2, p, compute_mode or _CDIST_MODES[0])
        x2 = in_dtype_of(x2, x1)
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == 0:
        # How many are not 0, or nan if one is.
        count: Tensor = difference.abs().ceil().clamp(None, 1).sum(dim=(-1,))
        return count
    return F.linalg_vector_norm(difference, p, -1)


def _raise_two_dtypes(x1: Tensor, x2: Tensor, p: float, compute_mode: str) -> None:
    """With the message of PyTorch's implementation: a matrix product or a loop."""
    many = sizes_of(x1)[-2] > 25 or sizes_of(x2)[-2] > 25
    if p == 2 and (compute_mode == _CDIST_MODES[1] or (compute_mode == _CDIST_MODES[0] and many)):
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{CPP_NAMES[x1.dtype.name]} != {CPP_NAMES[x2.dtype.name]}"
        )
    raise RuntimeError(
        f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}"
    )


def any_nonzero(self: Tensor, dim: Any, keepdim: bool) -> Any:
    found = F.ne(self, 0)
    if not prepare.reduces_nothing(dim):
        found = F.ne(F.sum(found, dim, keepdim), 0)
    return _as_logical(found, self)


def all_nonzero(self: Tensor, dim: Any, keepdim: bool) -> Any:
    if prepare.reduces_nothing(dim):
        return any_nonzero(self, dim, keepdim)
    found = F.eq(F.sum(F.eq(self, 0), dim, keepdim), 0)
    return _as_logical(found, self)


def _as_logical(found: Tensor, self: Tensor) -> Any:
    # PyTorch keeps uint8, which served as its bool once.
    return to_dtype(found, uint8) if self.dtype is uint8 else found


def count_nonzero(self: Tensor, dim: Any) -> Tensor:
    total: Tensor = F.sum(F.ne(self, 0), dim)
    return total


def logsumexp(self: Tensor, dim: Any, keepdim: bool) -> Any:
    """Shifted by the greatest element, so that it does not overflow."""
    checked: Any = prepare.logsumexp(self, dim, keepdim)
    given, dims, _ = checked
    x = to_dtype(given, widest(given.dtype))
    if _count(self, dims) == 0:
        total = F.sum(F.exp(x), dims, keepdim)
        return to_dtype(F.log(total), given.dtype)
    top = F.amax(F.real(x) if x.dtype.is_complex else x, dims, True)
    top = F.where(F.isfinite(top), top, 0.0)
    total = F.log(F.sum(F.exp(x - top), dims, keepdim))
    result = total + (top if keepdim else top.reshape(sizes_of(total)))
    return to_dtype(result, given.dtype)


def vector_norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: DType | None) -> Any:
    checked: Any = prepare.vector_norm(self, ord, dim, keepdim, dtype)
    given, order, dims, _ = checked
    x = to_dtype(given, widest(given.dtype))
    size = F.abs(x)
    result: Any
    if math.isinf(order):
        nothing = self.numel() == 0 and _count(self, dims) == 0
        reduce = F.sum if nothing else F.amax if order > 0 else F.amin
        result = reduce(size, dims, keepdim)
    elif order == 0:
        result = F.sum(F.ne(x, 0), dims, keepdim)
    elif order == 1:
        result = F.sum(size, dims, keepdim)
    elif order == 2:
        result = F.sqrt(F.sum(size * size, dims, keepdim))
    else:
        result = F.pow(F.sum(F.pow(size, order), dims, keepdim), 1 / order)
    return to_dtype(result, given.dtype.to_real())


def cummax(self: Tensor, dim: int) -> Any:
    return _running(self, dim, "cummax")


def cummin(self: Tensor, dim: int) -> Any:
    return _running(self, dim, "cummin")


def _running(self: Tensor, dim: int, name: str) -> Any:
    """Element by element: each takes the place of the best so far unless that is better."""
    op = find_operator(f"plugrad::{name}")
    assert op is not None
    if self.ndim == 0 or self.numel() == 0:
        none = F.zeros(sizes_of(self), dtype=int64, device=self.device)
        return named_results(op, self.clone(), none)
    values: list[Tensor] = []
    indices: list[Tensor] = []
    for position in range(sizes_of(self)[dim]):
        value: Tensor = self.select(dim, position)
        index: Tensor = F.full(sizes_of(value), position, dtype=int64, device=self.device)
        if values:
            best = values[-1]
            better = F.ge(value, best) if name == "cummax" else F.le(value, best)
            # nan is the best of all.
            better = F.logical_or(
                F.isnan(value), F.logical_and(better, F.logical_not(F.isnan(best)))
            )
            value = F.where(better, value, best)
            index = F.where(better, index, indices[-1])
        values.append(value)
        indices.append(index)
    return named_results(op, F.stack(values, dim), F.stack(indices, dim))
