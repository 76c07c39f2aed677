"""Kernels of decompositions of matrices: cuSOLVER through CuPy.

What CuPy lacks, or has for a single matrix only, is computed on the host by the core.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad.plugins.kernel_errors import matrix_error
from plugrad_cuda.kernels.family import Family
from plugrad_cuda.kernels.namespace import Array, Kernel


class Decompositions(Family):
    """Cholesky, QR, eigenvalues of Hermitian matrices, singular values, triangular systems."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "_linalg_cholesky": self.cholesky,
            "linalg_qr": self.qr,
            "_linalg_eigh": self.eigh,
            "_linalg_svd": self.svd,
            "linalg_slogdet": self.slogdet,
            "linalg_solve_triangular": self.solve_triangular,
        }

    def cholesky(self, a: Array, upper: bool) -> Any:
        if a.size == 0:
            return NotImplemented
        # CuPy's result for a matrix without a factor is not said; which one it is, and why, the
        # host finds out.
        lower = a.swapaxes(-1, -2) if upper else a
        try:
            factor = self.ns.checked(self.xp.linalg.cholesky, lower)
        except np.linalg.LinAlgError:
            return NotImplemented
        info = self.xp.zeros(a.shape[:-2], np.int32)
        return (factor.swapaxes(-1, -2) if upper else factor), info

    def qr(self, a: Array, mode: str) -> Any:
        if a.size == 0:
            return NotImplemented
        if mode == "r":
            return self.xp.empty(0, a.dtype), self.xp.linalg.qr(a, "r")
        q, r = self.xp.linalg.qr(a, mode)
        return q, r

    def eigh(self, a: Array, triangle: str, compute_v: bool) -> Any:
        if a.size == 0:
            return NotImplemented
        try:
            if not compute_v:
                values = self.ns.checked(self.xp.linalg.eigvalsh, a, triangle)
                return values, self.xp.empty(0, a.dtype)
            values, vectors = self.ns.checked(self.xp.linalg.eigh, a, triangle)
        except np.linalg.LinAlgError:
            raise matrix_error("linalg.eigh", 1) from None
        return values, vectors

    def svd(self, a: Array, full_matrices: bool, compute_uv: bool) -> Any:
        if a.size == 0:
            return NotImplemented
        if self.ns.may_wait() and not bool(self.xp.isfinite(a).all()):
            return NotImplemented  # the host says which matrix it is
        empty = self.xp.empty(0, a.dtype)
        if not compute_uv:
            return empty, self.xp.linalg.svd(a, compute_uv=False), empty.copy()
        u, s, vh = self.xp.linalg.svd(a, full_matrices)
        return u, s, vh

    def slogdet(self, a: Array) -> Any:
        if a.size == 0:
            return NotImplemented
        sign, logabsdet = self.xp.linalg.slogdet(a)
        return sign, logabsdet

    def solve_triangular(self, a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Any:
        """CuPy solves a single triangular system only, so it solves general ones."""
        if a.size == 0 or b.size == 0:
            return NotImplemented
        triangle = self.xp.triu if upper else self.xp.tril
        offset = (1 if upper else -1) if unit else 0
        matrix = triangle(a, offset)
        if unit:
            matrix = matrix + self.xp.eye(a.shape[-1], dtype=a.dtype)
        right = b
        if not left:
            matrix, right = matrix.swapaxes(-1, -2), b.swapaxes(-1, -2)
        batch = np.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
        matrix = self.xp.broadcast_to(matrix, (*batch, *matrix.shape[-2:]))
        right = self.xp.broadcast_to(right, (*batch, *right.shape[-2:]))
        try:
            out = self.ns.solve(matrix, right)
        except np.linalg.LinAlgError:
            return NotImplemented  # zeros on the diagonal give inf and nan
        return out if left else out.swapaxes(-1, -2)
