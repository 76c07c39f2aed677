"""Counts, quantiles, modes and covariances, based on sorting and sums."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import BOOL, COMPLEX, FLOATING, float32, float64, int64
from plugrad.ops.composite.conditions import has_values, holds_everywhere, known_somewhere
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.ops.on_demand.composite.counting.histograms import histc as histc
from plugrad.ops.on_demand.composite.counting.histograms import (
    histogram_of_count as histogram_of_count,
)
from plugrad.ops.on_demand.composite.counting.histograms import (
    histogram_of_edges as histogram_of_edges,
)
from plugrad.ops.on_demand.composite.counting.histograms import (
    histogramdd_bin_edges as histogramdd_bin_edges,
)
from plugrad.ops.on_demand.composite.counting.histograms import (
    histogramdd_from_counts as histogramdd_from_counts,
)
from plugrad.ops.on_demand.composite.counting.histograms import (
    histogramdd_from_edges as histogramdd_from_edges,
)
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.schema_facts import named_results
from plugrad.tensor.creation.allocation import check_memory
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

_INTERPOLATIONS: Final = ("linear", "lower", "higher", "midpoint", "nearest")
# From here on float32 does not count every element.
_MOST: Final = 2**24


def bincount_on_host(self: Tensor, weights: Tensor | None, minlength: int) -> Any:
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.category >= FLOATING or self.dtype.category == BOOL:
        raise not_implemented("bincount_cpu", self.dtype)
    refused = "bincount only supports 1-d non-negative integral inputs."
    if self.ndim != 1:
        raise RuntimeError(refused)
    check_memory(minlength * int64.itemsize)
    numbers = np.asarray(host_array(self))
    if numbers.size == 0:
        return F.zeros((minlength,), dtype=int64, device=self.device)
    if weights is None:
        try:
            counts = np.bincount(numbers, minlength=minlength)
        except ValueError:
            if numbers.min() < 0:  # NumPy has looked, so we look only now
                raise RuntimeError(refused) from None
            raise
        return from_host(counts.astype(np.int64, copy=False), int64, self.device)
    if numbers.min() < 0:
        raise RuntimeError(refused)
    if sizes_of(weights) != sizes_of(self):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = float32 if weights.dtype is float32 else float64
    if weights.dtype.is_complex:
        weights = F.real(weights)
    values = np.asarray(host_array(weights)).astype(np.float64)
    sums = np.bincount(numbers, values, minlength)
    return from_host(sums.astype(dtype.numpy), dtype, self.device)


def _check_variables(self: Tensor, name: str) -> None:
    if self.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with "
            f"{self.ndim} dimensions"
        )


def cov(self: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Any:
    _check_variables(self, "cov")
    if self.dtype.category == BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x: Any = self if self.ndim == 2 else self.reshape((1, -1))
    count = sizes_of(x)[1]
    _check_cov_weights(fweights, "fweights", "integral", count)
    _check_cov_weights(aweights, "aweights", "floating point", count)
    w: Any = fweights
    if aweights is not None:
        w = aweights if fweights is None else fweights * aweights
    weighted = x if w is None else x * w
    total: Any = count if w is None else F.sum(w)
    if w is not None and has_values(total) and not holds_everywhere(total != 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    sums = F.sum(weighted, 1)
    # Without observations there is no mean: 0 / 0 gives nan.
    mean = F.div(sums, F.full((), count, dtype=int64, device=self.device) if w is None else total)
    if aweights is not None and correction != 0:
        freedom = total - correction * F.sum(w * aweights) / total
    else:
        freedom = total - correction
    if _is_used_up(freedom):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations.",
            stacklevel=2,
        )
        freedom = 0 if w is None else F.where(freedom <= 0, 0, freedom)
    elif w is not None and not has_values(freedom):
        freedom = F.where(freedom <= 0, 0, freedom)
    distance = x - mean.unsqueeze(1)
    other = distance if w is None else distance * w
    product = F.matmul(distance, F.mH(other).to(distance.dtype))
    if w is None:
        freedom = F.full((), freedom, dtype=int64, device=self.device)
    return F.div(product, freedom).squeeze()


def _is_used_up(freedom: Any) -> bool:
    """Whether no degrees of freedom are left, of numbers or of any element of a batch."""
    used = freedom <= 0
    return known_somewhere(used) if isinstance(used, TensorBase) else bool(used)


def _check_cov_weights(weights: Tensor | None, name: str, kind: str, count: int) -> None:
    if weights is None:
        return
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{weights.ndim} dimensions"
        )
    category = weights.dtype.category
    fits = category == FLOATING if kind == "floating point" else BOOL < category < FLOATING
    if not fits:
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with "
            f"{weights.dtype.scalar_name} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {weights.numel()} != {count}"
        )
    if count > 0 and known_somewhere(F.logical_not(weights.detach() >= 0)):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def corrcoef(self: Tensor) -> Any:
    _check_variables(self, "corrcoef")
    covariances = F.cov(self)
    if covariances.ndim == 0:
        return covariances / covariances
    variances = F.diagonal(covariances)
    spread = F.sqrt(F.real(variances) if variances.dtype.is_complex else variances)
    found = covariances / spread.unsqueeze(1) / spread.unsqueeze(0)
    # Rounding may lead outside.
    if found.dtype.is_complex:
        return F.complex(F.real(found).clamp(-1, 1), F.imag(found).clamp(-1, 1))
    return found.clamp(-1, 1)


def _check_length(self: Tensor, dim: int, name: str) -> int:
    place = wrap_dim(dim, self.ndim)
    if self.ndim and sizes_of(self)[place] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {place} to have non-zero size.")
    return place


def _chosen(self: Tensor, place: int, keepdim: bool, indices: Any, name: str) -> Any:
    """Named results: one element for each row along a dimension, and where it is."""
    op = find_operator(f"plugrad::{name}")
    assert op is not None
    values = self.gather(place, indices)
    if not keepdim and self.ndim:
        values = values.squeeze(place).clone()
        # A copy: what the user writes to must not be what the gradient reads.
        indices = indices.squeeze(place).clone()
    return named_results(op, values, indices)


def mode(self: Tensor, dim: int, keepdim: bool) -> Any:
    if self.dtype.category == COMPLEX:
        raise not_implemented("mode_cpu", self.dtype)
    place = _check_length(self, dim, "mode")
    if self.ndim == 0:
        zero = F.zeros((), dtype=int64, device=self.device)
        op = find_operator("plugrad::mode")
        assert op is not None
        return named_results(op, self.clone(), zero)
    values, order = F.sort(self.detach(), stable=True, dim=place, descending=False)
    size = sizes_of(self)[place]
    # Along the sorted row, each element counts the equal ones up to itself.
    shape = [1] * self.ndim
    shape[place] = size
    count = F.arange(size, device=self.device).reshape(tuple(shape))
    differs = F.ne(values.narrow(place, 1, size - 1), values.narrow(place, 0, size - 1))
    first = F.cat([F.ones_like(differs.narrow(place, 0, 1)), differs], place) if size > 1 else None
    if first is None:
        longest = F.zeros_like(order)
    else:
        begin = F.cummax(F.where(first, count, 0), place)[0]
        longest = F.argmax(count - begin, place, True)
    return _chosen(self, place, keepdim, order.gather(place, longest), "mode")


def _check_nanmedian(self: Tensor) -> None:
    if self.dtype.category == BOOL or self.dtype.category == COMPLEX:
        raise not_implemented("median_cpu", self.dtype)


def nanmedian_all(self: Tensor) -> Any:
    _check_nanmedian(self)
    if self.numel() == 0:
        return F.median(self)
    flat = self.reshape((-1,))
    return flat.gather(0, _middle(flat, 0)).reshape(())


def nanmedian_dim(self: Tensor, dim: int, keepdim: bool) -> Any:
    place = _check_length(self, dim, "median")
    _check_nanmedian(self)
    return _chosen(self, place, keepdim, _middle(self, place), "nanmedian.dim")


def _middle(self: Tensor, place: int) -> Any:
    """Where the middle one of the numbers along a dimension is; nan is sorted behind them."""
    if self.ndim == 0:
        return F.zeros((), dtype=int64, device=self.device)
    x = self.detach()
    order = F.sort(x, stable=True, dim=place, descending=False)[1]
    count = F.sum(F.logical_not(F.isnan(x)), (place,), True)
    middle = F.div(count - 1, 2, rounding_mode="floor").clamp(0, None)
    return order.gather(place, middle)


def quantile(self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    return _quantile(self, q, dim, keepdim, interpolation, False)


def nanquantile(self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    return _quantile(self, q, dim, keepdim, interpolation, True)


def quantile_of_number(
    self: Tensor, q: float, dim: int | None, keepdim: bool, interpolation: str
) -> Any:
    return _quantile(self, _fraction(self, q), dim, keepdim, interpolation, False)


def nanquantile_of_number(
    self: Tensor, q: float, dim: int | None, keepdim: bool, interpolation: str
) -> Any:
    return _quantile(self, _fraction(self, q), dim, keepdim, interpolation, True)


def _fraction(self: Tensor, q: float) -> Any:
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    _check_quantile_dtype(self)
    return F.full((), q, dtype=self.dtype, device=self.device)


def _check_quantile_dtype(self: Tensor) -> None:
    if self.dtype is not float32 and self.dtype is not float64:
        raise RuntimeError("quantile() input tensor must be either float or double dtype")


def _check_quantile(self: Tensor, q: Tensor, interpolation: str) -> None:
    _check_quantile_dtype(self)
    if self.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.dtype is not self.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if q.device is not self.device:
        raise RuntimeError("quantile() q tensor must be on the same device as the input tensor")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )


def _quantile(
    self: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Any:
    _check_quantile(self, q, interpolation)
    place = wrap_dim(0 if dim is None else dim, self.ndim)
    if self.device.is_host and self.device.type != "meta":
        fractions = q.detach()
        if not holds_everywhere(F.logical_and(fractions >= 0, fractions <= 1)):
            raise RuntimeError("quantile() q values must be in the range [0, 1]")
    x: Any = self.reshape((-1,)) if dim is None or self.ndim == 0 else self.movedim(place, -1)
    size = sizes_of(x)[-1]
    if size > _MOST:
        raise RuntimeError("quantile() input tensor is too large")
    ordered = F.sort(x)[0]
    missing = F.isnan(ordered.detach())
    if ignore_nan:
        last = size - 1 - F.sum(missing, (-1,), True)
        ranks = (q * last).clamp(0, None)
    else:
        # nan is sorted to the end, where the rank then is.
        ranks = F.where(missing.any(-1, True), float(size - 1), q * (size - 1))
    found = _between(ordered, ranks, interpolation)
    return _arranged(found, self, q.ndim, None if dim is None else place, keepdim)


def _between(ordered: Any, ranks: Any, interpolation: str) -> Any:
    """The elements at ranks that need not be whole, along the last dimension."""
    rounded: Any = {"lower": F.floor, "higher": F.ceil, "nearest": F.round}.get(interpolation)
    if rounded is not None:
        return ordered.gather(-1, rounded(ranks.detach()).to(int64))
    below = ranks.detach().floor().to(int64)
    above = ranks.detach().ceil().to(int64)
    weight = F.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
    return F.lerp(ordered.gather(-1, below), ordered.gather(-1, above), weight)


def _arranged(found: Any, self: Tensor, q_ndim: int, place: int | None, keepdim: bool) -> Any:
    """(..., quantiles) in PyTorch's order: the quantiles first, with dimensions of size 1 if
    kept."""
    sizes = list(sizes_of(self))
    count = sizes_of(found)[-1]
    moved = found.movedim(-1, 0)
    if place is None:
        rest = [1] * len(sizes) if keepdim else []
    else:
        rest = [size for dim, size in enumerate(sizes) if dim != place]
        if keepdim and sizes:
            rest.insert(place, 1)
    shape = (count, *rest) if q_ndim else tuple(rest)
    assert math.prod(shape) == found.numel()
    return temporary_in_shape(moved.contiguous(), shape)
