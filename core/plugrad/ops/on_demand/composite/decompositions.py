"""Decompositions under their public names, and on the host for backends without kernels."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.matrix_errors import check_info, matrix_error
from plugrad.dispatch.keys import FORWARD_AD_BIT, TRANSFORMS_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import DType, int32
from plugrad.ops.on_demand.composite.householder import householder_product as householder_product
from plugrad.ops.on_demand.composite.householder import orgqr as orgqr
from plugrad.ops.on_demand.composite.householder import ormqr as ormqr
from plugrad.ops.on_demand.factorizations.cholesky import cholesky as factor_cholesky
from plugrad.ops.on_demand.prepare import decompositions as prepare
from plugrad.ops.prepare.linear_systems import check_square_shape
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.tensor.calls.schema_facts import named_results
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def named(name: str, *results: Any) -> Any:
    """Results as the named tuple of an operator of plugrad's own."""
    op = find_operator(f"plugrad::{name}")
    assert op is not None
    return named_results(op, *results)


def to_device(array: Any, like: TensorBase, dtype: DType | None = None) -> TensorBase:
    """A NumPy array where a tensor is, and in its dtype unless another one is given."""
    dtype = like.dtype if dtype is None else dtype
    host = np.ascontiguousarray(array, dtype.numpy).reshape(np.shape(array))
    return from_host(host, dtype, like.device)


def may_need_vectors(A: TensorBase) -> bool:
    """Whether a derivative with respect to `A` may be needed, which takes eigenvectors or singular
    vectors. Inside a transform this is unknown."""
    if A._keyset & (FORWARD_AD_BIT | TRANSFORMS_BIT):
        return True
    return current_state().grad_enabled and needs_grad(A)


def check_matrices_on_host(info: TensorBase, name: str) -> TensorBase:
    check_info(host_array(info), name)
    return info


def cholesky_on_host(A: TensorBase, upper: bool) -> tuple[TensorBase, TensorBase]:
    prepare.cholesky(A, upper)
    host = host_array(A)
    if not upper:
        L, info = factor_cholesky(host)
    else:
        # The lower triangle of the transpose, which is the conjugate of U.mH.
        L, info = factor_cholesky(host.swapaxes(-1, -2))
        L = L.swapaxes(-1, -2)
    return to_device(L, A), to_device(info, A, int32)


def cholesky_ex(self: Tensor, upper: bool, check_errors: bool) -> Any:
    L, info = F._linalg_cholesky(self, upper)
    if check_errors:
        info = F._check_matrices(info, "linalg.cholesky_ex")
    return named("linalg_cholesky_ex", L, info)


def cholesky(self: Tensor, upper: bool) -> Tensor:
    L, info = F._linalg_cholesky(self, upper)
    F._check_matrices(info, "linalg.cholesky")
    return L


def cholesky_deprecated(self: Tensor, upper: bool) -> Tensor:
    check_square_shape(self, "cholesky")
    prepare.check_kernel_dtype(self.dtype, "cholesky_cpu")
    L, info = F._linalg_cholesky(self, upper)
    F._check_matrices(info, "cholesky")
    return L


def qr_on_host(A: TensorBase, mode: str) -> Any:
    prepare.qr(A, mode)
    host = host_array(A)
    Q: Any = np.empty(0)
    R: Any
    if mode == "r":
        R = np.linalg.qr(host, "r")
    else:
        Q, R = np.linalg.qr(host, "complete" if mode == "complete" else "reduced")
    return named("linalg_qr", to_device(Q, A), to_device(R, A))


def qr_deprecated(self: Tensor, some: bool) -> Any:
    return named("qr", *F.linalg_qr(self, "reduced" if some else "complete"))


def geqrf_on_host(self: TensorBase) -> Any:
    prepare.geqrf(self)
    turned, tau = np.linalg.qr(host_array(self), "raw")
    return named("geqrf", to_device(turned.swapaxes(-1, -2), self), to_device(tau, self))


def eigh_on_host(A: TensorBase, UPLO: str, compute_v: bool) -> tuple[TensorBase, TensorBase]:
    _, triangle, _ = prepare.eigh(A, UPLO, compute_v)
    host = host_array(A)
    vectors: Any = np.empty(0)
    try:
        if compute_v:
            values, vectors = np.linalg.eigh(host, triangle)  # type: ignore[call-overload]
        else:
            values = np.linalg.eigvalsh(host, triangle)  # type: ignore[call-overload]
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.eigh", 1) from None
    return to_device(values, A, A.dtype.to_real()), to_device(vectors, A)


def eigh(self: Tensor, UPLO: str) -> Any:
    return named("linalg_eigh", *F._linalg_eigh(self, UPLO, True))


def eigvalsh(self: Tensor, UPLO: str) -> Tensor:
    return F._linalg_eigh(self, UPLO, may_need_vectors(self))[0]


def eig_on_host(self: TensorBase) -> Any:
    prepare.eig(self)
    try:
        values, vectors = np.linalg.eig(_finite(self))
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.eig", 1) from None
    dtype = self.dtype.to_complex()
    return named("linalg_eig", to_device(values, self, dtype), to_device(vectors, self, dtype))


def eigvals_on_host(self: TensorBase) -> TensorBase:
    prepare.eigvals(self)
    try:
        values = np.linalg.eigvals(_finite(self))
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.eig", 1) from None
    return to_device(values, self, self.dtype.to_complex())


def _finite(A: TensorBase) -> Any:
    host = host_array(A)
    if not np.isfinite(host).all():
        raise RuntimeError("linalg.eig: input tensor should not contain infs or NaNs.")
    return host


def eigvals(self: Tensor) -> Tensor:
    prepare.eigvals(self)
    if may_need_vectors(self):
        return F.linalg_eig(self)[0]
    return F._linalg_eigvals(self)


def svd_on_host(A: TensorBase, full_matrices: bool, compute_uv: bool, driver: str | None) -> Any:
    prepare.svd(A, full_matrices, compute_uv, driver)
    host = host_array(A)
    U: Any = np.empty(0)
    Vh: Any = np.empty(0)
    # Where an element is infinite, LAPACK may not come to an end.
    check_info(np.where(np.isfinite(host).all((-1, -2)), 0, -1), "linalg.svd")
    try:
        if compute_uv:
            U, S, Vh = np.linalg.svd(host, full_matrices)
        else:
            S = np.linalg.svd(host, compute_uv=False)
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.svd", 1) from None
    return to_device(U, A), to_device(S, A, A.dtype.to_real()), to_device(Vh, A)


def linalg_svd(A: Tensor, full_matrices: bool, driver: str | None) -> Any:
    return named("linalg_svd", *F._linalg_svd(A, full_matrices, True, driver=driver))


def svdvals(A: Tensor, driver: str | None) -> Tensor:
    return F._linalg_svd(A, False, may_need_vectors(A), driver=driver)[1]


def svd_deprecated(self: Tensor, some: bool, compute_uv: bool) -> Any:
    sizes = sizes_of(self)
    if len(sizes) < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {len(sizes)} "
            "dimensions instead"
        )
    if compute_uv:
        U, S, Vh = F._linalg_svd(self, not some, True)
        return named("svd", U, S, F.mH(Vh))
    S = F.linalg_svdvals(self)
    rows, columns = sizes[-2:]
    U = self.new_zeros((*sizes[:-2], rows, rows))
    return named("svd", U, S, self.new_zeros((*sizes[:-2], columns, columns)))
