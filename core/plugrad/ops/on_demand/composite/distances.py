"""Distances and products of pairs of vectors."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, promote_types
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.cpp_names import CPP_NAMES

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    dtype = promote_types(x1.dtype, x2.dtype)
    if dtype.category != FLOATING:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {dtype.scalar_name}"
        )
    # Also nan is refused.
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    a: Any = x1 if x1.dtype is dtype else F._to_copy(x1, dtype)
    b: Any = x2 if x2.dtype is dtype else F._to_copy(x2, dtype)
    shape = broadcast_shapes(sizes_of(a), sizes_of(b))
    a, b = a.expand(shape), b.expand(shape)
    return (_unit(a, dim, eps) * _unit(b, dim, eps)).sum(dim=(dim,))


def _unit(x: Any, dim: int, eps: float) -> Any:
    """A vector of norm 1, or shorter where the norm is below eps.

    As in PyTorch, the gradient goes through the norm there, too.
    """
    norm: Any = F.linalg_vector_norm(x, 2, (dim,), True)
    value = norm.detach()
    return x / F.where(value < eps, norm + (eps - value), norm)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    difference: Any = F.sub(x1, x2) + eps
    last = difference.ndim - 1
    if last < 0:
        return F.linalg_vector_norm(difference, p)
    return F.linalg_vector_norm(difference, p, (last,), keepdim)


def pdist(self: Tensor, p: float) -> Tensor:
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if self.dtype.category != FLOATING:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    rows, width = sizes_of(self)
    first, second = np.triu_indices(rows, 1)
    if width == 0 or first.size == 0:
        return self.index_select(0, index_tensor(first, self)).sum(dim=(1,))
    if self.dtype.itemsize == 2:
        raise not_implemented("pdist", self.dtype)
    a = self.index_select(0, index_tensor(first, self))
    b = self.index_select(0, index_tensor(second, self))
    return F.linalg_vector_norm(a - b, p, (1,))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.ndim != 3:
        raise RuntimeError(
            f"bilinear(): expected weight to be 3-D, but got {weight.ndim} dimensions"
        )
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    if input1.ndim == 0:
        raise RuntimeError("bilinear(): expected inputs of at least 1 dimension, but got 0")
    left, right = sizes_of(input1), sizes_of(input2)
    for dim, (a, b) in enumerate(zip(left[:-1], right[:-1], strict=True)):
        if a != b:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}"
            )
    out, rows, columns = sizes_of(weight)
    for name, given, wanted in (("input1", left[-1], rows), ("input2", right[-1], columns)):
        if given != wanted:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {given} but expected "
                f"{wanted}"
            )
    if bias is not None and sizes_of(bias) != (out,):
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias.numel()} but expected "
            f"{out}"
        )
    if input1.dtype is not input2.dtype or input1.dtype is not weight.dtype:
        names = [CPP_NAMES[t.dtype.name] for t in (input1, input2, weight)]
        raise RuntimeError(
            f"All tensors must have the same dtype, got input1: {names[0]}, input2: {names[1]}, "
            f"weight: {names[2]}"
        )
    flat1 = input1.reshape((-1, rows)) if input1.ndim != 2 else input1
    flat2 = input2.reshape((-1, columns)) if input2.ndim != 2 else input2
    # (n, J) rows of weights for each output, then their products with the second input.
    by_first: Any = F.matmul(flat1, weight.permute((1, 0, 2)).reshape((rows, out * columns)))
    parts = by_first.reshape((sizes_of(flat1)[0], out, columns)) * flat2.unsqueeze(1)
    found = parts.sum(dim=(-1,), dtype=parts.dtype).reshape((*left[:-1], out))
    return found if bias is None else found + bias
