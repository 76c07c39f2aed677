"""Batching rules of matrix products.

mapped   product                                    result
a        [B, m, k] @ [k, n], one tall matrix        [B, m, n]
b        [m, k] @ [k, B, n], one wide matrix        [m, B, n]
b, n=1   [B, k] @ [k, m], the vectors as rows       [B, m]
both     [B, m, k] @ [B, k, n], a `bmm`             [B, m, n]
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dtype import FLOATING
from plugrad.ops.batching.dims import for_one, logical_rank, logical_sizes, moved, padded, to_front
from plugrad.ops.prepare.linalg import check_expands
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Rule = Callable[..., tuple[Any, Any]]
Dims = tuple[Any, ...]


def matmul(info: Any, in_dims: Dims, self: Tensor, other: Tensor) -> tuple[Any, Any]:
    left, right = logical_rank(self, in_dims[0]), logical_rank(other, in_dims[1])
    if left == 0 or right == 0:
        for_one(C.call_matmul, in_dims, (self, other))
    a, b = to_front(self, in_dims[0]), to_front(other, in_dims[1])
    if left == 1:
        a = C.call_unsqueeze(a, -2)
    if right == 1:
        b = C.call_unsqueeze(b, -1)
    product = _product(info, a, in_dims[0] is not None, b, in_dims[1] is not None)
    if right == 1:
        product = C.call_squeeze_dim(product, -1)
    if left == 1:
        product = C.call_squeeze_dim(product, -1 if right == 1 else -2)
    return product, 0


def _product(info: Any, a: Tensor, a_mapped: bool, b: Tensor, b_mapped: bool) -> Tensor:
    """The product of operands with at least two logical dimensions, the batch dimension first."""
    left, right = sizes_of(a), sizes_of(b)
    a_rank, b_rank = len(left) - a_mapped, len(right) - b_mapped
    if b_rank == 2 and not b_mapped:
        return C.call_matmul(a, b)
    if a_rank == 2 and b_rank == 2 and not a_mapped and right[2] == 1:
        # Vectors are rows here, so those of the result lie one after the other, too.
        rows = C.call_mm(C.call_squeeze_dim(b, -1), C.call_t(a))
        return C.call_unsqueeze(rows, -1)
    if a_rank == 2 and b_rank == 2 and not a_mapped:
        wide = C.call_reshape(moved(b, 0, 1), (right[1], right[0] * right[2]))
        product = C.call_view(C.call_mm(a, wide), (left[0], right[0], right[2]))
        return moved(product, 1, 0)
    if a_rank > 2 and b_rank == 2 and a_mapped:
        # All matrices of one element of the batch are multiplied by the same one.
        tall = C.call_reshape(a, (left[0], math.prod(left[1:-1]), left[-1]))
        return C.call_reshape(C.call_bmm(tall, b), (*left[:-1], right[-1]))
    rank = max(a_rank, b_rank)
    return C.call_matmul(
        padded(a, 0 if a_mapped else None, rank), padded(b, 0 if b_mapped else None, rank)
    )


def _same_ranks(call: Callable[..., Any], left: int, right: int) -> Rule:
    """`matmul`'s rule for an operator that takes tensors of given ranks only."""

    def rule(info: Any, in_dims: Dims, self: Tensor, other: Tensor) -> tuple[Any, Any]:
        ranks = (logical_rank(self, in_dims[0]), logical_rank(other, in_dims[1]))
        fits = ranks == (left, right) and self.dtype is other.dtype
        if fits and left == 3:
            # Where `matmul` would broadcast.
            a, b = logical_sizes(self, in_dims[0]), logical_sizes(other, in_dims[1])
            fits = a[0] == b[0]
        if not fits:
            for_one(call, in_dims, (self, other))
        return matmul(info, in_dims, self, other)

    return rule


def vdot(info: Any, in_dims: Dims, self: Tensor, other: Tensor) -> tuple[Any, Any]:
    conjugate = C.call_conj_physical(self) if self.dtype.is_complex else self
    return _same_ranks(C.call_vdot, 1, 1)(info, in_dims, conjugate, other)


def _adjoint(tensor: Tensor, dim: int | None) -> tuple[Tensor, int | None]:
    """With the last two logical dimensions swapped, conjugated."""
    return F.mH(to_front(tensor, dim)), None if dim is None else 0


def matmul_nh(info: Any, in_dims: Dims, self: Tensor, other: Tensor) -> tuple[Any, Any]:
    turned, dim = _adjoint(other, in_dims[1])
    return matmul(info, (in_dims[0], dim), self, turned)


def matmul_hn(info: Any, in_dims: Dims, self: Tensor, other: Tensor) -> tuple[Any, Any]:
    turned, dim = _adjoint(self, in_dims[0])
    return matmul(info, (dim, in_dims[1]), turned, other)


def addmm(
    info: Any,
    in_dims: Dims,
    self: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    beta: Any,
    alpha: Any,
) -> tuple[Any, Any]:
    ranks = (logical_rank(mat1, in_dims[1]), logical_rank(mat2, in_dims[2]))
    if ranks != (2, 2) or self.dtype is not mat2.dtype or mat1.dtype is not mat2.dtype:
        for_one(C.call_addmm, (*in_dims[:3], None, None), (self, mat1, mat2, beta, alpha))
    if in_dims[1] is None and in_dims[2] is None:
        product = C.call_mm(mat1, mat2)
        sizes = sizes_of(product)
    else:
        product, _ = matmul(info, in_dims[1:3], mat1, mat2)
        sizes = sizes_of(product)[1:]
    check_expands(logical_sizes(self, in_dims[0]), sizes)
    if self.dtype.category < FLOATING:
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        product = C.call_mul_Scalar(product, alpha)
    if beta != 0:
        added = self if beta == 1 else C.call_mul_Scalar(self, beta)
        return C.call_add_Tensor(padded(added, in_dims[0], 2), product), 0
    if in_dims[1] is None and in_dims[2] is None:
        return product, None
    return product, 0


def linear(
    info: Any, in_dims: Dims, input: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Any, Any]:
    """`input` @ `weight`^T + `bias`: at once if all that is mapped is the input."""
    input_dim, weight_dim, bias_dim = in_dims
    if weight_dim is None and bias_dim is None and (bias is None or bias.ndim == 1):
        return C.call_linear(moved(input, input_dim, 0), weight, bias), 0
    rank, weight_rank = logical_rank(input, input_dim), logical_rank(weight, weight_dim)
    if rank == 0 or weight_rank not in (1, 2) or (weight_rank == 1 and bias is not None):
        for_one(C.call_linear, in_dims, (input, weight, bias))
    if weight_rank == 1:
        return matmul(info, in_dims[:2], input, weight)
    if weight_dim is None and input_dim is None:
        product = C.call_linear(input, weight, None)
    else:
        turned = C.call_transpose_int(to_front(weight, weight_dim), -2, -1)
        dim = None if weight_dim is None else 0
        product, _ = matmul(info, (input_dim, dim), input, turned)
    if bias is None:
        return product, 0
    return C.call_add_Tensor(product, padded(bias, bias_dim, rank)), 0


RULES: Final[dict[str, Rule]] = {
    "_matmul_hn": matmul_hn,
    "_matmul_nh": matmul_nh,
    "addmm": addmm,
    "bmm": _same_ranks(C.call_bmm, 3, 3),
    "dot": _same_ranks(C.call_dot, 1, 1),
    "linear": linear,
    "matmul": matmul,
    "mm": _same_ranks(C.call_mm, 2, 2),
    "mv": _same_ranks(C.call_mv, 2, 1),
    "vdot": vdot,
}
