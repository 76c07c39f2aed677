"""Kernels of linear systems."""

from __future__ import annotations

import functools
from typing import Final

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import expm

from plugrad_jax.kernels.decompositions import check_matrices
from plugrad_jax.kernels.programs import Array, Kernel, compiled, program, widen


def _factors(a: Array) -> tuple[Array, Array, Array]:
    """LU, the order of rows, and for each matrix the first zero on the diagonal of U, or 0."""
    factors, _, order = lax.linalg.lu(a)
    zero = jnp.diagonal(factors, axis1=-2, axis2=-1) == 0
    if zero.shape[-1] == 0:
        return factors, order, jnp.zeros(a.shape[:-2], jnp.int32)
    return factors, order, jnp.where(zero.any(-1), zero.argmax(-1) + 1, 0)


def _substituted(factors: Array, order: Array, right: Array) -> Array:
    right = jnp.take_along_axis(right, order[..., None], -2)
    lower = lax.linalg.triangular_solve(
        factors, right, left_side=True, lower=True, unit_diagonal=True
    )
    return lax.linalg.triangular_solve(factors, lower, left_side=True, lower=False)


@compiled()
def _solve(a: Array, b: Array) -> tuple[Array, Array]:
    """The solution, and which matrices are singular."""
    is_vector = b.ndim == 1
    right = b[:, None] if is_vector else b
    batch = jnp.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    factors, order, info = _factors(jnp.broadcast_to(a, (*batch, *a.shape[-2:])))
    out = _substituted(factors, order, jnp.broadcast_to(right, (*batch, *right.shape[-2:])))
    return (out[..., 0] if is_vector else out), info


def solve(a: Array, b: Array) -> Array:
    out, info = _solve(a, b)
    check_matrices(info, "linalg.solve")
    return out


@compiled()
def _inv(a: Array) -> tuple[Array, Array]:
    factors, order, info = _factors(a)
    identity = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return _substituted(factors, order, identity), info


def inv(a: Array) -> Array:
    out, info = _inv(a)
    check_matrices(info, "linalg.inv")
    return out


@compiled(3, 4)
def lu_solve(lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Array:
    """X with A @ X = B, or X @ A = B, where A, or with `adjoint` A.mH, has these factors."""
    if not left:
        # (X @ A).mH = A.mH @ X.mH
        turned: Array = lu_solve(lu, pivots, jnp.conj(b.swapaxes(-1, -2)), True, not adjoint)
        return jnp.conj(turned.swapaxes(-1, -2))
    batch = jnp.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    n = lu.shape[-1]
    right = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if right.size == 0:
        return right
    order = jnp.broadcast_to(lax.linalg.lu_pivots_to_permutation(pivots - 1, n), (*batch, n))
    factors = jnp.broadcast_to(lu, (*batch, n, n))
    if not adjoint:
        return _substituted(factors, order, right)
    solve_transposed = functools.partial(
        lax.linalg.triangular_solve, factors, left_side=True, transpose_a=True, conjugate_a=True
    )
    upper = solve_transposed(right, lower=False)
    lower = solve_transposed(upper, lower=True, unit_diagonal=True)
    return jnp.take_along_axis(lower, jnp.argsort(order, -1)[..., None], -2)


def _matrix_exp(a: Array) -> Array:
    if a.size == 0:
        return a
    if a.shape[-1] == 1:
        return jnp.exp(widen(a)).astype(a.dtype)
    return expm(widen(a), max_squarings=64).astype(a.dtype)


KERNELS: Final[dict[str, Kernel]] = {
    "_linalg_solve": solve,
    "linalg_inv": inv,
    "linalg_lu_solve": lu_solve,
    "linalg_det": program(jnp.linalg.det),
    "linalg_matrix_exp": program(_matrix_exp),
}
