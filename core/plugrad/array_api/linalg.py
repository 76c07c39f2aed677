"""The linear algebra extension of the array API standard."""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import Any

from plugrad import linalg as _linalg
from plugrad.array_api._array import publish
from plugrad.array_api._manipulation import matrix_transpose
from plugrad.array_api._operators import F, Tensor, own, plain
from plugrad.array_api._promotion import operands
from plugrad.array_api._reductions import accumulator
from plugrad.dtype import COMPLEX, DType
from plugrad.ops.composite import einsum as _einsum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_OF_LINALG: Any = _linalg  # which has more functions at run time


def _all_plain(results: Any) -> Any:
    """Named results, with lazy conjugation resolved."""
    if not any(each.is_conj() or each.is_neg() for each in results):
        return results
    return type(results)(tuple(plain(each) for each in results))


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, of a matrix and a vector, or of vectors.

    >>> from plugrad import array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]))
    Array([21, 43])
    """
    a, b = operands(x1, x2)
    return F.matmul(a, b)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Products summed over axes of both: the last and the first `axes`, or those named.

    >>> from plugrad import array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    plugrad.Size([2, 4])
    """
    a, b = operands(x1, x2)
    dims: Any = axes if isinstance(axes, int) else tuple(list(each) for each in axes)
    found: Tensor = _einsum.tensordot(a, b, dims)
    return found


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products of vectors along an axis; `x1` is conjugated.

    >>> from plugrad import array_api as xp
    >>> xp.vecdot(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array(11)
    """
    a, b = operands(x1, x2)
    a, b = F.movedim(a, axis, -1), F.movedim(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot(): vectors of {a.shape[-1]} and of {b.shape[-1]} elements")
    rows = F.unsqueeze(F.conj(a), -2)
    return F.matmul(rows, F.unsqueeze(b, -1)).squeeze(-1).squeeze(-1)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of another.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]])
    """
    a, b = operands(x1, x2)
    return F.outer(a, b)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1])
    """
    a, b = operands(x1, x2)
    ndim = max(a.ndim, b.ndim)
    if not -min(a.ndim, b.ndim) <= axis < ndim:
        raise IndexError(f"cross(): axis {axis} is out of range")
    a = a.reshape((1,) * (ndim - a.ndim) + tuple(a.shape))
    b = b.reshape((1,) * (ndim - b.ndim) + tuple(b.shape))
    return _linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of matrices.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array(6.)
    """
    return _linalg.det(x)


def slogdet(x: Tensor, /) -> Any:
    """The signs of determinants, and the logarithms of their absolute values.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.slogdet(xp.asarray([[-1.0, 0.0], [0.0, 1.0]])).sign
    Array(-1.)
    """
    return _all_plain(_OF_LINALG.slogdet(x))


def inv(x: Tensor, /) -> Tensor:
    """The inverses of matrices.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5000, 0.0000],
           [0.0000, 0.2500]])
    """
    return _linalg.inv(x)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverses of matrices; singular values below `rtol` times the largest are 0.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]])).shape
    plugrad.Size([1, 2])
    """
    found: Tensor = _OF_LINALG.pinv(x, rtol=rtol)
    return plain(found)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values are above `rtol` times the largest.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1)
    """
    found: Tensor = _OF_LINALG.matrix_rank(x, rtol=rtol)
    return plain(found)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Matrices to an integer power.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    Array([[1., 3.],
           [0., 1.]])
    """
    return _linalg.matrix_power(x, n)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of linear systems; `x2` is one vector only if it has one dimension.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1.0000, 0.5000])
    """
    a, b = operands(x1, x2)
    if b.ndim == 1:
        return F.squeeze(_linalg.solve(a, F.unsqueeze(b, -1)), -1)
    if b.ndim < a.ndim:  # PyTorch may take it for a batch of vectors.
        b = b.reshape((1,) * (a.ndim - b.ndim) + tuple(b.shape))
    return _linalg.solve(a, b)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive definite matrices.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 0.0], [0.0, 9.0]]))
    Array([[2., 0.],
           [0., 3.]])
    """
    found: Tensor = _OF_LINALG.cholesky(x, upper=upper)
    return plain(found)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The QR decompositions of matrices, with fields `Q` and `R`.

    >>> from plugrad import array_api as xp
    >>> q, r = xp.linalg.qr(xp.ones((3, 2)))
    >>> q.shape, r.shape
    (plugrad.Size([3, 2]), plugrad.Size([2, 2]))
    """
    return _all_plain(_OF_LINALG.qr(x, mode))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decompositions of matrices, with fields `U`, `S` and `Vh`.

    >>> from plugrad import array_api as xp
    >>> u, s, vh = xp.linalg.svd(xp.ones((3, 2)), full_matrices=False)
    >>> u.shape, s.shape, vh.shape
    (plugrad.Size([3, 2]), plugrad.Size([2]), plugrad.Size([2, 2]))
    """
    return _all_plain(_OF_LINALG.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, in descending order.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.])
    """
    found: Tensor = _OF_LINALG.svdvals(x)
    return plain(found)


def eigh(x: Tensor, /) -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    >>> from plugrad import array_api as xp
    >>> values, vectors = xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    >>> values
    Array([1., 2.])
    """
    return _all_plain(_OF_LINALG.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian matrices, in ascending order.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.])
    """
    found: Tensor = _OF_LINALG.eigvalsh(x)
    return plain(found)


def eig(x: Tensor, /) -> Any:
    """The eigenvalues and eigenvectors of matrices, complex ones.

    >>> from plugrad import array_api as xp
    >>> values, vectors = xp.linalg.eig(xp.eye(2))
    >>> values.dtype, vectors.shape
    (plugrad.complex64, plugrad.Size([2, 2]))
    """
    return _all_plain(_OF_LINALG.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of matrices, complex ones.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.eigvals(xp.eye(2))
    Array([1.+0.j, 1.+0.j])
    """
    found: Tensor = _OF_LINALG.eigvals(x)
    return plain(found)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Views of the diagonals of matrices.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    Array([1, 4])
    """
    return F.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of diagonals.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    Array(5)
    """
    return F.sum(diagonal(x, offset=offset), -1, dtype=accumulator(x, dtype))


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """The norms of vectors along axes, by default the norm of all elements.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    Array(5.)
    """
    if axis == ():
        x, axis, keepdims = F.unsqueeze(x, -1), -1, False
    if x.dtype.category < COMPLEX and ord == 0:
        return F.sum(x != 0, axis, keepdims, dtype=x.dtype)
    return own(_linalg.vector_norm(x, ord, axis, keepdims))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """The norms of matrices.

    >>> from plugrad import array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5.)
    """
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


publish(globals())
