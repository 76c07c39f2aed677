"""Internal functions of PyTorch's distributions that other packages call."""

from __future__ import annotations

from typing import Any, Final

import plugrad
from plugrad import Tensor

__all__ = [
    "_batch_capacitance_tril",
    "_batch_lowrank_logdet",
    "_batch_lowrank_mahalanobis",
    "_batch_mahalanobis",
    "_batch_mv",
    "_precision_to_scale_tril",
    "_standard_normal",
    "euler_constant",
]

euler_constant: Final = 0.57721566490153286060


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Numbers of a normal distribution, without gradient."""
    with plugrad.no_grad():
        zeros = plugrad.zeros(shape, dtype=dtype, device=device)
        return plugrad.normal(zeros, plugrad.ones_like(zeros))


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices (..., n, m) times vectors (..., m)."""
    return plugrad.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """The squared lengths of L^-1 x, for lower triangular L (..., n, n) and x (..., n)."""
    solved = plugrad.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).square().sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a matrix."""
    reversed_factor = plugrad.linalg.cholesky(plugrad.flip(P, (-2, -1)))
    inverse = plugrad.transpose(plugrad.flip(reversed_factor, (-2, -1)), -2, -1)
    identity = plugrad.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return plugrad.linalg.solve_triangular(inverse, identity, upper=False)


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W, for W (..., n, m) and D (..., n)."""
    weighted = W.mT / D.unsqueeze(-2)
    identity = plugrad.eye(W.size(-1), dtype=W.dtype, device=W.device)
    return plugrad.linalg.cholesky(plugrad.matmul(weighted, W) + identity)


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The logarithm of the determinant of W W^T + D."""
    factor = capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return 2 * factor + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The squared length of x under the inverse of W W^T + D."""
    weighted = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.square() / D).sum(-1) - _batch_mahalanobis(capacitance_tril, weighted)
