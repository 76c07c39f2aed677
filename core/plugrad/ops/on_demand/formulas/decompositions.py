"""Gradients of the decompositions of matrices.

In the formulas, X^H is `mH`. A is the decomposed matrix, gX the gradient toward X. The entries name
their sources.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any, NoReturn

from plugrad._generated import functions as F
from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.dtype import DType
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def row_range(X: Tensor, start: int, stop: int | None = None) -> Tensor:
    """X[..., start:stop, :]"""
    return X.narrow(-2, start, (sizes_of(X)[-2] if stop is None else stop) - start)


def column_range(X: Tensor, start: int, stop: int | None = None) -> Tensor:
    """X[..., start:stop]"""
    return X.narrow(-1, start, (sizes_of(X)[-1] if stop is None else stop) - start)


def diagonal_of(X: Tensor) -> Tensor:
    return F.diagonal(X, 0, -2, -1)


def identity_like(X: Tensor) -> Tensor:
    return F.eye(sizes_of(X)[-1], dtype=X.dtype, device=X.device)


def without_diagonal(X: Tensor) -> Tensor:
    return X.triu(1) + X.tril(-1)


def differences(values: Tensor) -> Tensor:
    """(*, n) gives values[j] - values[i] at (*, i, j), and 1 on the diagonal, to divide by."""
    found = values.unsqueeze(-2) - values.unsqueeze(-1)
    return found + identity_like(found)


def half_diagonal(X: Tensor) -> Tensor:
    """The lower triangle, with half of the diagonal."""
    return X.tril(-1) + F.diag_embed(diagonal_of(X)) / 2


def folded(X: Tensor) -> Tensor:
    """The upper triangle of X and its conjugate below; of the diagonal the real part."""
    above = X.triu(1)
    diagonal = diagonal_of(X)
    real = F.real(diagonal).to(X.dtype) if X.dtype.is_complex else diagonal
    return above + F.mH(above) + F.diag_embed(real)


def raise_without_vectors(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}: the derivative needs the vectors, which were not computed. Ask for them in the "
        "forward call"
    )


def check_phase(imaginary: Tensor, message: str) -> None:
    """RuntimeError unless all elements are 0. Checked only on the host: on other devices it would
    have to wait, and in a transform there are no values."""
    if imaginary._keyset & TRANSFORMS_BIT or not imaginary.device.is_host:
        return
    found = imaginary.detach()
    if not F.allclose(found, F.zeros_like(found), 1e-2, 1e-2):
        raise RuntimeError(message)


def cholesky_backward(grad: Tensor | None, upper: bool, result: Tensor) -> Tensor | None:
    """L^-H S L^-1, where S is the Hermitian part of L^H gL read from its lower triangle."""
    if grad is None:
        return None
    L = F.mH(result) if upper else result
    grad = F.mH(grad) if upper else grad
    inner = F.matmul(F.mH(L), grad)
    symmetric = (inner.tril() + F.mH(inner.tril(-1))) / 2
    left = F.linalg_solve_triangular(F.mH(L), symmetric, upper=True)
    return F.linalg_solve_triangular(L, left, upper=False, left=False)


def qr_backward(
    gQ: Tensor | None, gR: Tensor | None, Q: Tensor, R: Tensor, mode: str
) -> Tensor | None:
    """(gQ + Q M) R^-H for a tall A, where M is folded from the triangle of R gR^H - gQ^H Q. The
    other columns of a wide A are Q times R's other columns."""
    check_qr(Q, R, mode)
    if gQ is None and gR is None:
        return None
    rows, columns = sizes_of(Q)[-2], sizes_of(R)[-1]
    count = min(rows, columns)
    square = column_range(R, 0, count)
    to_other: Tensor | None = None
    if columns > count and gR is not None:
        other, g_other = column_range(R, count), column_range(gR, count)
        to_other = F.matmul(Q, g_other)
        of_other = F.matmul(F.matmul(Q, other), F.mH(g_other))
        gQ = of_other if gQ is None else gQ + of_other
    M: Tensor | None = None
    if gR is not None:
        M = F.matmul(square, F.mH(column_range(gR, 0, count)))
    if gQ is not None:
        turned = F.matmul(F.mH(gQ), Q)
        M = -turned if M is None else M - turned
    assert M is not None
    # From the lower triangle.
    inner = F.matmul(Q, folded(F.mH(M)))
    if gQ is not None:
        inner = gQ + inner
    found = F.linalg_solve_triangular(F.mH(square), inner, upper=False, left=False)
    if columns == count:
        return found
    if to_other is None:
        to_other = F.zeros_like(F.matmul(Q, column_range(R, count)))
    return F.cat([found, to_other], -1)


def check_qr(Q: Tensor, R: Tensor, mode: str) -> None:
    """RuntimeError where a derivative of the QR decomposition is not defined, or needs Q."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and sizes_of(Q)[-2] > sizes_of(R)[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )


def eigh_backward(
    gL: Tensor | None, gV: Tensor | None, L: Tensor, V: Tensor, compute_v: bool
) -> Tensor | None:
    """V (diag(gL) + skew(V^H gV) / 2E) V^H with skew(X) = X - X^H and E[i, j] = L[j] - L[i]: the
    Hermitian part, since A is Hermitian."""
    if not compute_v:
        raise_without_vectors("linalg.eigvalsh")
    if gV is None:
        return None if gL is None else F.matmul(V * gL.unsqueeze(-2), F.mH(V))
    inner = F.matmul(F.mH(V), gV)
    if V.dtype.is_complex:
        check_phase(diagonal_of(F.imag(inner)), _eigenvectors("linalg_eigh_backward"))
    inner = without_diagonal((inner - F.mH(inner)) / (2 * differences(L)))
    if gL is not None:
        inner = inner + F.diag_embed(gL)
    return F.matmul(F.matmul(V, inner), F.mH(V))


def _eigenvectors(name: str) -> str:
    return (
        f"{name}: The eigenvectors in the complex case are specified up to multiplication by "
        "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
    )


def eig_backward(
    gL: Tensor | None, gV: Tensor | None, L: Tensor, V: Tensor, dtype: DType
) -> Tensor | None:
    """V^-H (diag(gL) + (V^H gV - V^H V diag(re(V^H gV))) / conj(E)) V^H."""
    turned = F.mH(V)
    if gV is None:
        if gL is None:
            return None
        inner = gL.unsqueeze(-1) * turned
    else:
        along = F.matmul(turned, gV)
        own = diagonal_of(along)
        check_phase(F.imag(own), _eigenvectors("linalg_eig_backward"))
        along = along - F.matmul(turned, V * F.real(own).unsqueeze(-2))
        middle = without_diagonal(along / differences(L).conj())
        if gL is not None:
            middle = middle + F.diag_embed(gL)
        inner = F.matmul(middle, turned)
    found = F._linalg_solve(turned, inner)
    return found if dtype.is_complex else F.real(found)


def svd_backward(
    gU: Tensor | None,
    gS: Tensor | None,
    gVh: Tensor | None,
    U: Tensor,
    S: Tensor,
    Vh: Tensor,
    compute_uv: bool,
) -> Tensor | None:
    """U (skew(U^H gU) / E S + S skew(V^H gV) / E + diag(gS)) V^H, with skew(X) = X - X^H and E[i,
    j] = S[j]^2 - S[i]^2, plus the part orthogonal to U or V; for complex numbers, also the part
    that rotates the phase of both vectors of a pair."""
    if not compute_uv:
        raise_without_vectors("linalg.svdvals")
    rows, columns, count = sizes_of(U)[-2], sizes_of(Vh)[-1], sizes_of(S)[-1]
    # The first k of full matrices.
    U, Vh = column_range(U, 0, count), row_range(Vh, 0, count)
    gU = None if gU is None else column_range(gU, 0, count)
    gVh = None if gVh is None else row_range(gVh, 0, count)
    if gU is None and gVh is None:
        return None if gS is None else F.matmul(U * gS.unsqueeze(-2), Vh)
    X = None if gU is None else F.matmul(F.mH(U), gU)
    Y = None if gVh is None else F.matmul(Vh, F.mH(gVh))
    squares = differences(S * S)
    inner: Any = None
    if X is not None:
        inner = without_diagonal((X - F.mH(X)) / squares) * S.unsqueeze(-2)
    if Y is not None:
        from_V = S.unsqueeze(-1) * without_diagonal((Y - F.mH(Y)) / squares)
        inner = from_V if inner is None else inner + from_V
    if gS is not None:
        inner = inner + F.diag_embed(gS)
    if U.dtype.is_complex:
        inner = inner + F.diag_embed(_turned_phase(X, Y) / (2 * S))
    left = F.matmul(U, inner)
    if gU is not None and X is not None and rows > count:
        left = left + (gU - F.matmul(U, X)) / S.unsqueeze(-2)
    found = F.matmul(left, Vh)
    if gVh is not None and Y is not None and columns > count:
        found = found + F.matmul(U, (gVh - F.matmul(F.mH(Y), Vh)) / S.unsqueeze(-1))
    return found


def _turned_phase(X: Tensor | None, Y: Tensor | None) -> Any:
    """i im(diag(X - Y)); RuntimeError if im(diag(X + Y)) shows that the loss depends on a phase
    that both vectors of a pair share."""
    of_U = None if X is None else F.imag(diagonal_of(X))
    of_V = None if Y is None else F.imag(diagonal_of(Y))
    if of_U is None or of_V is None:
        total: Any = of_V if of_U is None else of_U
        difference = -total if of_U is None else total
    else:
        total, difference = of_U + of_V, of_U - of_V
    check_phase(
        total,
        "svd_backward: The singular vectors in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on this phase term, "
        "making it ill-defined.",
    )
    return F.complex(F.zeros_like(difference), difference)
