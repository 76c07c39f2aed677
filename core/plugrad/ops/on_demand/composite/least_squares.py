"""Least squares under its public name, and composed of matrix decompositions."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import bool_, finfo, int64
from plugrad.memory_format import contiguous_format
from plugrad.ops.composite.conditions import holds_everywhere
from plugrad.ops.on_demand.composite.decompositions import named
from plugrad.ops.on_demand.prepare import least_squares as prepare
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def lstsq(self: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> Any:
    prepare.check_arguments(self, b, driver)
    rows, columns = sizes_of(self)[-2:]
    is_vector = prepare.is_vector(self, b)
    right: Any = b.unsqueeze(-1) if is_vector else b
    if b.ndim < self.ndim and not is_vector:
        # PyTorch takes it for a batch of vectors first, and has as many solutions.
        batch = broadcast_shapes(sizes_of(self)[:-2], sizes_of(b)[:-1])
        right = b.expand((*batch, *sizes_of(b)[-2:]))
    limit = finfo(self.dtype).eps * max(rows, columns) if rcond is None else rcond
    solution, residuals, rank, values = F._linalg_lstsq(self, right, limit, driver or "gelsy")
    if is_vector:
        # Not what the node keeps: writes to the result would go unnoticed.
        solution = F.clone(solution, memory_format=contiguous_format)
        solution = F._unsafe_view(solution, sizes_of(solution)[:-1])
    if needs_grad(values):
        # They have no derivative.
        values = values.detach()
    for dim, size in enumerate(sizes_of(self)[:-2]):
        # One of each matrix, where several right sides share it.
        if size == 1 and driver != "gels":
            rank = F.narrow_copy(rank, dim, 0, 1)
            if driver in ("gelsd", "gelss"):
                values = F.narrow_copy(values, dim, 0, 1)
    return named("linalg_lstsq", solution, residuals, rank, values)


def lstsq_by_parts(A: TensorBase, B: TensorBase, rcond: float, driver: str) -> Any:
    """By QR for "gels", and else by singular values."""
    prepare.lstsq(A, B, rcond, driver)
    rows, columns = sizes_of(A)[-2:]
    batch = broadcast_shapes(sizes_of(A)[:-2], sizes_of(B)[:-2])
    matrix: Any = A
    matrix = matrix.expand((*batch, rows, columns))
    right: Any = B
    real = A.dtype.to_real() if A.dtype.is_complex else A.dtype
    none = F.empty((0,), dtype=real, device=A.device)
    if matrix.numel() == 0 or (right.numel() == 0 and driver in ("gels", "gelsy")):
        count = min(rows, columns)
        solution = right.new_zeros((*batch, columns, sizes_of(B)[-1]))
        rank: Any = F.zeros(batch, dtype=int64, device=A.device)
        values: Any = F.zeros((*batch, count), dtype=real, device=A.device)
    elif driver == "gels":
        solution, rank, values = _by_qr(matrix, right), None, none
    else:
        solution, rank, values = _by_svd(matrix, right, _limit(A, rcond, driver))
    residuals = none
    wanted = rows > columns and driver != "gelsy"
    # Ranks are read only where something depends on it, so that the rest can be traced.
    if wanted and (driver == "gels" or holds_everywhere(rank == columns)):
        distance = F.abs(F.matmul(matrix, solution) - right)
        residuals = F.sum(distance * distance, -2)
    if driver == "gels":
        rank = F.empty((0,), dtype=int64, device=A.device)
        if residuals is not none:
            # LAPACK does not look at the right sides of a matrix of zeros.
            something = F.any(F.ne(matrix, 0).flatten(-2), -1, True)
            residuals = F.where(something, residuals, 0)
    return solution, residuals, rank, values if driver in ("gelsd", "gelss") else none.clone()


def _limit(A: TensorBase, rcond: float, driver: str) -> float:
    """What singular values count as zero up to, relative to the greatest, as LAPACK reads it."""
    if rcond < 0 or (driver == "gelsd" and not 0 < rcond < 1):
        return 0.0 if driver == "gelsy" else finfo(A.dtype).eps
    return rcond


def _by_svd(A: Any, B: Any, limit: float) -> tuple[Any, Any, Any]:
    left, values, right_h = F._linalg_svd(A, False, True)
    kept = F.gt(values, values.narrow(-1, 0, 1) * limit)
    inverted = F.where(kept, F.reciprocal(F.where(kept, values, 1)), 0)
    inside = F.matmul(F.mH(left), B) * inverted.unsqueeze(-1).to(A.dtype)
    return F.matmul(F.mH(right_h), inside), F.sum(kept, -1), values


def _by_qr(A: Any, B: Any) -> Any:
    """LinAlgError if a matrix does not have full rank; one of zeros has the solution zero."""
    rows, columns = sizes_of(A)[-2:]
    Q, R = F.linalg_qr(A if rows >= columns else F.mH(A))
    # Rounding leaves no exact zero of a column that depends on those before it.
    size = F.amax(F.abs(A), (-2 if rows >= columns else -1,))
    limit = 2 * math.sqrt(max(rows, columns)) * finfo(A.dtype).eps
    missing = F.le(F.abs(F.diagonal(R, 0, -2, -1)), size * limit)
    first = F.add(F.argmax(missing.to(int64), -1), 1)
    nothing = F.logical_not(F.any(size.to(bool_), -1))
    full = F.logical_or(F.logical_not(F.any(missing, -1)), nothing)
    F._check_matrices(F.where(full, 0, first), "torch.linalg.lstsq")
    if rows >= columns:
        solution = F.linalg_solve_triangular(R, F.matmul(F.mH(Q), B), upper=True)
    else:
        solution = F.matmul(Q, F.linalg_solve_triangular(F.mH(R), B, upper=False))
    return F.where(nothing.unsqueeze(-1).unsqueeze(-1), 0, solution)
