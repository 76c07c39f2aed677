"""Tangents of reductions and scans."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import DType
from plugrad.ops.formulas.pointwise_unary import conjugate, zero_where

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def along(t: Tensor, gradient: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Any:
    """The tangent of a reduction in which each result depends on the elements of one group.

    Args:
        gradient: the gradient of the sum of all results, which contains each result's.
    """
    product = conjugate(gradient) * t
    if product.dtype.is_complex and not result.dtype.is_complex:
        product = F.real(product)
    dims = dim if dim is None or isinstance(dim, (list, tuple)) else (dim,)
    return product.sum(dim=dims or None, keepdim=keepdim)


def nansum_tangent(t: Tensor, x: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Any:
    return F.sum(zero_where(F.isnan(x), t), dim, keepdim, dtype=dtype)


def selected(t: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Any:
    """The tangents of the elements that were chosen along a dimension."""
    if t.ndim == 0:
        return t
    if keepdim:
        return t.gather(dim, indices)
    return t.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def taken_along(t: Tensor, dim: int, indices: Tensor) -> Any:
    return t if t.ndim == 0 else t.gather(dim, indices)


def cumprod_tangent(t: Tensor, x: Tensor, result: Tensor, dim: int) -> Any:
    """The products with one factor replaced by its tangent, added up.

    Zeros are looked for only on the host: on another device this would wait for it.
    """
    if x.ndim == 0 or x.shape[dim] == 0:
        return t
    if x.device.is_host and not F.any(x == 0).item():
        return result * F.cumsum(t / x, dim)
    if not current_state().grad_enabled:
        return _by_masks(t, x, result, dim)
    return _step_by_step(t, x, dim)


def _by_masks(t: Tensor, x: Tensor, result: Tensor, dim: int) -> Any:
    """Before the first zero, as if there were none. From there on only its own tangent counts.

    That is the value only: its own derivative at a zero is another one.
    """
    is_zero = x == 0
    zeros = F.cumsum(is_zero, dim)
    first = F.logical_and(is_zero, zeros == 1)
    divided = F.where(is_zero, F.ones_like(x), x)
    before = result * F.cumsum(t / divided, dim)
    return F.where(zeros == 0, before, F.cumprod(F.where(first, t, x), dim))


def _step_by_step(t: Tensor, x: Tensor, dim: int) -> Any:
    """The tangent by the product rule for each product and the next factor, without division."""
    product = F.narrow(x, dim, 0, 1)
    tangent = F.narrow(t, dim, 0, 1)
    parts = [tangent]
    for k in range(1, x.shape[dim]):
        factor = F.narrow(x, dim, k, 1)
        tangent = tangent * factor + product * F.narrow(t, dim, k, 1)
        product = product * factor
        parts.append(tangent)
    return F.cat(parts, dim)
