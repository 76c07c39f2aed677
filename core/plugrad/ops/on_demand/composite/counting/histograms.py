"""Histograms: `searchsorted` finds each element's interval, and elements are counted as in
`bincount`.

If no range is given, its ends are read on the host, except while a backend traces.
"""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import DType, float16, int64
from plugrad.ops.composite.conditions import has_values
from plugrad.ops.composite.elementwise.precision import widest
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.schema_facts import named_results
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ends = tuple[float, float]


def histc(self: Tensor, bins: int, min: Any, max: Any) -> Any:
    if self.dtype.is_complex:
        raise not_implemented("aminmax_cpu", self.dtype)
    if not self.dtype.is_floating_point:
        raise not_implemented("histogram_cpu", self.dtype)
    _check_count(bins, 0)
    low, high = float(min), float(max)
    x = self.detach().reshape((-1,))
    if low == high and self.numel() > 0 and not has_values(x):
        low, high = _unread_extent(x, 1.0)
    else:
        low, high = _range_of_histc(x, low, high)
    inside = F.logical_and(x >= low, x <= high)
    place = ((x - low) * bins / (high - low)).nan_to_num(0.0, 0.0, 0.0)
    place = place.to(int64).clamp(0, bins - 1)
    return _summed(place, inside, None, bins, x.dtype)


def _range_of_histc(x: Any, low: float, high: float) -> Ends:
    if low == high and x.numel() > 0:
        low, high = _extent(x)
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return low, high


def histogram_of_edges(self: Tensor, bins: Tensor, weight: Tensor | None, density: bool) -> Any:
    points, weights = _flat(self, weight)
    hist = histogramdd_from_edges(points, [bins], weights, density)
    return named_results(_operator(), hist, bins.detach().clone())


def histogram_of_count(
    self: Tensor, bins: int, range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> Any:
    points, weights = _flat(self, weight)
    edges = histogramdd_bin_edges(points, (bins,), range, weights, density)
    hist = histogramdd_from_edges(points, list(edges), weights, density)
    return named_results(_operator(), hist, edges[0])


def _operator() -> Any:
    op = find_operator("plugrad::histogram.bins_tensor")
    assert op is not None
    return op


def _flat(self: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Elements as points of one coordinate, each with its weight."""
    if weight is not None:
        if weight.numel() != self.numel():
            _raise_weights((self.numel(), 1), sizes_of(weight))
        weight = weight.reshape((-1,))
    return self.reshape((-1, 1)), weight


def histogramdd_bin_edges(
    self: Tensor,
    bins: Sequence[int],
    range: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Any, ...]:
    _check_points(self, weight)
    count = sizes_of(self)[-1]
    if len(bins) != count:
        raise RuntimeError(
            f"torch.histogramdd: expected {count} sequences of bin edges for a {count}-dimensional "
            f"histogram but got {len(bins)}"
        )
    for dim, number in enumerate(bins):
        _check_count(number, dim)
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have "
            f"{2 * count} elements, but got {len(range)}"
        )
    x = self.detach().reshape((-1, count))
    edges = []
    for dim, number in enumerate(bins):
        given = None if range is None else (float(range[2 * dim]), float(range[2 * dim + 1]))
        if given is None and sizes_of(x)[0] and not has_values(x):
            low, high = _unread_extent(x.select(1, dim), 0.5)
            edges.append(_spaced_between(low, high, number + 1, self.dtype))
            continue
        low, high = _ends(x, dim, given)
        # All of one dtype: the edges are those that the dtype has.
        steps = _spaced(low, high, number + 1, self.dtype)
        edges.append(from_host(steps, self.dtype, self.device))
    return tuple(edges)


def histogramdd_from_counts(
    self: Tensor,
    bins: Sequence[int],
    range: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> Any:
    edges = histogramdd_bin_edges(self, bins, range, weight, density)
    return histogramdd_from_edges(self, list(edges), weight, density)


def histogramdd_from_edges(
    self: Tensor, bins: Sequence[TensorBase], weight: Tensor | None, density: bool
) -> Any:
    _check_points(self, weight)
    count = sizes_of(self)[-1]
    if len(bins) != count:
        raise RuntimeError(
            f"torch.histogramdd: expected {count} sequences of bin edges for a {count}-dimensional "
            f"histogram but got {len(bins)}"
        )
    edges: list[Any] = list(bins)
    for dim, row in enumerate(edges):
        _check_edges(self, row, dim)
    x = self.detach().reshape((-1, count)).contiguous()
    shape = tuple([sizes_of(row)[0] - 1 for row in edges])
    place: Any = F.zeros((sizes_of(x)[0],), dtype=int64, device=self.device)
    inside: Any = None
    for dim, row in enumerate(edges):
        column = x.select(1, dim).contiguous()
        steps = row.detach()
        last = shape[dim] - 1
        if last < 0:
            return F.zeros(shape, dtype=self.dtype, device=self.device)
        found = F.searchsorted(steps, column, right=True) - 1
        within = F.logical_and(column >= steps.select(0, 0), column <= steps.select(0, last + 1))
        inside = within if inside is None else F.logical_and(inside, within)
        place = place * shape[dim] + found.clamp(0, last)
    weights = None if weight is None else weight.detach().reshape((-1,))
    counts = _summed(place, inside, weights, math.prod(shape), self.dtype)
    hist: Any = temporary_in_shape(counts, shape)
    if density:
        hist = hist / hist.sum()
        for dim, row in enumerate(edges):
            widths = F.diff(row.detach())
            hist = hist / widths.reshape([-1 if axis == dim else 1 for axis in range(count)])
    return hist


def _summed(place: Any, inside: Any, weights: Any, size: int, dtype: DType) -> Any:
    """What all places that are inside the range count, for each of `size` intervals."""
    one = 1.0 if weights is None else weights
    wide = widest(dtype)
    counts = F.where(inside, one, 0.0).to(wide)
    return F.zeros((size,), dtype=wide, device=place.device).index_add(0, place, counts).to(dtype)


def _spaced(low: float, high: float, count: int, dtype: DType) -> Any:
    """Numbers at equal distances, counted from the nearer end, so that both ends are exact."""
    kind = widest(dtype).numpy
    step = kind.type((high - low) / (count - 1))
    index = np.arange(count)
    ahead = kind.type(low) + step * index.astype(kind)
    back = kind.type(high) - step * (count - 1 - index).astype(kind)
    return np.where(index < count // 2, ahead, back).astype(dtype.numpy)


def _spaced_between(low: Any, high: Any, count: int, dtype: DType) -> Any:
    """`_spaced` of tensors."""
    low, high = low.to(widest(dtype)), high.to(widest(dtype))
    step = (high - low) / (count - 1)
    index: Any = F.arange(count, dtype=low.dtype, device=low.device)
    ahead, back = low + step * index, high - step * (count - 1 - index)
    return F.where(index < count // 2, ahead, back).to(dtype)


def _extent(x: Any) -> Ends:
    """The least and the greatest element, as numbers."""
    low, high = F.aminmax(x)
    return float(low), float(high)


def _unread_extent(x: Any, margin: float) -> Any:
    """The same as tensors, while a program is traced; further apart by margins if they are equal.
    Nothing is checked then."""
    low, high = F.aminmax(x)
    equal = F.eq(low, high)
    return F.where(equal, low - margin, low), F.where(equal, high + margin, high)


def _ends(x: Any, dim: int, given: Ends | None) -> Ends:
    """Where the intervals of one dimension begin and end."""
    if given is not None:
        low, high = given
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max "
                f"{high:g} for dimension {dim}"
            )
    else:
        low, high = _extent(x.select(1, dim)) if sizes_of(x)[0] else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _check_count(bins: int, dim: int) -> None:
    if bins <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}"
        )


def _check_points(self: Tensor, weight: Tensor | None) -> None:
    """RuntimeError unless there are points with coordinates, and a weight for each."""
    sizes = sizes_of(self)
    if len(sizes) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if not self.dtype.is_floating_point or self.dtype is float16:
        raise not_implemented("histogramdd", self.dtype)
    if weight is None:
        return
    if weight.dtype is not self.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({_name(self)}), and weight({_name(weight)})"
        )
    if sizes_of(weight) != sizes[:-1]:
        _raise_weights(sizes, sizes_of(weight))


def _raise_weights(sizes: Sequence[int], weights: Sequence[int]) -> None:
    raise RuntimeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
        f"input tensor excluding its innermost dimension, but got input with shape {list(sizes)} "
        f"and weight with shape {list(weights)}"
    )


def _check_edges(self: Tensor, row: TensorBase, dim: int) -> None:
    if row.dtype is not self.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
            f"input with dtype {_name(self)} and bins for dimension {dim} with dtype {_name(row)}"
        )
    if row.ndim != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {row.ndim} "
            f"dimensions in the bins tensor for dimension {dim}"
        )
    if row.numel() < 1:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
            f"the bins tensor for dimension {dim}"
        )
    if row.numel() == 1:
        _check_count(0, dim)


def _name(tensor: TensorBase) -> str:
    return CPP_NAMES[tensor.dtype.name]
