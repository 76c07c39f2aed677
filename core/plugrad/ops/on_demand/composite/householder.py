"""Products of Householder reflections, as matrix products.

With the vectors v_i of all k reflections 1 - tau_i v_i v_i^H as columns of V, their product is
1 - V T V^H, where T is upper triangular: T = (1 + D U)^-1 D, with D = diag(tau) and U the part of
V^H V above the diagonal.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.decompositions import column_range, row_range
from plugrad.ops.on_demand.prepare.decompositions import check_kernel_dtype
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def check_reflections(A: TensorBase, tau: TensorBase, name: str) -> None:
    """RuntimeError unless `tau` belongs to the columns of `A`."""
    sizes, factors = sizes_of(A), sizes_of(tau)
    if len(sizes) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not factors:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if name == "linalg.householder_product":
        if sizes[-2] < sizes[-1]:
            raise RuntimeError(
                f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
            )
        if sizes[-1] < factors[-1]:
            raise RuntimeError(
                f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
            )
    if len(factors) != len(sizes) - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {len(factors)} and input.ndim is equal to {len(sizes)}"
        )
    if factors[:-1] != sizes[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(factors[:-1])}"
        )


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    name = "linalg.householder_product"
    check_reflections(input, tau, name)
    if input.dtype is not tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype "
            f"{input.dtype.scalar_name}"
        )
    check_kernel_dtype(input.dtype, "orgqr_cpu")
    rows, columns = sizes_of(input)[-2:]
    V, T = _block_form(input, tau)
    first = F.mH(row_range(V, 0, columns))
    return F.eye(rows, columns, dtype=input.dtype, device=input.device) - V @ (T @ first)


def orgqr(self: Tensor, input2: Tensor) -> Tensor:
    return F.linalg_householder_product(self, input2)


def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Tensor:
    name = "ormqr"
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input3.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    side = -2 if left else -1
    rows, other = sizes_of(self), sizes_of(input3)
    if other[side] < (sizes_of(input2) or (0,))[-1]:
        raise RuntimeError(
            f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]"
        )
    if other[side] != rows[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    check_reflections(self, input2, name)
    if sizes_of(input2)[-1] > rows[-1]:
        raise RuntimeError(f"{name}: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if len(other) != len(rows):
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {len(other)} and input.ndim is equal to {len(rows)}"
        )
    if other[:-2] != rows[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(other[:-2])}"
        )
    for what, tensor in (("tau", input2), ("other", input3)):
        if tensor.dtype is not self.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype "
                f"{self.dtype.scalar_name} and {what} has dtype {tensor.dtype.scalar_name}"
            )
    check_kernel_dtype(self.dtype, "ormqr_cpu")
    V, T = _block_form(self, input2)
    if transpose:
        T = F.mH(T)
    if left:
        return input3 - V @ (T @ (F.mH(V) @ input3))
    return input3 - ((input3 @ V) @ T) @ F.mH(V)


def _block_form(A: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T, of (*, m, n) and (*, k)."""
    rows, count = sizes_of(A)[-2], sizes_of(tau)[-1]
    ones = F.eye(rows, count, dtype=A.dtype, device=A.device)
    V = column_range(A, 0, count).tril(-1) + ones
    between = (F.mH(V) @ V).triu(1)
    small = F.eye(count, dtype=A.dtype, device=A.device)
    factors = tau.unsqueeze(-1)
    T = F.linalg_solve_triangular(
        factors * between + small, factors * small, upper=True, unitriangular=True
    )
    return V, T
