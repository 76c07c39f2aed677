"""Combinations, powers, distances, running sums and blocks, composed of indexing and joining."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import BOOL, FLOATING, int32, int64
from plugrad.ops.composite.conditions import holds_somewhere
from plugrad.ops.composite.elementwise.precision import in_dtype_of, is_narrow, widened
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.ops.on_demand.composite.vectors.calculus import (
    cumulative_trapezoid_apart as cumulative_trapezoid_apart,
)
from plugrad.ops.on_demand.composite.vectors.calculus import (
    cumulative_trapezoid_at as cumulative_trapezoid_at,
)
from plugrad.ops.on_demand.composite.vectors.calculus import gradient as gradient
from plugrad.ops.on_demand.composite.vectors.calculus import gradient_along as gradient_along
from plugrad.ops.on_demand.composite.vectors.calculus import trapezoid_apart as trapezoid_apart
from plugrad.ops.on_demand.composite.vectors.calculus import trapezoid_at as trapezoid_at
from plugrad.ops.on_demand.composite.vectors.unique import unique2_on_host as unique2_on_host
from plugrad.ops.on_demand.composite.vectors.unique import (
    unique_consecutive_on_host as unique_consecutive_on_host,
)
from plugrad.ops.on_demand.composite.vectors.unique import unique_dim_on_host as unique_dim_on_host
from plugrad.ops.on_demand.prepare import sequences as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import common_dtype
from plugrad.tensor.creation.allocation import check_memory

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def block_diag(tensors: list[Any]) -> Any:
    if not tensors:
        return F.empty((1, 0))
    for position, item in enumerate(tensors):
        if item.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {item.ndim} dimensions"
            )
        if item.device is not tensors[0].device:
            raise RuntimeError(
                "torch.block_diag: input tensors must all be on the same device. Input 0 is on "
                f"device {tensors[0].device} and input {position} is on device {item.device}"
            )
    dtype = common_dtype(tuple(tensors))
    # Recorded, unlike the casts of kernels.
    blocks = [item.to(dtype) for item in tensors]
    matrices = [item if item.ndim == 2 else item.reshape((1, -1)) for item in blocks]
    width = sum(sizes_of(item)[1] for item in matrices)
    rows = []
    left = 0
    for item in matrices:
        own = sizes_of(item)
        before = F.zeros((own[0], left), dtype=dtype, device=item.device)
        left += own[1]
        behind = F.zeros((own[0], width - left), dtype=dtype, device=item.device)
        rows.append(F.cat([before, item, behind], 1))
    return F.cat(rows, 0)


def cartesian_prod(tensors: list[Any]) -> Any:
    for item in tensors:
        if item.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(sizes_of(item))}")
    if len(tensors) == 1:
        return tensors[0]
    grids = F.meshgrid(tensors, indexing="ij")
    return F.stack([grid.reshape((-1,)) for grid in grids], 1)


def chain_matmul(matrices: list[Any]) -> Any:
    for item in matrices:
        if item.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {item.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return matrices[0].clone()
    for position in range(len(matrices) - 1):
        a, b = sizes_of(matrices[position]), sizes_of(matrices[position + 1])
        if a[1] != b[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {position} and {position + 1} with shapes {list(a)} and "
                f"{list(b)} cannot be multiplied"
            )
    rows = [sizes_of(item)[0] for item in matrices]
    return _multiplied(matrices, _best_splits([*rows, sizes_of(matrices[-1])[1]]), 0)


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where each part of a chain is cut into two factors, so that there is least to multiply.

    Source: Cormen et al., Introduction to Algorithms, section 15.2.
    """
    count = len(sizes) - 1
    cost = dict.fromkeys(((i, i + 1) for i in range(count)), 0)
    cut: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for start in range(count - length + 1):
            end = start + length
            options = [
                (cost[start, k] + cost[k, end] + sizes[start] * sizes[k] * sizes[end], k)
                for k in range(start + 1, end)
            ]
            cost[start, end], cut[start, end] = min(options)
    return cut


def _multiplied(factors: Sequence[Any], cut: dict[tuple[int, int], int], start: int) -> Any:
    if len(factors) == 1:
        return factors[0]
    middle = cut[start, start + len(factors)] - start
    left = _multiplied(factors[:middle], cut, start)
    return F.mm(left, _multiplied(factors[middle:], cut, start + middle))


def combinations(self: Tensor, r: int, with_replacement: bool) -> Any:
    if self.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(sizes_of(self))}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return F.empty((0,), dtype=self.dtype, device=self.device)
    choose: Any = itertools.combinations
    if with_replacement:
        choose = itertools.combinations_with_replacement
    size = sizes_of(self)[0]
    number = size + r - 1 if with_replacement and size else size
    check_memory(math.comb(number, r) * r * int64.itemsize)
    rows = list(choose(range(size), r)) if r <= number else []
    taken = np.array(rows, np.int64).reshape((-1,))
    return temporary_in_shape(self.index_select(0, _tensor_of(taken, self)), (len(rows), r))


def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> Any:
    name = "index_reduce_()"
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    if index.ndim > 1:
        raise IndexError(
            f"{name}: Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{index.dtype.scalar_name} and size: {list(sizes_of(index))}"
        )
    if index.dtype is not int64 and index.dtype is not int32:
        raise RuntimeError(
            f"{name}: Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}: self ({self.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must "
            "have the same scalar type"
        )
    place = wrap_dim(dim, self.ndim)
    sizes, others = sizes_of(self), sizes_of(source)
    if source.ndim and index.numel() != others[place % source.ndim]:
        raise RuntimeError(
            f"{name}: Number of indices ({index.numel()}) should be equal to source.size(dim): "
            f"({others[place % source.ndim]}), for dim: {place}"
        )
    if sizes[:place] + sizes[place + 1 :] != others[:place] + others[place + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(sizes)} source.shape = {list(others)}"
        )
    _check_in_range(index, sizes[place] if sizes else 1)
    if index.numel() == 0:
        return self.clone()
    rows: Any = index.to(int64)
    if self.ndim:
        rows = rows.reshape([-1 if axis == place else 1 for axis in range(self.ndim)])
    else:
        rows = rows.reshape(())
    return F.scatter_reduce(
        self, place, rows.expand(others), source, reduce, include_self=include_self
    )


def _check_in_range(index: Tensor, size: int) -> None:
    is_read = index.device.is_host and index.device.type != "meta" and index.numel() > 0
    if is_read and holds_somewhere(F.logical_or(index < 0, index >= size)):
        raise IndexError("index out of range in self")


def logcumsumexp(self: Tensor, dim: int) -> Any:
    checked: Any = prepare.logcumsumexp(self, dim)
    place = checked[1]
    if self.ndim == 0 or sizes_of(self)[place] < 2:
        return self.clone()
    x = widened(self)
    size = sizes_of(self)[place]
    if self.dtype.is_complex:
        # One after the other: PyTorch's logarithm is on the branch where this leads.
        found = [x.narrow(place, 0, 1)]
        for position in range(1, size):
            found.append(F.logaddexp(found[-1], x.narrow(place, position, 1)))
        return F.cat(found, place)
    # After n rounds each element combines the 2 ** n elements that end at it; see `scans`.
    step = 1
    while step < size:
        rest = size - step
        later = F.logaddexp(x.narrow(place, step, rest), x.narrow(place, 0, rest))
        x = F.cat([x.narrow(place, 0, step), later], place)
        step *= 2
    return in_dtype_of(x, self)


def renorm(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Any:
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    place = wrap_dim(dim, self.ndim)
    dims = tuple(axis for axis in range(self.ndim) if axis != place)
    norms = F.linalg_vector_norm(widened(self), p, dims, True)
    # PyTorch adds this to what it divides by.
    scale = F.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return self * in_dtype_of(scale, self) if is_narrow(self.dtype) else self * scale


def unravel_index(self: Tensor, shape: Sequence[int]) -> tuple[Any, ...]:
    step = math.prod(shape)
    wide = F._to_copy(self, int64)
    found = []
    for size in shape:
        step = step // size if size else 1
        quotient = F.div(wide, step, rounding_mode="floor")
        found.append(quotient.remainder(size) if size else quotient)
    return tuple(found)


def linalg_vander(x: Tensor, N: int | None) -> Any:
    is_narrow = x.dtype.category == FLOATING and x.dtype.itemsize < 4
    if x.dtype.category == BOOL or is_narrow:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{x.dtype.scalar_name}"
        )
    if x.ndim == 0:
        x = x.reshape((1,))
    count = sizes_of(x)[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return _powers(x, count)


def _powers(x: Any, count: int) -> Any:
    """The powers 0 to count - 1, along a new last dimension."""
    ones = F.ones_like(x).unsqueeze(-1)
    if count == 1:
        return ones
    factors = x.unsqueeze(-1).expand((*sizes_of(x), count - 1))
    powers = F.cumprod(factors, -1)
    return F.cat([ones.to(powers.dtype), powers], -1)


def vander(x: Tensor, N: int | None, increasing: bool) -> Any:
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = sizes_of(x)[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    dtype = x.dtype if x.dtype.category >= FLOATING else int64
    if count == 0:
        return F.empty((sizes_of(x)[0], 0), dtype=dtype, device=x.device)
    powers = _powers(x, count).to(dtype)
    return powers if increasing else powers.flip([1])


def _tensor_of(index: Any, like: TensorBase) -> Any:
    return index_tensor(index, like)
