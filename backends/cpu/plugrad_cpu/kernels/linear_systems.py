"""Kernels of linear systems: LAPACK through NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = Any


def solve(a: Array, b: Array) -> Any:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise RuntimeError(
            "linalg.solve: The solver failed because the input matrix is singular."
        ) from None


def det(a: Array) -> Any:
    return np.linalg.det(a)


KERNELS: Final[dict[str, Callable[..., Any]]] = {"_linalg_solve": solve, "linalg_det": det}
