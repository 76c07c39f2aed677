"""Kernels of linear systems: LU, what is solved through it, inverses and determinants.

Batches of matrices, and small ones, are factorized in `plugrad_cuda.fused.lu`; large ones here, by
cuSOLVER. Triangular systems are cuBLAS'.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad_cuda.kernels.family import Family
from plugrad_cuda.kernels.namespace import Array, Kernel

_WRONG_PIVOTS = (
    "Pivots given to lu_solve must all be {}. Did you properly pass the result of lu_factor?"
)


class LinearSystems(Family):
    """The host finds singular matrices: the matrix of the batch, and how far the factorization
    proceeded."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "_check_matrices": self.check_matrices,
            "_linalg_lu_factor": self.lu_factor,
            "_lu_permutation": self.lu_permutation,
            "linalg_lu_solve": self.lu_solve,
            "linalg_solve_triangular": self.solve_triangular,
            "_linalg_solve": self.solve,
            "linalg_inv": self.inv,
            "linalg_det": self.det,
            "linalg_slogdet": self.slogdet,
        }

    def check_matrices(self, info: Array, name: str) -> Any:
        return NotImplemented if self.any_of(info != 0) else info

    def any_of(self, wrong: Array) -> bool:
        """Whether something is wrong, as far as the host may wait for that."""
        return wrong.size > 0 and self.ns.may_wait() and bool(self.xp.any(wrong))

    def lu_factor(self, a: Array, pivot: bool) -> Any:
        if a.size == 0 or not pivot:
            return NotImplemented
        xp = self.xp
        found = [self.ns.lu_factor(matrix) for matrix in a.reshape(-1, *a.shape[-2:])]
        factors = xp.stack([part[0] for part in found]).reshape(a.shape)
        zero = xp.diagonal(factors, axis1=-2, axis2=-1) == 0
        info = xp.where(xp.any(zero, axis=-1), xp.argmax(zero, axis=-1) + 1, 0)
        pivots = xp.stack([part[1] for part in found]) + 1
        return factors, pivots.astype(np.int32).reshape(zero.shape), info.astype(np.int32)

    def lu_permutation(self, pivots: Array, rows: int) -> Any:
        if self.any_of((pivots < 1) | (pivots > rows)):
            return NotImplemented  # the host raises
        return self.ns.row_order(pivots, rows)

    def lu_solve(self, lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Any:
        if lu.size == 0 or b.size == 0:
            return NotImplemented
        if self.any_of(pivots < 1):
            raise RuntimeError(_WRONG_PIVOTS.format("greater or equal to 1"))
        if self.any_of(pivots > lu.shape[-1]):
            raise RuntimeError(_WRONG_PIVOTS.format("smaller or equal to LU.size(-2)"))
        if left:
            return self.substituted(lu, pivots, b, adjoint)
        # (X @ A).mH = A.mH @ X.mH
        return self.adjoint(self.substituted(lu, pivots, self.adjoint(b), not adjoint))

    def substituted(self, lu: Array, pivots: Array, b: Array, adjoint: bool) -> Array:
        """X with A @ X = B, or A.mH @ X = B, where A[order] = L @ U."""
        order = self.ns.row_order(pivots, lu.shape[-1])
        if not adjoint:
            half = self.substitute(lu, self.rows(b, order), lower=True, unit=True)
            return self.substitute(lu, half, lower=False, unit=False)
        half = self.substitute(lu, b, lower=False, unit=False, adjoint=True)
        last = self.substitute(lu, half, lower=True, unit=True, adjoint=True)
        return self.rows(last, self.xp.argsort(order, axis=-1))

    def adjoint(self, a: Array) -> Array:
        turned = a.swapaxes(-1, -2)
        return self.xp.conjugate(turned) if a.dtype.kind == "c" else turned

    def rows(self, b: Array, order: Array) -> Array:
        batch = np.broadcast_shapes(b.shape[:-2], order.shape[:-1])
        matrices = self.xp.broadcast_to(b, (*batch, *b.shape[-2:]))
        index = self.xp.broadcast_to(order[..., None], (*batch, *b.shape[-2:]))
        return self.xp.take_along_axis(matrices, index, -2)

    def substitute(
        self, a: Array, b: Array, *, lower: bool, unit: bool, adjoint: bool = False
    ) -> Array:
        """X with A @ X = B, or A.mH @ X = B; only one triangle of A is read."""
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        count = math.prod(batch)
        # A single matrix has its own routine, without pointers on the device.
        shape = (count,) if count > 1 else ()
        matrices = self.xp.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(*shape, *a.shape[-2:])
        sides = self.xp.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(*shape, *b.shape[-2:])
        out = self.ns.solve_triangular(matrices, sides, "C" if adjoint else "N", lower, unit)
        return self.xp.ascontiguousarray(out).reshape(*batch, *b.shape[-2:])

    def solve_triangular(self, a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Any:
        if a.size == 0 or b.size == 0:
            return NotImplemented
        if left:
            return self.substitute(a, b, lower=not upper, unit=unit)
        turned = self.substitute(a.swapaxes(-1, -2), b.swapaxes(-1, -2), lower=upper, unit=unit)
        return turned.swapaxes(-1, -2)

    def solve(self, a: Array, b: Array) -> Any:
        if a.size == 0 or b.size == 0:
            return NotImplemented
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        matrices = self.xp.broadcast_to(a, (*batch, *a.shape[-2:]))
        sides = self.xp.broadcast_to(b, (*batch, *b.shape[-2:]))
        try:
            return self.ns.checked(self.xp.linalg.solve, matrices, sides)
        except np.linalg.LinAlgError:
            return NotImplemented

    def inv(self, a: Array) -> Any:
        if a.size == 0:
            return NotImplemented
        try:
            return self.ns.checked(self.xp.linalg.inv, a)
        except np.linalg.LinAlgError:
            return NotImplemented

    def det(self, a: Array) -> Any:
        return self.xp.linalg.det(a)

    def slogdet(self, a: Array) -> Any:
        if a.size == 0:
            return NotImplemented
        sign, logabsdet = self.xp.linalg.slogdet(a)
        if a.dtype.kind != "c":
            sign = self.xp.where(self.xp.isnan(logabsdet), a.dtype.type(0), sign)
        return sign, logabsdet
