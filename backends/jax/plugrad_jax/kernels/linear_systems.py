"""Kernels of linear systems."""

from __future__ import annotations

from typing import Any, Final

import jax.numpy as jnp
from jax import lax

from plugrad.plugins.kernel_errors import matrix_error
from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.programs import Array, Kernel, program


def _solve(a: Array, b: Array) -> tuple[Array, Array]:
    """The solution, and whether a matrix is singular."""
    is_vector = b.ndim == 1
    right = b[:, None] if is_vector else b
    batch = jnp.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    factors, _, order = lax.linalg.lu(jnp.broadcast_to(a, (*batch, *a.shape[-2:])))
    right = jnp.broadcast_to(right, (*batch, *right.shape[-2:]))
    right = jnp.take_along_axis(right, order[..., None], -2)
    lower = lax.linalg.triangular_solve(
        factors, right, left_side=True, lower=True, unit_diagonal=True
    )
    out = lax.linalg.triangular_solve(factors, lower, left_side=True, lower=False)
    singular = jnp.any(jnp.diagonal(factors, axis1=-2, axis2=-1) == 0)
    return (out[..., 0] if is_vector else out), singular


def _singular(detail: Any) -> Exception:
    return matrix_error("linalg.solve", 1)


_solve_program: Final = program(_solve)


def solve(a: Array, b: Array) -> Array:
    out, singular = _solve_program(a, b)
    raise_later(singular, _singular)
    return out


KERNELS: Final[dict[str, Kernel]] = {
    "_linalg_solve": solve,
    "linalg_det": program(jnp.linalg.det),
}
