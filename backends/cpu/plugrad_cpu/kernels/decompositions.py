"""Kernels of decompositions: LAPACK through NumPy, for whole batches, and through SciPy for large
matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import check_info, matrix_error
from plugrad_cpu.kernels import lapack

Array = Any


def check_matrices(info: Array, name: str) -> Any:
    check_info(info, name)
    return info


def cholesky(a: Array, upper: bool) -> Any:
    if lapack.suits(a):
        return lapack.cholesky(a, upper)
    try:
        if upper:
            # The lower triangle of the transpose, which is the conjugate of U.mH.
            factor = np.linalg.cholesky(a.swapaxes(-1, -2)).swapaxes(-1, -2)
        else:
            factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return NotImplemented  # which matrix it is, and how far it came, is found step by step
    # Not every LAPACK says that a pivot which is nan is not positive.
    if np.isnan(np.diagonal(factor, 0, -2, -1)).any():
        return NotImplemented
    return factor, np.zeros(a.shape[:-2], np.int32)


def qr(a: Array, mode: str) -> Any:
    if mode == "r":
        return np.empty(0, a.dtype), np.linalg.qr(a, "r")
    if lapack.suits(a):
        return lapack.qr(a, mode == "complete")
    q, r = np.linalg.qr(a, "complete" if mode == "complete" else "reduced")
    return q, r


def geqrf(a: Array) -> Any:
    turned, tau = np.linalg.qr(a, "raw")
    return turned.swapaxes(-1, -2), tau


def eigh(a: Array, triangle: Any, compute_v: bool) -> Any:
    if lapack.suits(a):
        found = lapack.eigh(a, triangle, compute_v)
        if found is not NotImplemented:
            return found
    try:
        if not compute_v:
            return np.linalg.eigvalsh(a, triangle), np.empty(0, a.dtype)
        values, vectors = np.linalg.eigh(a, triangle)
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.eigh", 1) from None
    return values, vectors


def _check_finite(a: Array) -> None:
    if not np.isfinite(a).all():
        raise RuntimeError("linalg.eig: input tensor should not contain infs or NaNs.")


def eig(a: Array) -> Any:
    _check_finite(a)
    try:
        values, vectors = np.linalg.eig(a)
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.eig", 1) from None
    dtype = np.result_type(a.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def eigvals(a: Array) -> Any:
    _check_finite(a)
    try:
        values = np.linalg.eigvals(a)
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.eig", 1) from None
    return values.astype(np.result_type(a.dtype, np.complex64), copy=False)


def svd(a: Array, full_matrices: bool, compute_uv: bool) -> Any:
    # Where an element is infinite, LAPACK may not come to an end.
    check_info(np.where(np.isfinite(a).all((-1, -2)), 0, -1), "linalg.svd")
    if lapack.suits(a):
        found = lapack.svd(a, full_matrices, compute_uv)
        if found is not NotImplemented:
            return found
    try:
        if compute_uv:
            u, s, vh = np.linalg.svd(a, full_matrices)
            return u, s, vh
        empty = np.empty(0, a.dtype)
        return empty, np.linalg.svd(a, compute_uv=False), empty.copy()
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.svd", 1) from None


def slogdet(a: Array) -> Any:
    if lapack.suits(a):
        return lapack.log_determinant(a)
    sign, logabsdet = np.linalg.slogdet(a)
    if not np.iscomplexobj(a):  # NumPy gives 1 or -1 for nan, PyTorch 0.
        sign = np.where(np.isnan(logabsdet), a.dtype.type(0), sign)
    return sign, logabsdet


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_check_matrices": check_matrices,
    "_linalg_cholesky": cholesky,
    "linalg_qr": qr,
    "geqrf": geqrf,
    "_linalg_eigh": eigh,
    "linalg_eig": eig,
    "_linalg_eigvals": eigvals,
    "_linalg_svd": svd,
    "linalg_slogdet": slogdet,
}
