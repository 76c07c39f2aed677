"""Kernels of decompositions of matrices, and of triangular systems."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad.plugins.kernel_errors import check_info, matrix_error
from plugrad_jax.kernels.programs import Array, Kernel, compiled


def _is_known(array: Array) -> bool:
    """Whether it has numbers: not while JAX traces."""
    return not isinstance(array, jax.core.Tracer)


def check_matrices(info: Array, name: str) -> Array:
    """LinAlgError at once, because programs catch it to try another way; so this waits for the
    device, as PyTorch does. While JAX traces, the numbers are unknown."""
    if _is_known(info):
        check_info(np.asarray(info), name)
    return info


def _first_bad_minor(a: Array) -> Array:
    """The order of the first leading minor of a matrix that is not positive definite, or 0."""
    matrix = jnp.tril(a) + jnp.conj(jnp.tril(a, -1).T)

    def step(j: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, info = state
        column = rest[:, j]
        pivot = column[j].real
        info = jnp.where((info == 0) & ~(pivot > 0), j + 1, info).astype(jnp.int32)
        return rest - jnp.outer(column, jnp.conj(column)) / pivot.astype(a.dtype), info

    return lax.fori_loop(0, a.shape[-1], step, (matrix, jnp.int32(0)))[1]


@compiled(1)
def cholesky(a: Array, upper: bool) -> tuple[Array, Array]:
    lower = a.swapaxes(-1, -2) if upper else a
    factor = lax.linalg.cholesky(lower, symmetrize_input=False)
    count = a.shape[-1]

    def look(matrices: Array) -> Array:
        flat = matrices.reshape(-1, count, count)
        return jax.vmap(_first_bad_minor)(flat).reshape(a.shape[:-2])

    def none(matrices: Array) -> Array:
        return jnp.zeros(a.shape[:-2], jnp.int32)

    # Only where there is something to look for.
    failed = jnp.isnan(factor.real).any()
    info = none(a) if a.size == 0 else lax.cond(failed, look, none, lower)
    return (factor.swapaxes(-1, -2) if upper else factor), info


@compiled(1)
def qr(a: Array, mode: str) -> tuple[Array, Array]:
    if mode == "r":
        return jnp.empty(0, a.dtype), jnp.linalg.qr(a, "r")
    q, r = jnp.linalg.qr(a, mode)
    return q, r


@compiled()
def geqrf(a: Array) -> tuple[Array, Array]:
    turned, tau = jnp.linalg.qr(a, "raw")
    return turned.swapaxes(-1, -2), tau


@compiled(1, 2)
def eigh(a: Array, triangle: str, compute_v: bool) -> tuple[Array, Array]:
    if not compute_v:
        lower = a if triangle == "L" else jnp.conj(a.swapaxes(-1, -2))
        values = lax.linalg.eigh(lower, symmetrize_input=False)[1]
        return values, jnp.empty(0, a.dtype)
    values, vectors = jnp.linalg.eigh(a, triangle, symmetrize_input=False)
    return values, vectors


@compiled()
def _eig(a: Array) -> tuple[Array, Array, Array]:
    values, vectors = jnp.linalg.eig(a)
    return values, vectors, ~jnp.isfinite(a).all()


@compiled()
def _eigvals(a: Array) -> tuple[Array, Array]:
    return jnp.linalg.eigvals(a), ~jnp.isfinite(a).all()


def _check_finite(bad: Array) -> None:
    if _is_known(bad) and bool(bad):
        raise RuntimeError("linalg.eig: input tensor should not contain infs or NaNs.")


def eig(a: Array) -> tuple[Array, Array]:
    values, vectors, bad = _eig(a)
    _check_finite(bad)
    return values, vectors


def eigvals(a: Array) -> Array:
    values, bad = _eigvals(a)
    _check_finite(bad)
    return values


@compiled(1, 2)
def _svd(a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array, Array]:
    finite = jnp.isfinite(a).all((-1, -2), keepdims=True)
    bad = ~finite.all()
    # Where an element is infinite, LAPACK may not come to an end.
    a = jnp.where(finite, a, 0)
    if not compute_uv:
        empty = jnp.empty(0, a.dtype)
        s = jnp.linalg.svd(a, compute_uv=False)
        return empty, jnp.where(finite[..., 0], s, jnp.nan), empty, bad
    u, s, vh = jnp.linalg.svd(a, full_matrices)
    s = jnp.where(finite[..., 0], s, jnp.nan)
    return jnp.where(finite, u, jnp.nan), s, jnp.where(finite, vh, jnp.nan), bad


def svd(a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array]:
    u, s, vh, bad = _svd(a, full_matrices, compute_uv)
    if _is_known(bad) and bool(bad):
        raise matrix_error("linalg.svd", -1)
    return u, s, vh


@compiled()
def slogdet(a: Array) -> tuple[Array, Array]:
    sign, logabsdet = jnp.linalg.slogdet(a)
    if a.dtype.kind != "c":
        sign = jnp.where(jnp.isnan(logabsdet), jnp.zeros_like(sign), sign)
    return sign, logabsdet


@compiled()
def _lu(a: Array) -> tuple[Array, Array, Array]:
    factors, pivots, _ = lax.linalg.lu(a)
    zero = jnp.diagonal(factors, axis1=-2, axis2=-1) == 0
    if zero.shape[-1] == 0:
        return factors, pivots + 1, jnp.zeros(a.shape[:-2], jnp.int32)
    info = jnp.where(zero.any(-1), zero.argmax(-1) + 1, 0)
    return factors, pivots + 1, info.astype(jnp.int32)


def lu_factor(a: Array, pivot: bool) -> Any:
    return _lu(a) if pivot else NotImplemented


@compiled(1)
def lu_permutation(pivots: Array, rows: int) -> Array:
    if pivots.shape[-1] == 0:
        return jnp.broadcast_to(jnp.arange(rows), (*pivots.shape[:-1], rows)).astype(jnp.int64)
    return lax.linalg.lu_pivots_to_permutation(pivots - 1, rows).astype(jnp.int64)


@compiled(2, 3, 4)
def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Array:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrices = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    sides = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if sides.size == 0:
        return sides
    return lax.linalg.triangular_solve(
        matrices, sides, left_side=left, lower=not upper, unit_diagonal=unit
    )


# JAX has no LDL: the host computes it, also for a compiled function.
_SHAPE: Final[Any] = jax.ShapeDtypeStruct


@compiled(1)
def ldl_factor(a: Array, hermitian: bool) -> Any:
    def on_host(matrices: Any) -> Any:
        return factorizations().ldl_factor(np.asarray(matrices), hermitian)

    shapes = (
        _SHAPE(a.shape, a.dtype),
        _SHAPE(a.shape[:-1], np.int32),
        _SHAPE(a.shape[:-2], np.int32),
    )
    return jax.pure_callback(on_host, shapes, a)


@compiled(3)
def ldl_solve(factors: Array, pivots: Array, b: Array, hermitian: bool) -> Any:
    def on_host(*arrays: Any) -> Any:
        return factorizations().ldl_solve(*map(np.asarray, arrays), hermitian)

    batch = jnp.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    shape = _SHAPE((*batch, *b.shape[-2:]), b.dtype)
    return jax.pure_callback(on_host, shape, factors, pivots, b)


@functools.cache
def factorizations() -> Any:
    """Seldom needed, and not loaded before."""
    return importlib.import_module("plugrad.plugins.factorizations")


KERNELS: Final[dict[str, Kernel]] = {
    "_check_matrices": check_matrices,
    "_linalg_cholesky": cholesky,
    "linalg_qr": qr,
    "geqrf": geqrf,
    "_linalg_eigh": eigh,
    "linalg_eig": eig,
    "_linalg_eigvals": eigvals,
    "_linalg_svd": svd,
    "linalg_slogdet": slogdet,
    "_linalg_lu_factor": lu_factor,
    "_lu_permutation": lu_permutation,
    "linalg_solve_triangular": solve_triangular,
    "_linalg_ldl_factor": ldl_factor,
    "linalg_ldl_solve": ldl_solve,
}
