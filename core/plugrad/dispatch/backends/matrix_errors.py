"""Errors of factorizations about matrices that they cannot factorize, with PyTorch's messages.

Backends import them from `plugrad.plugins.kernel_errors`.
"""

from __future__ import annotations

# Interpreted: it runs when something goes wrong.
from typing import Any, Final

import numpy as np

from plugrad.errors import LinAlgError

_NOT_DEFINITE: Final = (
    "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {info} is not positive-definite)."
)
_ZERO_ON_DIAGONAL: Final = (
    "The diagonal element {info} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)
_SINGULAR: Final = "The solver failed because the input matrix is singular."
_NOT_FINITE: Final = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)
_NOT_CONVERGED: Final = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
    "repeated {what} (error code: {info})."
)
_ZERO_PIVOT: Final = (
    "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. If you "
    "still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)"
)
_ZERO_BLOCK: Final = (
    "D[{info},{info}] is zero, and dividing by it in ldl_solve would give inf. If you still want "
    "the factorization, call linalg.ldl_factor_ex(A)"
)
_NOT_FULL_RANK: Final = (
    "The least squares solution could not be computed because the input matrix does not have full "
    "rank (error code: {info})."
)

_MESSAGES: Final = {
    **dict.fromkeys(("linalg.cholesky", "linalg.cholesky_ex", "cholesky"), _NOT_DEFINITE),
    **dict.fromkeys(("linalg.inv", "linalg.inv_ex", "cholesky_inverse"), _ZERO_ON_DIAGONAL),
    **dict.fromkeys(("linalg.solve", "linalg.solve_ex"), _SINGULAR),
    "linalg.svd": _NOT_CONVERGED.replace("{what}", "singular values"),
    **dict.fromkeys(("linalg.eigh", "linalg.eig"), _NOT_CONVERGED.replace("{what}", "eigenvalues")),
    **dict.fromkeys(("linalg.lu_factor", "linalg.lu_factor_ex"), _ZERO_PIVOT),
    **dict.fromkeys(("linalg.ldl_factor", "linalg.ldl_factor_ex"), _ZERO_BLOCK),
    "torch.linalg.lstsq": _NOT_FULL_RANK,
}


def matrix_error(name: str, info: int, element: int | None = None) -> Exception:
    """The error of a factorization that failed.

    Args:
        name: the function, as its messages begin: "linalg.cholesky".
        info: LAPACK's result: how far it proceeded, counted from 1. -1: there were nan or inf.
        element: which matrix of a batch it was; None if there was no batch.

    >>> from plugrad.plugins.kernel_errors import matrix_error
    >>> str(matrix_error("linalg.solve", 2, 0))
    'linalg.solve: (Batch element 0): The solver failed because the input matrix is singular.'
    """
    message = _NOT_FINITE if info < 0 else _MESSAGES[name].format(info=info)
    which = "" if element is None else f"(Batch element {element}): "
    kind = RuntimeError if message.startswith(("U[", "D[")) else LinAlgError
    return kind(f"{name}: {which}{message}")


def check_info(info: Any, name: str) -> None:
    """Raise the error of the first matrix of a batch that could not be factorized.

    Args:
        info: (*), an array on the host, with LAPACK's `info` for each matrix.
        name: as in `matrix_error`.
    """
    codes = np.asarray(info)
    if not codes.any():
        return
    first = int(np.flatnonzero(codes)[0])
    raise matrix_error(name, int(codes.flat[first]), first if codes.ndim else None)
