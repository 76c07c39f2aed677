"""Linear systems with vectors, inverses and powers, based on the solution of A @ X = B.

A backend without its own solver uses the host's.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.matrix_errors import check_info, matrix_error
from plugrad.errors import LinAlgError
from plugrad.memory_format import contiguous_format
from plugrad.ops.prepare import linear_systems as prepare
from plugrad.ops.prepare.linear_systems import check_square, check_square_shape
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _to_device(array: Any, like: TensorBase) -> TensorBase:
    return from_host(np.asarray(array, like.dtype.numpy), like.dtype, like.device)


def solve_on_host(A: TensorBase, B: TensorBase) -> TensorBase:
    prepare.solve(A, B)
    try:
        return _to_device(np.linalg.solve(host_array(A), host_array(B)), A)
    except np.linalg.LinAlgError:
        check_info(_zeros_of_factor(A), "linalg.solve")
        raise matrix_error("linalg.solve", 1) from None


def _zeros_of_factor(A: TensorBase) -> Any:
    """For each matrix, the number of the first zero on the diagonal of its factor U, or 0."""
    # Seldom needed, and loaded on demand.
    factorizations: Any = importlib.import_module("plugrad.ops.on_demand.factorizations.lu")
    return factorizations.lu_factor(host_array(A))[2]


def det_on_host(A: TensorBase) -> TensorBase:
    prepare.det(A)
    return _to_device(np.linalg.det(host_array(A)), A)


def solve(A: Tensor, B: Tensor, left: bool) -> Tensor:
    check_square(A, "linalg.solve")
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and sizes_of(B) == sizes_of(A)[:-1]):
        if not left:
            rows, columns = sizes_of(A)[-1], sizes_of(B)[-1]
            raise RuntimeError(
                "linalg.solve: Incompatible shapes of A and B for the equation XA = B "
                f"({rows}x{rows} and {columns}x1)"
            )
        # Not what the node keeps: writes to the result would go unnoticed.
        solution = C.call_clone(F._linalg_solve(A, B.unsqueeze(-1)), contiguous_format)
        return C.call__unsafe_view(solution, sizes_of(solution)[:-1])
    if left:
        return F._linalg_solve(A, B)
    turned = F._linalg_solve(A.transpose(-2, -1), B.transpose(-2, -1)).transpose(-2, -1)
    return C.call_clone(turned, contiguous_format)


def inv(A: Tensor) -> Tensor:
    prepare.inv(A)
    try:
        return F._linalg_solve(A, F.eye(sizes_of(A)[-1], dtype=A.dtype, device=A.device))
    except LinAlgError:
        check_info(_zeros_of_factor(A), "linalg.inv")
        raise


def inverse(self: Tensor) -> Tensor:
    return F.linalg_inv(self)


def det(self: Tensor) -> Tensor:
    return F.linalg_det(self)


def logdet(self: Tensor) -> Tensor:
    check_square(self, "logdet")
    return F.log(F.linalg_det(self))


def matrix_power(self: Tensor, n: int) -> Tensor:
    check_square_shape(self, "linalg.matrix_power")
    sizes = sizes_of(self)
    if n == 0:
        # A copy of the identity: the result depends on the matrix as far as the graph is concerned.
        identity = F.eye(sizes[-1], dtype=self.dtype, device=self.device)
        return self.clone().copy_(identity)
    factor = F.linalg_inv(self) if n < 0 else self
    result: Tensor | None = None
    left = abs(n)
    # By squaring: the power is a product of factor ** (2 ** k).
    while left > 0:
        if left % 2 == 1:
            result = factor if result is None else F.matmul(result, factor)
        left //= 2
        if left > 0:
            factor = F.matmul(factor, factor)
    assert result is not None
    return result.clone() if n == 1 else result
