"""Checks matrices to decompose, with PyTorch's messages: floats or complex numbers of more than 16
bits, and square if required."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, DType
from plugrad.ops.prepare.linear_systems import check_square_shape
from plugrad.tensor.base import TensorBase, sizes_of


def check_matrix(A: TensorBase, name: str) -> None:
    """RuntimeError unless there are two dimensions."""
    if len(sizes_of(A)) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def check_inexact(A: TensorBase, name: str) -> None:
    """RuntimeError for integers and bools."""
    if A.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{A.dtype.scalar_name}"
        )


def check_kernel_dtype(dtype: DType, kernel: str) -> None:
    """NotImplementedError for dtypes that LAPACK has no routine for."""
    if dtype.category < FLOATING or dtype.itemsize == 2:
        raise not_implemented(kernel, dtype)


def cholesky(A: TensorBase, upper: bool) -> tuple[object, ...]:
    check_square_shape(A, "linalg.cholesky")
    check_inexact(A, "linalg.cholesky")
    check_kernel_dtype(A.dtype, "cholesky_cpu")
    return (A, upper)


def qr(A: TensorBase, mode: str) -> tuple[object, ...]:
    check_matrix(A, "linalg.qr")
    check_inexact(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    check_kernel_dtype(A.dtype, "geqrf_cpu")
    return (A, mode)


def geqrf(self: TensorBase) -> tuple[object, ...]:
    if len(sizes_of(self)) < 2:
        raise RuntimeError("geqrf: input must have at least 2 dimensions.")
    check_kernel_dtype(self.dtype, "geqrf_cpu")
    return (self,)


def eigh(A: TensorBase, UPLO: str, compute_v: bool) -> tuple[object, ...]:
    """The triangle is given as "L" or "U"."""
    check_square_shape(A, "linalg.eigh")
    triangle = UPLO[:1].upper()
    if triangle not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_kernel_dtype(A.dtype, "linalg_eigh_cpu")
    return (A, triangle, compute_v)


def eig(self: TensorBase) -> tuple[object, ...]:
    return _eigenvalues(self, "linalg.eig")


def eigvals(self: TensorBase) -> tuple[object, ...]:
    return _eigenvalues(self, "linalg.eigvals")


def _eigenvalues(A: TensorBase, name: str) -> tuple[object, ...]:
    check_square_shape(A, name)
    if A.dtype.category < FLOATING:
        raise RuntimeError(f"{name}: Unknown Complex ScalarType for {A.dtype.scalar_name}")
    check_kernel_dtype(A.dtype, "linalg_eig_out_cpu")
    return (A,)


def svd(
    A: TensorBase, full_matrices: bool, compute_uv: bool, driver: str | None
) -> tuple[object, ...]:
    """The driver is not passed to kernels."""
    check_matrix(A, "linalg.svd")
    check_inexact(A, "linalg.svd")
    if driver is not None and A.device.is_host:
        raise RuntimeError(
            "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    check_kernel_dtype(A.dtype, "linalg_svd_cpu")
    return (A, full_matrices, compute_uv)
