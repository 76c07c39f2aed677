"""Kernels of decompositions of matrices: cuSOLVER through CuPy.

The core computes on the host what CuPy lacks, or has only for a single matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad.plugins.kernel_errors import matrix_error
from plugrad_cuda.kernels.family import Family
from plugrad_cuda.kernels.namespace import Array, Kernel


class Decompositions(Family):
    """Cholesky, QR, eigenvalues, singular values."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "_linalg_cholesky": self.cholesky,
            "linalg_qr": self.qr,
            "_linalg_eigh": self.eigh,
            "_linalg_svd": self.svd,
            "geqrf": self.geqrf,
            "linalg_eig": self.eig,
            "_linalg_eigvals": self.eigvals,
        }

    def cholesky(self, a: Array, upper: bool) -> Any:
        if a.size == 0:
            return NotImplemented
        # CuPy does not define its result for a matrix without a factor; which one it is, and why,
        # the host finds out.
        lower = a.swapaxes(-1, -2) if upper else a
        try:
            factor = self.ns.checked(self.xp.linalg.cholesky, lower)
        except np.linalg.LinAlgError:
            return NotImplemented
        if bool(self.xp.isnan(self.xp.diagonal(factor, 0, -2, -1)).any()):
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
            return NotImplemented  # the host finds which matrix it is
        empty = self.xp.empty(0, a.dtype)
        if not compute_uv:
            return empty, self.xp.linalg.svd(a, compute_uv=False), empty.copy()
        u, s, vh = self.xp.linalg.svd(a, full_matrices)
        return u, s, vh

    def geqrf(self, a: Array) -> Any:
        if a.size == 0:
            return NotImplemented
        turned, tau = self.xp.linalg.qr(a, "raw")
        return turned.swapaxes(-1, -2), tau

    def eig(self, a: Array) -> Any:
        return self.general("eig", a)

    def eigvals(self, a: Array) -> Any:
        return self.general("eigvals", a)

    def general(self, name: str, a: Array) -> Any:
        """Eigenvalues of any square matrices; nan, inf and failed convergence go to the host, which
        raises."""
        if a.size == 0 or not self.ns.has_eig():
            return NotImplemented
        if self.ns.may_wait() and not bool(self.xp.isfinite(a).all()):
            return NotImplemented
        try:
            found = self.ns.checked(getattr(self.xp.linalg, name), a)
        except np.linalg.LinAlgError:
            return NotImplemented
        dtype = np.result_type(a.dtype, np.complex64)
        if isinstance(found, tuple):
            return tuple([part.astype(dtype, copy=False) for part in found])
        return found.astype(dtype, copy=False)
