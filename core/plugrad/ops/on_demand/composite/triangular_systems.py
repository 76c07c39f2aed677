"""Systems that reduce to one or two triangular ones, and the host's solver for those."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import int64
from plugrad.ops.on_demand.composite.decompositions import named, to_device
from plugrad.ops.on_demand.factorizations.triangular import solve_triangular
from plugrad.ops.on_demand.prepare import triangular_systems as prepare
from plugrad.ops.on_demand.prepare.decompositions import check_kernel_dtype
from plugrad.ops.prepare.linear_systems import check_square_shape
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.interop.arrays import host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def solve_triangular_on_host(
    self: TensorBase, B: TensorBase, upper: bool, left: bool, unitriangular: bool
) -> TensorBase:
    prepared: Any = prepare.solve_triangular(self, B, upper, left, unitriangular)
    host = solve_triangular(host_array(self), host_array(prepared[1]), upper, left, unitriangular)
    return to_device(host, self)


def triangular_solve(
    self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> Any:
    prepare.check_former(self, A, "triangular_solve", "triangular_solve_cpu")
    factor = A.transpose(-2, -1) if transpose else A
    solution = F.linalg_solve_triangular(
        factor, self, upper=upper != transpose, unitriangular=unitriangular
    )
    batch = broadcast_shapes(sizes_of(A)[:-2], sizes_of(self)[:-2])
    sizes = (*batch, *sizes_of(A)[-2:])
    # A copy; nothing of the right side is added, so that both results require grad if it does.
    copied = F.cat([A.expand(*sizes).reshape((-1,)), self.reshape((-1,)).narrow(0, 0, 0)])
    return named("triangular_solve", solution, F._unsafe_view(copied, sizes))


def cholesky_solve(self: Tensor, input2: Tensor, upper: bool) -> Tensor:
    prepare.check_former(self, input2, "cholesky_solve", "cholesky_solve_cpu")
    return _solve(self, input2, upper)


def _solve(B: Tensor, factor: Tensor, upper: bool) -> Tensor:
    first, second = (F.mH(factor), factor) if upper else (factor, F.mH(factor))
    half = F.linalg_solve_triangular(first, B, upper=False)
    return F.linalg_solve_triangular(second, half, upper=True)


def cholesky_inverse(self: Tensor, upper: bool) -> Tensor:
    check_square_shape(self, "cholesky_inverse")
    check_kernel_dtype(self.dtype, "cholesky_inverse_out_cpu")
    zero = F.eq(F.diagonal(self, 0, -2, -1), 0)
    if sizes_of(self)[-1]:
        first = F.add(F.argmax(zero.to(int64), -1), 1)
        F._check_matrices(F.where(F.any(zero, -1), first, 0), "cholesky_inverse")
    identity = F.eye(sizes_of(self)[-1], dtype=self.dtype, device=self.device)
    return _solve(identity, self, upper)
