"""Functions of matrices that use singular values, eigenvalues and inverses."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, finfo, int64
from plugrad.ops.on_demand.prepare import matrix_functions as prepare
from plugrad.ops.prepare.linear_systems import check_square_shape
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _check_limit(limit: TensorBase | None, function: str, name: str) -> None:
    if limit is not None and limit.dtype.is_complex:
        raise RuntimeError(
            f"torch.linalg.{function}: {name} tensor of complex type is not supported. Got "
            f"{limit.dtype.scalar_name}"
        )


def _limits(A: Tensor, atol: Any, rtol: Any, function: str) -> tuple[Any, Any]:
    """Both limits of singular values as tensors."""
    real = A.dtype.to_real() if A.dtype.is_complex else A.dtype
    _check_limit(atol, function, "atol")
    _check_limit(rtol, function, "rtol")
    absolute = F.zeros((), dtype=real, device=A.device) if atol is None else atol
    if rtol is not None:
        return absolute, rtol
    default = finfo(real).eps * max(sizes_of(A)[-2:])
    relative = F.full((), default, dtype=real, device=A.device)
    if atol is not None:
        relative = F.where(atol > 0, F.zeros_like(relative), relative)
    return absolute, relative


def _limit(A: Tensor, value: float | None) -> Any:
    if value is None:
        return None
    real = A.dtype.to_real() if A.dtype.is_complex else A.dtype
    kind = real if real.is_floating_point else None
    return F.full((), float(value), dtype=kind, device=A.device)


def _threshold(values: Any, atol: Any, rtol: Any) -> Any:
    """What singular values count as 0 up to; they are along the last dimension."""
    greatest = F.amax(values, (-1,), True)
    return F.maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * greatest)


def _check_pinv(A: Tensor) -> None:
    category = A.dtype.category
    if A.ndim < 2 or category < FLOATING or A.dtype.itemsize == 2:
        sizes = ", ".join(str(size) for size in sizes_of(A))
        raise RuntimeError(
            f"linalg.pinv({A.dtype.scalar_name}{{[{sizes}]}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )


def pinv(self: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> Any:
    _check_pinv(self)
    absolute, relative = _limits(self, atol, rtol, "pinv")
    sizes = sizes_of(self)
    if self.numel() == 0:
        shape = (*sizes[:-2], sizes[-1], sizes[-2])
        return F.zeros(shape, dtype=self.dtype, device=self.device)
    values: Any
    if hermitian:
        values, vectors = F.linalg_eigh(self)
        size = F.abs(values)
        left, right = vectors, vectors
    else:
        left, values, right_h = F.linalg_svd(self, False)
        size = values
        right = F.mH(right_h)
    kept = F.gt(size, _threshold(size, absolute, relative))
    inverted = F.where(kept, F.reciprocal(F.where(kept, values, 1)), 0)
    scaled = right * inverted.unsqueeze(-2).to(self.dtype)
    return F.matmul(scaled, F.mH(left))


def pinv_of_numbers(self: Tensor, atol: float | None, rtol: float | None, hermitian: bool) -> Any:
    _check_pinv(self)
    limits = {"atol": _limit(self, atol), "rtol": _limit(self, rtol)}
    return _tensor_pinv(self, limits["atol"], limits["rtol"], hermitian)


def _tensor_pinv(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    op: Any = F.linalg_pinv
    # Tensors choose the overload.
    absolute, relative = _limits(A, atol, rtol, "pinv")
    return op(A, atol=absolute, rtol=relative, hermitian=hermitian)


def pinv_rcond(self: Tensor, rcond: float, hermitian: bool) -> Any:
    return pinv_of_numbers(self, 0.0, rcond, hermitian)


def pinv_rcond_only(self: Tensor, rcond: float) -> Any:
    return pinv_of_numbers(self, 0.0, rcond, False)


def pinv_rcond_tensor(self: Tensor, rcond: Tensor, hermitian: bool) -> Any:
    _check_pinv(self)
    return _tensor_pinv(self, None, rcond, hermitian)


def rank(input: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> Any:
    if input.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if input.dtype.category < FLOATING or input.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    absolute, relative = _limits(input, atol, rtol, "matrix_rank")
    A = input.detach()
    if hermitian:
        check_square_shape(A, "linalg.eigh")
    if A.numel() == 0:
        return F.zeros(sizes_of(A)[:-2], dtype=int64, device=A.device)
    values = F.abs(F.linalg_eigvalsh(A)) if hermitian else F.linalg_svdvals(A)
    return F.sum(F.gt(values, _threshold(values, absolute, relative)), -1)


def rank_of_numbers(self: Tensor, atol: float | None, rtol: float | None, hermitian: bool) -> Any:
    return rank(self, _limit(self, atol), _limit(self, rtol), hermitian)


def rank_tol(self: Tensor, tol: float, hermitian: bool) -> Any:
    return rank(self, _limit(self, tol), _limit(self, 0.0), hermitian)


def rank_tol_tensor(input: Tensor, tol: Tensor, hermitian: bool) -> Any:
    return rank(input, tol, _limit(input, 0.0), hermitian)


def cond(self: Tensor, p: Any) -> Any:
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if isinstance(p, complex):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or p == 2 or p == -2:
        if self.numel() == 0:
            real = self.dtype.to_real() if self.dtype.is_complex else self.dtype
            return F.zeros(sizes_of(self)[:-2], dtype=real, device=self.device)
        values = F.linalg_svdvals(self)
        greatest, least = values.select(-1, 0), values.select(-1, -1)
        return least / greatest if p == -2 else greatest / least
    known = p in ("fro", "nuc") if isinstance(p, str) else abs(p) in (1, math.inf)
    if not isinstance(p, str) and not known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square_shape(self, f"linalg.cond(ord={p})")
    if not known:
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if self.numel() == 0:
        real = self.dtype.to_real() if self.dtype.is_complex else self.dtype
        return F.zeros(sizes_of(self)[:-2], dtype=real, device=self.device)
    inverse, info = F.linalg_inv_ex(self)
    product = matrix_norm(self, p) * matrix_norm(inverse, p)
    return F.where(F.ne(info, 0), math.inf, product)


def matrix_norm(A: Any, order: Any) -> Any:
    """A norm of the matrices along the last two dimensions."""
    if order == "nuc":
        return F.sum(F.linalg_svdvals(A), -1)
    if order == "fro":
        return F.linalg_vector_norm(A, 2, (-2, -1))
    sums = F.sum(F.abs(A), -2 if abs(order) == 1 else -1)
    return F.amax(sums, (-1,)) if order > 0 else F.amin(sums, (-1,))


def matrix_exp(self: Tensor) -> Any:
    return F.linalg_matrix_exp(self)


# With a norm of at most 1, the terms from here on are below the precision of float64.
_TERMS: Final = 20


def matrix_exp_on_host(self: Tensor) -> Any:
    """By Taylor's series of the matrix divided by a power of 2, which is then squared."""
    prepare.matrix_exp(self)
    given = np.asarray(host_array(self))
    wide = np.complex128 if self.dtype.is_complex else np.float64
    a = given.astype(wide)
    if a.size == 0:
        return F.zeros(sizes_of(self), dtype=self.dtype, device=self.device)
    if a.shape[-1] == 1:
        with np.errstate(all="ignore"):
            number = np.exp(a).astype(self.dtype.numpy)
        return from_host(number, self.dtype, self.device)
    with np.errstate(all="ignore"):
        size = np.abs(a).sum(-2).max(-1)
        finite = np.isfinite(size)
        halvings = np.ceil(np.log2(np.where(finite & (size > 1), size, 1))).astype(np.int64)
        a = a / np.exp2(halvings)[..., None, None]
        term: Any = np.broadcast_to(np.eye(a.shape[-1], dtype=wide), a.shape)
        total = term.copy()
        for k in range(1, _TERMS + 1):
            term = term @ a / k
            total = total + term
        for k in range(int(halvings.max())):
            more = (halvings > k)[..., None, None]
            total = np.where(more, total @ total, total)
    return from_host(np.asarray(total, self.dtype.numpy), self.dtype, self.device)


def tensorinv(self: Tensor, ind: int) -> Any:
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    sizes = sizes_of(self)
    rows, columns = math.prod(sizes[:ind]), math.prod(sizes[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return F.linalg_inv(self.reshape((rows, columns))).reshape((*sizes[ind:], *sizes[:ind]))


def tensorsolve(self: Tensor, b: Tensor, dims: Sequence[int] | None) -> Any:
    A: Any = self
    if dims is not None:
        moved = [wrap_dim(dim, self.ndim) for dim in dims]
        A = A.movedim(moved, list(range(self.ndim - len(moved), self.ndim)))
    sizes = sizes_of(A)
    rest = sizes[b.ndim :]
    rows, columns = math.prod(sizes[: b.ndim]), math.prod(rest)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    flat = F.linalg_solve(A.reshape((rows, columns)), b.reshape((-1,)))
    return flat.reshape(rest)


def diagonal(A: Tensor, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal(A, offset, dim1, dim2)


def nuclear_norm(self: Tensor, keepdim: bool) -> Any:
    return nuclear_norm_along(self, (-2, -1), keepdim)


def nuclear_norm_along(self: Tensor, dim: Sequence[int], keepdim: bool) -> Any:
    name = "linalg.matrix_norm"
    if self.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (wrap_dim(place, self.ndim) for place in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({rows}, {columns})")
    found = F.sum(F.linalg_svdvals(F.movedim(self, (rows, columns), (-2, -1))), -1)
    if keepdim:
        for place in sorted((rows, columns)):
            found = found.unsqueeze(place)
    return found


def frobenius_norm(self: Tensor, dim: Sequence[int], keepdim: bool) -> Any:
    return F.linalg_vector_norm(self, 2, dim, keepdim)
