"""Kernels of linear systems: LAPACK through NumPy, and through SciPy for large matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import matrix_error
from plugrad_cpu.kernels import lapack

Array = Any


def solve(a: Array, b: Array) -> Any:
    if lapack.suits(a) and b.size:
        return lapack.solve(a, b)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise matrix_error("linalg.solve", 1, _first_singular(a)) from None


def _first_singular(a: Array) -> int | None:
    """Which matrix of a batch it is; None without a batch."""
    if a.ndim == 2:
        return None
    for number, place in enumerate(np.ndindex(a.shape[:-2])):
        try:
            np.linalg.inv(a[place])
        except np.linalg.LinAlgError:
            return number
    return None


def inv(a: Array) -> Any:
    if lapack.suits(a):
        return lapack.inv(a)
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return NotImplemented  # the core's decomposition reports where it failed


def det(a: Array) -> Any:
    return lapack.determinant(a) if lapack.suits(a) else np.linalg.det(a)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_linalg_solve": solve,
    "linalg_inv": inv,
    "linalg_det": det,
}
