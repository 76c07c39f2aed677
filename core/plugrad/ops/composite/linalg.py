"""Products that are composed of `mm`, `bmm`, `mv` and `dot`."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, bool_, promote_types
from plugrad.graph.support import overwritten
from plugrad.ops.composite.einsum import contract
from plugrad.ops.composite.elementwise.precision import in_dtype_of, is_narrow, widened
from plugrad.ops.composite.selection import positions
from plugrad.ops.prepare import linalg as prepare
from plugrad.ops.prepare.linalg import (
    check_expands,
    check_same_matrix_dtype,
    raise_cannot_multiply,
)
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import needs_grad, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import check_scalar_fits

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def bmm_by_mm(self: Tensor, mat2: Tensor) -> Tensor:
    checked: Any = prepare.bmm(self, mat2)
    self = checked[0]
    a, b = sizes_of(self), sizes_of(mat2)
    if a[0] == 0:
        return F.empty((0, a[1], b[2]), dtype=self.dtype, device=self.device)
    products = [C.call_mm(self.select(0, i), mat2.select(0, i)) for i in range(a[0])]
    return F.stack(products, 0)


def mv_by_mm(self: Tensor, vec: Tensor) -> Tensor:
    prepare.mv(self, vec)
    return C.call_mm(self, vec.unsqueeze(1)).squeeze(1)


def dot_by_mm(self: Tensor, tensor: Tensor) -> Tensor:
    prepare.dot(self, tensor)
    return C.call_mm(self.unsqueeze(0), tensor.unsqueeze(1)).view(())


def vdot_by_dot(self: Tensor, other: Tensor) -> Tensor:
    prepare.vdot(self, other)
    return C.call_dot(self.conj(), other)


def addmm_by_mm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
    checked: tuple[Any, ...] = prepare.addmm(self, mat1, mat2, beta, alpha)
    return _blend(self, C.call_mm(mat1, mat2), checked[3], checked[4])


def trace(self: Tensor) -> Tensor:
    prepare.trace(self)
    rows, columns = sizes_of(self)
    return positions.read(self, np.arange(min(rows, columns)) * (columns + 1)).sum()


def matmul_nh(self: Tensor, other: Tensor) -> Tensor:
    return F.matmul(self, F.mH(other))


def matmul_hn(self: Tensor, other: Tensor) -> Tensor:
    return F.matmul(F.mH(self), other)


def linear_by_matmul(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    prepare.linear(input, weight, bias)
    product = F.matmul(input, weight.t())
    return product if bias is None else product + bias


def linear_backward_by_matmul(
    input: Tensor, grad_output: Tensor, weight: Tensor, mask: tuple[bool, bool, bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    to_input: Tensor | None = None
    to_weight: Tensor | None = None
    to_bias: Tensor | None = None
    features = sizes_of(weight)[-1]
    if weight.ndim == 1:
        weight = weight.unsqueeze(0)
        grad_output = grad_output.unsqueeze(-1)
        found = linear_backward_by_matmul(input, grad_output, weight, (mask[0], mask[1], False))
        return (found[0], None if found[1] is None else found[1].squeeze(0), None)
    count = 1
    for size in sizes_of(grad_output)[:-1]:
        count *= size
    rows = grad_output.reshape((count, sizes_of(weight)[0]))
    if mask[0]:
        to_input = F.matmul(grad_output, weight.conj())
    if mask[1]:
        to_weight = F.mm(rows.t(), input.reshape((count, features)).conj())
    if mask[2]:
        to_bias = rows.sum(dim=(0,))
    return (to_input, to_weight, to_bias)


def outer(self: Tensor, vec2: Tensor) -> Tensor:
    if self.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self, but got {self.ndim}-D")
    if vec2.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument vec2, but got {vec2.ndim}-D")
    return self.unsqueeze(-1) * vec2


def matmul(self: Tensor, other: Tensor) -> Tensor:
    a = sizes_of(self)
    b = sizes_of(other)
    left = len(a)
    right = len(b)
    if left == 2 and right == 2:
        return C.call_mm(self, other)
    if left == 0 or right == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D"
        )
    if right == 1:
        if left == 1:
            return C.call_dot(self, other)
        if left == 2:
            return C.call_mv(self, other)
        return _fold_left(self, other.unsqueeze(1), a[:-1])
    if left == 1:
        if right == 2:
            return C.call__unsafe_view(C.call_mm(self.unsqueeze(0), other), (b[1],))
        product = _batched(self.unsqueeze(0), other)
        return C.call__unsafe_view(product, (*b[:-2], b[-1]))
    if right == 2:
        return _fold_left(self, other, (*a[:-1], b[1]))
    return _batched(self, other)


def _fold_left(a: Tensor, b: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Many matrices times one: one tall matrix times it."""
    sizes = sizes_of(a)
    rows = 1
    for size in sizes[:-1]:
        rows *= size
    inner = sizes_of(b)[0]
    if sizes[-1] != inner:
        raise_cannot_multiply(rows, sizes[-1], sizes_of(b))
    flat = C.call_mm(a.reshape((rows, sizes[-1])), b)
    return C.call__unsafe_view(flat.contiguous(), shape)


def _batched(a: Tensor, b: Tensor) -> Tensor:
    left = sizes_of(a)
    right = sizes_of(b)
    if len(left) == 3 and len(right) == 3 and left[0] == right[0]:
        return C.call_bmm(a, b)
    batch = broadcast_shapes(left[:-2], right[:-2])
    count = 1
    for size in batch:
        count *= size
    flat = C.call_bmm(
        a.expand((*batch, *left[-2:])).reshape((count, *left[-2:])),
        b.expand((*batch, *right[-2:])).reshape((count, *right[-2:])),
    )
    return C.call__unsafe_view(flat.contiguous(), (*batch, left[-2], right[-1]))


def _blend(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    check_expands(sizes_of(self), sizes_of(product))
    dtype = product.dtype
    check_scalar_fits(beta, dtype)
    check_scalar_fits(alpha, dtype)
    if dtype.category < FLOATING:
        beta, alpha = (bool(beta), bool(alpha)) if dtype is bool_ else (int(beta), int(alpha))
    if alpha != 1:
        product = product * alpha
    return _with_addend(product, self, beta)


def _with_addend(product: Tensor, self: Tensor, beta: Any) -> Tensor:
    if beta == 0:
        # What is multiplied by 0 is not read, but its gradient is 0, not missing.
        return product + self.clone().zero_() if needs_grad(self) else product
    return product + (self if beta == 1 else self * beta)


def _blended(
    self: Tensor, multiply: Any, first: Tensor, second: Tensor, beta: Any, alpha: Any
) -> Tensor:
    """A product and an addend. On the CPU 16-bit floats are rounded once, at the end; hardware of
    other devices multiplies them faster than wider ones."""
    if not is_narrow(self.dtype) or self.device.type != "cpu":
        return _blend(self, multiply(first, second), beta, alpha)
    product = multiply(widened(first), widened(second))
    return in_dtype_of(_blend(widened(self), product, beta, alpha), self)


def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Tensor:
    if self.dtype is not mat.dtype or mat.dtype is not vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{self.dtype.scalar_name}, {mat.dtype.scalar_name}, and {vec.dtype.scalar_name}"
        )
    return _blended(self, F.mv, mat, vec, beta, alpha)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Tensor:
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    check_expands(sizes_of(self), (vec1.numel(), vec2.numel()))
    product = F.outer(vec1, vec2)
    dtype = promote_types(self.dtype, product.dtype)
    if dtype is bool_:
        product = product & bool(alpha)
        return product | (self & bool(beta)) if beta else product
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool):
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if dtype.category < FLOATING and isinstance(factor, float):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
        check_scalar_fits(factor, dtype)
    # Numbers must not widen narrower tensors.
    product, self = product.to(dtype), self.to(dtype)
    if alpha != 1:
        product = product * alpha
    return _with_addend(product, self, beta)


def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    if self.dtype is not batch1.dtype or batch1.dtype is not batch2.dtype:
        names = [CPP_NAMES[given.dtype.name] for given in (self, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: "
            f"{names[2]}"
        )
    if self.dtype is bool_ and F.bmm(batch1, batch2).numel() > 0:
        raise not_implemented("baddbmm", bool_)
    return _blended(self, F.bmm, batch1, batch2, beta, alpha)


def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    if self.dtype is not batch2.dtype:
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{self.dtype.scalar_name} and {batch2.dtype.scalar_name}"
        )
    return _blend(self, F.bmm(batch1, batch2).sum(dim=(0,), dtype=self.dtype), beta, alpha)


def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    # In PyTorch it is the only product that resizes its target.
    former: Any = overwritten(self)
    result = addbmm(former, batch1, batch2, beta, alpha)
    if sizes_of(self) != sizes_of(result):
        target: Any = self  # a method of the class that users see
        target.resize_(*sizes_of(result))
    return self.copy_(result)


def inner(self: Tensor, other: Tensor) -> Tensor:
    if self.ndim == 0 or other.ndim == 0:
        return self * other
    a = sizes_of(self)
    b = sizes_of(other)
    if a[-1] != b[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a)} and {list(b)}"
        )
    return tensordot(self, other, (-1,), (-1,))


def kron(self: Tensor, other: Tensor) -> Tensor:
    ndim = max(self.ndim, other.ndim)
    a = (1,) * (ndim - self.ndim) + sizes_of(self)
    b = (1,) * (ndim - other.ndim) + sizes_of(other)
    left: list[int] = []
    right: list[int] = []
    for i in range(ndim):
        left += [a[i], 1]
        right += [1, b[i]]
    product = self.reshape(tuple(left)) * other.reshape(tuple(right))
    shape = tuple([a[i] * b[i] for i in range(ndim)])
    return C.call__unsafe_view(product.contiguous(), shape)


def tensordot(
    self: Tensor, other: Tensor, dims_self: tuple[int, ...], dims_other: tuple[int, ...]
) -> Tensor:
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    a = sizes_of(self)
    b = sizes_of(other)
    summed_a = [wrap_dim(dim, len(a)) for dim in dims_self]
    summed_b = [wrap_dim(dim, len(b)) for dim in dims_other]
    count = 1
    for position in range(len(summed_a)):
        i = summed_a[position]
        j = summed_b[position]
        if a[i] != b[j] and a[i] != 1 and b[j] != 1:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a[i]} in dim "
                f"{dims_self[position]} and second has size {b[j]} in dim {dims_other[position]}"
            )
        # A dimension of size 1 broadcasts, so the other tensor is summed along it beforehand.
        if a[i] == 1 and b[j] != 1:
            other = other.sum(dim=(j,), keepdim=True, dtype=other.dtype)
        elif b[j] == 1 and a[i] != 1:
            self = self.sum(dim=(i,), keepdim=True, dtype=self.dtype)
        count *= a[i] if a[i] == b[j] else 1
    kept_a = [i for i in range(len(a)) if i not in summed_a]
    kept_b = [j for j in range(len(b)) if j not in summed_b]
    rows = 1
    for i in kept_a:
        rows *= a[i]
    columns = 1
    for j in kept_b:
        columns *= b[j]
    check_same_matrix_dtype(self, other)
    left = self.permute((*kept_a, *summed_a)).reshape((rows, count))
    right = other.permute((*summed_b, *kept_b)).reshape((count, columns))
    return F.mm(left, right).reshape(tuple([a[i] for i in kept_a] + [b[j] for j in kept_b]))


def einsum(equation: str, tensors: list[Tensor], path: Any) -> Tensor:
    return contract(equation, tensors, path)


def cross(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    if dim is None:
        sizes = sizes_of(self)
        if 3 not in sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes.index(3)
    return linalg_cross(self, other, dim)


def linalg_cross(self: Tensor, other: Tensor, dim: int) -> Tensor:
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    wrap_dim(dim, self.ndim)
    lengths = (sizes_of(self)[dim], sizes_of(other)[dim])
    if lengths != (3, 3):
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {lengths[0]} and "
            f"{lengths[1]}"
        )
    forward = F.roll(self, -1, dim) * F.roll(other, -2, dim)
    result: Tensor = forward - F.roll(self, -2, dim) * F.roll(other, -1, dim)
    return result
