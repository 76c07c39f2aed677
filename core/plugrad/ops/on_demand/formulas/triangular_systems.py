"""Gradients of solutions of triangular systems."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def triangle(X: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """The elements that a triangular matrix takes from X."""
    if upper:
        return X.triu(1 if unitriangular else 0)
    return X.tril(-1 if unitriangular else 0)


def solve_triangular_backward(
    grad: Tensor,
    A: Tensor,
    X: Tensor,
    upper: bool,
    left: bool,
    unitriangular: bool,
    mask: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None]:
    """gB = A^-H gX; gA is the triangle of -gB X^H. From the right, gX A^-H and -X^H gB."""
    gB = F.linalg_solve_triangular(
        F.mH(A), grad, upper=not upper, left=left, unitriangular=unitriangular
    )
    if not mask[0]:
        return None, gB
    gA = F.matmul(gB, F.mH(X)) if left else F.matmul(F.mH(X), gB)
    return triangle(-gA, upper, unitriangular), gB


def cholesky_solve_backward(
    grad: Tensor, factor: Tensor, X: Tensor, upper: bool, mask: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None]:
    """gB = A^-H gX and gA = -gB X^H; gL = (gA + gA^H) L, and gU = U (gA + gA^H)."""
    gB = F.cholesky_solve(grad, factor, upper)
    if not mask[1]:
        return gB, None
    gA = F.matmul(gB, F.mH(X))
    return gB, _toward_factor(-(gA + F.mH(gA)), factor, upper)


def cholesky_inverse_backward(grad: Tensor, factor: Tensor, upper: bool, result: Tensor) -> Tensor:
    """gA = -A^-H gX A^-H, and the factor's as above."""
    middle = F.matmul(F.matmul(result, grad + F.mH(grad)), result)
    return _toward_factor(-middle, factor, upper)


def _toward_factor(twice: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """All elements, as PyTorch gives them: those outside the triangle do not count."""
    return F.matmul(factor, twice) if upper else F.matmul(twice, factor)
