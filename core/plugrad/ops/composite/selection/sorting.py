"""Sorting, and operators based on it. If a backend cannot sort, the host finds the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.operator import find_operator
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.ops.prepare import shape as prepare
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.schema_facts import named_results
from plugrad.tensor.interop.arrays import host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def sort(self: Tensor, dim: int, descending: bool, stable: bool | None) -> Any:
    prepare.sort(self, dim, descending, stable)
    return _ordered(self, dim, descending, None, "sort")


def topk(self: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    prepare.topk(self, k, dim, largest, sorted)
    return _ordered(self, dim, largest, k, "topk")


def _ordered(self: Tensor, dim: int, descending: bool, count: int | None, name: str) -> Any:
    """The order is found on the host."""
    op = find_operator("plugrad::" + name)
    assert op is not None
    if self.ndim == 0:
        return named_results(op, self.clone(), index_tensor(np.zeros((), np.int64), self))
    place = wrap_dim(dim, self.ndim)
    keys = host_array(self)
    if keys.dtype.kind == "V":  # NumPy does not sort bfloat16
        keys = keys.astype(np.float32)
    if descending:
        # Reversed before and after, equal elements keep their order.
        order = np.argsort(np.flip(keys, place), place, kind="stable")
        order = np.flip(keys.shape[place] - 1 - order, place)
    else:
        order = np.argsort(keys, place, kind="stable")
    order = np.take(order, np.arange(order.shape[place] if count is None else count), place)
    indices = index_tensor(order, self)
    return named_results(op, self.gather(place, indices), indices)


def argsort(self: Tensor, dim: int, descending: bool, stable: bool) -> Tensor:
    indices: Tensor = F.sort(self.detach(), dim, descending, stable=stable)[1]
    return indices


def msort(self: Tensor) -> Tensor:
    values: Tensor = F.sort(self, 0)[0]
    return values


def kthvalue(self: Tensor, k: int, dim: int, keepdim: bool) -> Any:
    place = wrap_dim(dim, self.ndim)
    length = sizes_of(self)[place] if self.ndim else 1
    if k < 1 or k > length:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {place}")
    if self.ndim == 0:
        values, indices = F.sort(self, place)
    else:
        # Tensors of their own, not views of all that was sorted.
        indices = F.sort(self.detach(), place)[1].narrow(place, k - 1, 1).clone()
        values = self.gather(place, indices)
        if not keepdim:
            sizes = sizes_of(self)
            rest = (*sizes[:place], *sizes[place + 1 :])
            values = C.call__unsafe_view(values, rest)
            # A copy: what the user writes to must not be what the gradient reads.
            indices = C.call__unsafe_view(indices.clone(), rest)
    op = find_operator("plugrad::kthvalue")
    assert op is not None
    return named_results(op, values, indices)
