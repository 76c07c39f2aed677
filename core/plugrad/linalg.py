"""plugrad.linalg: linear algebra under PyTorch's names.

>>> import plugrad
>>> plugrad.linalg.inv(plugrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
tensor([[0.5000, 0.0000],
        [0.0000, 0.2500]])
"""

from __future__ import annotations

# Interpreted: it only gives other names.
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from plugrad._generated import functions as _functions
from plugrad.errors import LinAlgError
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import int_list_argument, raise_argument_error, scalar_argument
from plugrad.tensor.calls.outputs import write_out
from plugrad.tensor.calls.promotion import is_scalar

if TYPE_CHECKING:
    # The same functions, with the types that users see.
    from plugrad import Tensor, matmul, matrix_power
    from plugrad import linalg_cholesky as cholesky
    from plugrad import linalg_cholesky_ex as cholesky_ex
    from plugrad import linalg_cond as cond
    from plugrad import linalg_cross as cross
    from plugrad import linalg_det as det
    from plugrad import linalg_diagonal as diagonal
    from plugrad import linalg_eig as eig
    from plugrad import linalg_eigh as eigh
    from plugrad import linalg_eigvals as eigvals
    from plugrad import linalg_eigvalsh as eigvalsh
    from plugrad import linalg_householder_product as householder_product
    from plugrad import linalg_inv as inv
    from plugrad import linalg_inv_ex as inv_ex
    from plugrad import linalg_ldl_factor as ldl_factor
    from plugrad import linalg_ldl_factor_ex as ldl_factor_ex
    from plugrad import linalg_ldl_solve as ldl_solve
    from plugrad import linalg_lstsq as lstsq
    from plugrad import linalg_lu as lu
    from plugrad import linalg_lu_factor as lu_factor
    from plugrad import linalg_lu_factor_ex as lu_factor_ex
    from plugrad import linalg_lu_solve as lu_solve
    from plugrad import linalg_matrix_exp as matrix_exp
    from plugrad import linalg_matrix_rank as matrix_rank
    from plugrad import linalg_pinv as pinv
    from plugrad import linalg_qr as qr
    from plugrad import linalg_slogdet as slogdet
    from plugrad import linalg_solve as solve
    from plugrad import linalg_solve_ex as solve_ex
    from plugrad import linalg_solve_triangular as solve_triangular
    from plugrad import linalg_svd as svd
    from plugrad import linalg_svdvals as svdvals
    from plugrad import linalg_tensorinv as tensorinv
    from plugrad import linalg_tensorsolve as tensorsolve
    from plugrad import linalg_vander as vander
    from plugrad import linalg_vector_norm as vector_norm
else:
    from plugrad._generated.functions import linalg_cross as cross
    from plugrad._generated.functions import linalg_det as det
    from plugrad._generated.functions import linalg_inv as inv
    from plugrad._generated.functions import linalg_solve as solve
    from plugrad._generated.functions import linalg_vector_norm as vector_norm
    from plugrad._generated.functions import matmul, matrix_power

    def __getattr__(name: str) -> Any:
        """A function of a family that is loaded on demand."""
        if name in __all__:
            found = globals()[name] = getattr(_functions, f"linalg_{name}")
            return found
        raise AttributeError(f"module 'plugrad.linalg' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


@explains(name="linalg_matrix_norm")
def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Tensor:
    """A norm of matrices: "fro"; 1, -1, inf or -inf, of the sums over columns or rows; or
    "nuc", 2 or -2, of the singular values.

    Raises:
        RuntimeError: `A` is not a matrix, or `ord` is none of these.

    >>> import plugrad
    >>> plugrad.linalg.matrix_norm(plugrad.ones(2, 2))
    tensor(2.)
    """
    if out is not None:
        return _write("matrix_norm", out, matrix_norm(A, ord, dim, keepdim, dtype=dtype))
    if A.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    dim = int_list_argument(dim, "linalg_matrix_norm", "dim", 3)
    if len(dim) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(d) for d in dim)}"
        )
    rows, columns = (wrap_dim(place, A.ndim) for place in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({rows}, {columns})")
    if isinstance(ord, str) and ord == "fro":
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if not isinstance(ord, str):
        if not is_scalar(ord) and not (isinstance(ord, TensorBase) and ord.ndim == 0):
            raise_argument_error("linalg_matrix_norm", "ord", 2, "Number or str", ord)
        ord = scalar_argument(ord, "linalg_matrix_norm", "ord", 2)
        if isinstance(ord, complex):
            raise RuntimeError(
                "linalg.matrix_norm: Expected a non-complex scalar as the order of norm."
            )
    if ord in ("nuc", 2, -2):
        return _of_singular_values(A, ord, (rows, columns), keepdim, dtype)
    if isinstance(ord, str) or abs(ord) not in (1, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(summed, keepdim=keepdim, dtype=dtype)
    is_empty = A.shape[chosen] == 0
    if not keepdim and chosen > summed:
        chosen -= 1
    if is_empty and ord > 0:
        return sums.sum(chosen, keepdim)  # the largest of no sums of absolute values is 0
    return sums.amax(chosen, keepdim) if ord > 0 else sums.amin(chosen, keepdim)


def _of_singular_values(
    A: Any, ord: Any, dims: tuple[int, int], keepdim: bool, dtype: Any
) -> Tensor:
    """The nuclear norm, or the greatest or the least singular value."""
    if dtype is not None:
        A = A.to(dtype)
    values: Any = _functions.linalg_svdvals(A.movedim(dims, (-2, -1)))
    if ord == -2:
        found = values.amin(-1)
    elif ord == "nuc" or values.shape[-1] == 0:
        found = values.sum(-1)
    else:
        found = values.amax(-1)
    if keepdim:
        for place in sorted(dims):
            found = found.unsqueeze(place)
    norms: Tensor = found
    return norms


@explains(name="linalg_norm")
def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Tensor:
    """A norm of all elements, of vectors along one dimension, or of matrices along two.

    With `ord`, and without `dim`, `A` is a vector or a matrix.

    >>> import plugrad
    >>> plugrad.linalg.norm(plugrad.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if out is not None:
        return _write("norm", out, norm(A, ord, dim, keepdim, dtype=dtype))
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    pair = isinstance(dim, (tuple, list)) and len(dim) == 2
    if dim is None and A.ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{A.ndim}D."
        )
    if pair or (dim is None and A.ndim == 2):
        return matrix_norm(A, ord, dim if pair else (-2, -1), keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} is one of matrices.")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


@explains(name="linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """The dot products of vectors along a dimension; `x` is conjugated.

    >>> import plugrad
    >>> x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> plugrad.linalg.vecdot(x, x)
    tensor([ 5., 25.])
    """
    found = (x.conj() * y).sum(dim)
    return found if out is None else _write("vecdot", out, found)


def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The product of several matrices, from left to right; the outer ones may be vectors.

    >>> import plugrad
    >>> a, b, c = plugrad.ones(2, 3), plugrad.ones(3, 4), plugrad.ones(4, 1)
    >>> plugrad.linalg.multi_dot([a, b, c])
    tensor([[12.],
            [12.]])
    """
    found = functools.reduce(matmul, tensors)
    return found if out is None else _write("multi_dot", out, found)


def _write(function: str, out: Any, result: Any) -> Tensor:
    written: Any = write_out(function, out, result)
    return cast("Tensor", written)
