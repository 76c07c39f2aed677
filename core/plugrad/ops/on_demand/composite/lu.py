"""LU and LDL decompositions under their public names, and on the host."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import int32, int64
from plugrad.ops.on_demand.composite.decompositions import named, to_device
from plugrad.ops.on_demand.factorizations import ldl, lu
from plugrad.ops.on_demand.formulas.decompositions import column_range, row_range
from plugrad.ops.on_demand.prepare import lu as prepare
from plugrad.ops.on_demand.prepare.triangular_systems import check_right_side
from plugrad.ops.prepare.linear_systems import check_square
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def lu_factor_on_host(A: TensorBase, pivot: bool) -> Any:
    prepare.lu_factor(A, pivot)
    factors, pivots, info = lu.lu_factor(host_array(A), pivot)
    return to_device(factors, A), to_device(pivots, A, int32), to_device(info, A, int32)


def lu_factor_ex(A: Tensor, pivot: bool, check_errors: bool) -> Any:
    factors, pivots, info = F._linalg_lu_factor(A, pivot)
    if check_errors:
        info = F._check_matrices(info, "linalg.lu_factor_ex")
    return named("linalg_lu_factor_ex", factors, pivots, info)


def lu_factor(A: Tensor, pivot: bool) -> Any:
    factors, pivots, info = F._linalg_lu_factor(A, pivot)
    F._check_matrices(info, "linalg.lu_factor")
    return named("linalg_lu_factor", factors, pivots)


def lu_with_info(self: Tensor, pivot: bool, check_errors: bool) -> Any:
    factors, pivots, info = F._linalg_lu_factor(self, pivot)
    return factors, pivots, info


def former_lu(self: Tensor, pivot: bool, get_infos: bool) -> Any:
    found = F._lu_with_info(self, pivot, not get_infos)
    return found if get_infos else found[:2]


def linalg_lu(A: Tensor, pivot: bool) -> Any:
    prepare.check_dimensions(A, "linalg.lu")
    factors, pivots, _ = F._linalg_lu_factor(A, pivot)
    L, U = unpacked(factors)
    P = permutation_matrix(pivots, factors) if pivot else factors.new_empty((0,))
    return named("linalg_lu", P, L, U)


def unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L and U, of (*, m, n)."""
    count = min(sizes_of(LU)[-2:])
    left = column_range(LU, 0, count).tril(-1)
    ones = F.eye(sizes_of(LU)[-2], count, dtype=LU.dtype, device=LU.device)
    return left + ones, row_range(LU, 0, count).triu()


def permutation_matrix(pivots: Tensor, LU: Tensor) -> Tensor:
    """P of (*, k) pivots, in the dtype of the factors."""
    rows = sizes_of(LU)[-2]
    order = F._lu_permutation(pivots, rows)
    places = F.arange(rows, device=LU.device).unsqueeze(-1)
    # Row order[j] of P has its one in column j.
    return (places == order.unsqueeze(-2)).to(LU.dtype)


def lu_permutation_on_host(pivots: TensorBase, rows: int) -> TensorBase:
    host = host_array(pivots)
    if host.size and (host.min() < 1 or host.max() > rows):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you "
            "properly pass the result of lu_factor?"
        )
    return to_device(lu.permutation(host, rows), pivots, int64)


def _used_pivots(pivots: Tensor, LU: Tensor) -> Tensor:
    """(*, k) pivots for the (*, m, n) factors, k = min(m, n); more than that are not looked at."""
    *batch, rows, columns = sizes_of(LU)
    count = min(rows, columns)
    if pivots.ndim == 0 or sizes_of(pivots)[-1] < count:
        raise RuntimeError(
            f"lu_unpack: expected LU_pivots to have {count} elements for each matrix of {rows} by "
            f"{columns}, but got a tensor of shape {list(sizes_of(pivots))}"
        )
    return pivots.narrow(-1, 0, count).expand((*batch, count))


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> Any:
    if unpack_pivots:
        prepare.check_pivots(LU_pivots, "torch.lu_unpack")
    prepare.check_dimensions(LU_data, "lu_unpack")
    P = LU_data.new_empty((0,))
    if unpack_pivots:
        P = permutation_matrix(_used_pivots(LU_pivots, LU_data), LU_data)
    if unpack_data:
        L, U = unpacked(LU_data)
    else:
        # Empty, but a part of the graph like those that are not.
        none = LU_data.reshape((-1,)).narrow(0, 0, 0)
        L, U = none.clone(), none.clone()
    return named("lu_unpack", P, L, U)


def lu_solve_by_parts(
    LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool
) -> TensorBase:
    """By a permutation and two triangular systems."""
    prepare.lu_solve(LU, pivots, B, left, adjoint)
    if not left:
        # (X @ A)^H = A^H @ X^H
        return F.mH(lu_solve_by_parts(LU, pivots, F.mH(B), True, not adjoint)).resolve_conj()
    P = permutation_matrix(pivots, LU)
    if adjoint:
        half = F.linalg_solve_triangular(F.mH(LU), B, upper=False)
        last = F.linalg_solve_triangular(F.mH(LU), half, upper=True, unitriangular=True)
        return F.matmul(P, last)
    half = F.linalg_solve_triangular(LU, F.matmul(F.mT(P), B), upper=False, unitriangular=True)
    return F.linalg_solve_triangular(LU, half, upper=True)


def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    return F.linalg_lu_solve(LU_data, LU_pivots, self)


def solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> Any:
    check_square(A, "linalg.solve")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and sizes_of(B) == sizes_of(A)[:-1])
    right = B.unsqueeze(-1) if is_vector else B
    check_right_side(A, right, left, "linalg.solve")
    factors, pivots, info = F._linalg_lu_factor(A, True)
    if check_errors:
        info = F._check_matrices(info, "linalg.solve_ex")
    solution = F.linalg_lu_solve(factors, pivots, right, left=left)
    if is_vector:
        solution = F._unsafe_view(solution, sizes_of(solution)[:-1])
    return named("linalg_solve_ex", solution, info)


def inv_ex(A: Tensor, check_errors: bool) -> Any:
    check_square(A, "linalg.inv")
    factors, pivots, info = F._linalg_lu_factor(A, True)
    if check_errors:
        info = F._check_matrices(info, "linalg.inv_ex")
    identity = F.eye(sizes_of(A)[-1], dtype=A.dtype, device=A.device)
    return named("linalg_inv_ex", F.linalg_lu_solve(factors, pivots, identity), info)


def slogdet_on_host(A: TensorBase) -> Any:
    prepare.slogdet(A)
    array = host_array(A)
    with np.errstate(all="ignore"):
        sign, logabsdet = np.linalg.slogdet(array)
    if not A.dtype.is_complex:  # NumPy gives 1 or -1 for nan, PyTorch 0.
        sign = np.where(np.isnan(logabsdet), array.dtype.type(0), sign)
    found = to_device(sign, A), to_device(logabsdet, A, A.dtype.to_real())
    return named("linalg_slogdet", *found)


def slogdet(self: Tensor) -> Any:
    return named("slogdet", *F.linalg_slogdet(self))


def ldl_factor_on_host(A: TensorBase, hermitian: bool) -> Any:
    prepare.ldl_factor(A, hermitian)
    LD, pivots, info = ldl.ldl_factor(host_array(A), hermitian)
    return to_device(LD, A), to_device(pivots, A, int32), to_device(info, A, int32)


def ldl_factor_ex(self: Tensor, hermitian: bool, check_errors: bool) -> Any:
    LD, pivots, info = F._linalg_ldl_factor(self, hermitian)
    if check_errors:
        info = F._check_matrices(info, "linalg.ldl_factor_ex")
    return named("linalg_ldl_factor_ex", LD, pivots, info)


def ldl_factor(self: Tensor, hermitian: bool) -> Any:
    LD, pivots, info = F._linalg_ldl_factor(self, hermitian)
    F._check_matrices(info, "linalg.ldl_factor")
    return named("linalg_ldl_factor", LD, pivots)


def ldl_solve_on_host(
    LD: TensorBase, pivots: TensorBase, B: TensorBase, hermitian: bool
) -> TensorBase:
    prepare.ldl_solve(LD, pivots, B, hermitian)
    found = ldl.ldl_solve(host_array(LD), host_array(pivots), host_array(B), hermitian)
    return to_device(found, B)
