"""Gradients of reductions and scans.

`dim` is what the user gave: None or empty for all dimensions, an int or several, perhaps negative.
"""

# Tensor dunders may return NotImplemented, which is Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.local_state import current_state
from plugrad.ops.formulas.pointwise_unary import conjugate, zero_where
from plugrad.tensor.base import sizes_of
from plugrad.tensor.levels import is_mapped

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _dims(dim: Any, ndim: int) -> list[int]:
    """The reduced dimensions, from the front, in rising order."""
    if dim is None:
        return list(range(ndim))
    given = [dim] if isinstance(dim, int) else list(dim)
    if not given or ndim == 0:
        return list(range(ndim))
    return sorted([item + ndim if item < 0 else item for item in given])


def _restore(x: Tensor, ndim: int, dim: Any, keepdim: bool) -> Tensor:
    """A reduced tensor with its reduced dimensions back, of size 1."""
    if keepdim or x.ndim == ndim:
        return x
    for item in _dims(dim, ndim):
        x = F.unsqueeze(x, item)
    return x


def _count(shape: Any, dim: Any) -> int:
    count = 1
    for item in _dims(dim, len(shape)):
        count *= shape[item]
    return count


def sum_backward(grad: Tensor, shape: Any, dim: Any, keepdim: bool) -> Tensor:
    # A gradient without dimensions expands to any shape.
    grad = grad if grad.ndim == 0 else _restore(grad, len(shape), dim, keepdim)
    return F.expand(grad, shape)


def nansum_backward(grad: Tensor, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return zero_where(F.isnan(x), sum_backward(grad, x.shape, dim, keepdim))


def mean_backward(grad: Tensor, shape: Any, dim: Any, keepdim: bool) -> Tensor:
    # Divided once it has its full size: a gradient that may be written to.
    return sum_backward(grad, shape, dim, keepdim) / max(_count(shape, dim), 1)


def _exclusive_products(x: Tensor, dim: int) -> Tensor:
    """For each element, the product of all the others along a dimension."""
    size = x.shape[dim]
    if size <= 1:
        return F.ones_like(x)
    one = F.ones_like(F.narrow(x, dim, 0, 1))
    before = F.cumprod(F.cat([one, F.narrow(x, dim, 0, size - 1)], dim), dim)
    reversed_ = F.flip(x, [dim])
    after = F.cumprod(F.cat([one, F.narrow(reversed_, dim, 0, size - 1)], dim), dim)
    return before * F.flip(after, [dim])


def prod_backward(
    grad: Tensor, x: Tensor, result: Tensor, dim: int | None, keepdim: bool
) -> Tensor:
    """result / x; with zeros among the factors, the products of all others.

    Zeros are looked for only on the host: on another device this would wait for it, and the
    elements of a batch may differ.
    """
    if x.ndim == 0:
        return grad
    grad = _restore(grad, x.ndim, dim, keepdim)
    if x.device.is_host and not is_mapped(x) and not F.any(x == 0).item():
        return grad * conjugate(_restore(result, x.ndim, dim, keepdim) / x)
    if dim is not None:
        return grad * conjugate(_exclusive_products(x, dim))
    others = F.reshape(_exclusive_products(F.reshape(x, (-1,)), 0), x.shape)
    return grad * conjugate(others)


def var_backward(grad: Tensor, x: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    freedom = _count(x.shape, dim) - (1.0 if correction is None else float(correction))
    grad = _restore(grad, x.ndim, dim, keepdim)
    factor = 2.0 / freedom if freedom != 0 else math.inf
    return grad * factor * (x - x.mean(dim, True))


def std_backward(
    grad: Tensor, x: Tensor, result: Tensor, dim: Any, correction: Any, keepdim: bool
) -> Tensor:
    """0 where the deviation is 0, as PyTorch chooses among the subgradients."""
    of_variance = zero_where(result == 0, grad / (result * 2))
    return var_backward(of_variance, x, dim, correction, keepdim)


def var_mean_backward(
    grad_var: Tensor | None,
    grad_mean: Tensor | None,
    x: Tensor,
    dim: Any,
    correction: Any,
    keepdim: bool,
) -> Tensor | None:
    total: Tensor | None = None
    if grad_var is not None:
        total = var_backward(grad_var, x, dim, correction, keepdim)
    if grad_mean is not None:
        of_mean = mean_backward(grad_mean, x.shape, dim, keepdim)
        total = of_mean if total is None else total + of_mean
    return total


def std_mean_backward(
    grad_std: Tensor | None,
    grad_mean: Tensor | None,
    x: Tensor,
    std: Tensor,
    dim: Any,
    correction: Any,
    keepdim: bool,
) -> Tensor | None:
    grad_var: Tensor | None = None
    if grad_std is not None:
        grad_var = zero_where(std == 0, grad_std / (std * 2))
    return var_mean_backward(grad_var, grad_mean, x, dim, correction, keepdim)


def _same(x: Tensor, value: Tensor) -> Tensor:
    """Where an element is the one that was chosen; nan counts as equal to nan."""
    return F.logical_or(x == value, F.logical_and(F.isnan(x), F.isnan(value)))


def evenly_distribute(grad: Tensor, x: Tensor, value: Tensor) -> Tensor:
    """Among all elements equal to the one that was chosen."""
    mask = _same(x, value)
    return mask * (grad / F.sum(mask))


def extremum_backward(grad: Tensor, x: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Evenly among the elements that tie, in each reduced group; nan if there is a nan."""
    mask = x == _restore(result, x.ndim, dim, keepdim)
    dims = _dims(dim, x.ndim)
    shares = F.sum(mask, dims, True) if dims else mask
    return _restore(grad, x.ndim, dim, keepdim) * mask / shares


def aminmax_backward(
    grad_min: Tensor | None,
    grad_max: Tensor | None,
    x: Tensor,
    low: Tensor,
    high: Tensor,
    dim: Any,
    keepdim: bool,
) -> Tensor | None:
    total: Tensor | None = None
    if grad_min is not None:
        total = extremum_backward(grad_min, x, low, dim, keepdim)
    if grad_max is not None:
        of_max = extremum_backward(grad_max, x, high, dim, keepdim)
        total = of_max if total is None else total + of_max
    return total


def select_backward(
    grad: Tensor | None, shape: Any, indices: Tensor, dim: int, keepdim: bool
) -> Tensor | None:
    """To the element that was selected along `dim`."""
    if grad is None:
        return None
    if len(shape) == 0:
        return grad
    grad = _restore(grad, len(shape), dim, keepdim)
    zeros = F.zeros(shape, dtype=grad.dtype, device=grad.device)
    # One element of each line was selected, so none is written twice.
    return F.scatter(zeros, dim, _restore(indices, len(shape), dim, keepdim), grad)


def logsumexp_backward(grad: Tensor, x: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The softmax of the input."""
    result = _restore(result, x.ndim, dim, keepdim)
    return _restore(grad, x.ndim, dim, keepdim) * conjugate((x - result).exp())


def vector_norm_backward(
    grad: Tensor, x: Tensor, result: Tensor, order: Any, dim: Any, keepdim: bool
) -> Tensor:
    """Derived from sum(|x| ** p) ** (1 / p); where it has a corner, the subgradient 0.

    Source: https://pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html
    """
    p = float(order)
    grad = _restore(grad, x.ndim, dim, keepdim)
    result = _restore(result, x.ndim, dim, keepdim)
    if p == 0:
        return F.zeros_like(x)
    if p == 1:
        return x.sgn() * grad
    if p == 2:
        return grad * zero_where(result == 0, x / result)
    if math.isinf(p):
        mask = _same(x.abs(), result)
        dims = _dims(dim, x.ndim)
        shares = F.sum(mask, dims, True) if dims else mask
        return x.sgn() * (mask * (grad / shares))
    if p < 2:
        magnitude = zero_where(x == 0, x.abs() ** (p - 1))
        slope = x.sgn() * magnitude
    else:
        slope = x * x.abs() ** (p - 2)
    return slope * zero_where(result == 0, grad / result ** (p - 1))


def cumsum_backward(grad: Tensor, dim: int) -> Tensor:
    """Each element counts in all sums from its place on."""
    if grad.numel() <= 1 or sizes_of(grad)[dim] == 1:
        return grad
    return F.flip(F.cumsum(F.flip(grad, [dim]), dim), [dim])


def cumprod_backward(grad: Tensor, x: Tensor, result: Tensor, dim: int) -> Tensor:
    """Divides by the element; with zeros among them, product by product.

    Zeros are looked for only on the host: on another device this would wait for it, and the
    elements of a batch may differ.
    """
    if x.numel() <= 1 or sizes_of(x)[dim] == 1:
        return grad
    if x.device.is_host and not is_mapped(x):
        if not F.any(x == 0).item():
            return cumsum_backward(grad * conjugate(result), dim) / conjugate(x)
    elif not current_state().grad_enabled:
        return _cumprod_backward_by_masks(grad, conjugate(x), conjugate(result), dim)
    return _cumprod_backward_with_zeros(grad, conjugate(x), dim)


def _cumprod_backward_by_masks(grad: Tensor, x: Tensor, result: Tensor, dim: int) -> Tensor:
    """Before the first zero, as if there were none: later ones are 0. At the first zero, the
    products of all others, up to the second. Elements behind it have no effect.

    That is the value only: its own derivative at a zero is another one.
    """
    is_zero = x == 0
    zeros = F.cumsum(is_zero, dim)
    first = F.logical_and(is_zero, zeros == 1)
    divided = F.where(is_zero, F.ones_like(x), x)
    before = zero_where(zeros != 0, cumsum_backward(grad * result, dim) / divided)
    others = F.cumprod(F.where(first, F.ones_like(x), x), dim)
    at_first = F.sum(zero_where(zeros != 1, grad * others), [dim], True)
    return before + zero_where(F.logical_not(first), at_first)


def _cumprod_backward_with_zeros(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    """For each place k: the product before it, times the sum over later places j of grad[j] times
    the product between k and j. Quadratic in the size, as no product may be divided by 0."""
    size = x.shape[dim]
    one = F.ones_like(F.narrow(x, dim, 0, 1))
    before = one
    parts: list[Tensor] = []
    for k in range(size):
        between = one
        if k + 1 < size:
            between = F.cat([one, F.cumprod(F.narrow(x, dim, k + 1, size - k - 1), dim)], dim)
        later = F.sum(F.narrow(grad, dim, k, size - k) * between, [dim], True)
        parts.append(before * later)
        before = before * F.narrow(x, dim, k, 1)
    return F.cat(parts, dim)


def running_backward(grad: Tensor, sizes: tuple[int, ...], dim: int, indices: Tensor) -> Tensor:
    """Adds up, for each element, the gradients of the places where it was the best so far."""
    if not sizes:
        return grad
    zeros = F.zeros(sizes, dtype=grad.dtype, device=grad.device)
    result: Tensor = zeros.scatter_add(dim, indices, grad)
    return result
