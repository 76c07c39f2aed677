"""Tangents of solutions of triangular systems."""

# mypy: disable-error-code="index"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.triangular_systems import triangle

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def solve_triangular_tangent(
    dA: Tensor, A: Tensor, X: Tensor, upper: bool, left: bool, unitriangular: bool
) -> Any:
    change = triangle(dA, upper, unitriangular)
    moved = F.matmul(change, X) if left else F.matmul(X, change)
    return -F.linalg_solve_triangular(A, moved, upper=upper, left=left, unitriangular=unitriangular)


def _of_product(d_factor: Tensor, factor: Tensor, upper: bool) -> Any:
    """The tangent of A, which is the product of the factor and its adjoint."""
    half = F.matmul(F.mH(d_factor), factor) if upper else F.matmul(d_factor, F.mH(factor))
    return half + F.mH(half)


def cholesky_solve_tangent(d_factor: Tensor, factor: Tensor, X: Tensor, upper: bool) -> Any:
    return -F.cholesky_solve(F.matmul(_of_product(d_factor, factor, upper), X), factor, upper)


def cholesky_inverse_tangent(d_factor: Tensor, factor: Tensor, upper: bool, result: Tensor) -> Any:
    return -F.matmul(F.matmul(result, _of_product(d_factor, factor, upper)), result)
