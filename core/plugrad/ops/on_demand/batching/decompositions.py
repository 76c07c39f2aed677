"""Rules of decompositions and their solvers, which already take batches of matrices."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad.graph.support import operators
from plugrad.ops.batching.dims import aligned, for_one, logical_rank, spread, to_front

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _all_there(found: Any) -> Any:
    """`out_dims`: empty tensors stand for results that were not requested, and have no batch."""
    if not isinstance(found, tuple):
        return 0
    return [None if tuple(item.shape) == (0,) else 0 for item in found]


def _calling(name: str) -> Callable[..., Any]:
    """An operator with all its arguments by position."""
    return lambda *args: operators[name].call(args)


def _of_matrix(name: str, rank: int = 2) -> Rule:
    """The rule of an operator of one tensor, which has at least `rank` dimensions."""
    call = _calling(name)

    def rule(info: VmapInfo, dims: Dims, A: Tensor, *rest: Any) -> tuple[Any, Any]:
        if logical_rank(A, dims[0]) < rank:
            for_one(call, dims, (A, *rest))
        found = call(to_front(A, dims[0]), *rest)
        return found, _all_there(found)

    return rule


def _of_factors(name: str) -> Rule:
    """The rule of an operator of factors, pivots that belong to them, and right sides that
    broadcast."""
    call = _calling(name)

    def rule(
        info: VmapInfo, dims: Dims, LU: Tensor, pivots: Tensor, B: Tensor, *rest: Any
    ) -> tuple[Any, Any]:
        if logical_rank(LU, dims[0]) < 2 or logical_rank(B, dims[2]) < 2:
            for_one(call, dims, (LU, pivots, B, *rest))
        if dims[0] is not None or dims[1] is not None:
            LU, pivots = (
                spread(tensor, dim, info.batch_size)
                for tensor, dim in ((LU, dims[0]), (pivots, dims[1]))
            )
            left, right = aligned((LU, B), (0, dims[2]))
            missing = left.ndim - LU.ndim
            for _ in range(missing):
                pivots = pivots.unsqueeze(1)
        else:
            left, right = LU, to_front(B, dims[2])
            for _ in range(logical_rank(LU, None) - logical_rank(B, dims[2])):
                right = right.unsqueeze(1)
        return call(left, pivots, right, *rest), 0

    return rule


def _of_two(name: str, out_dims: Callable[..., Any] = lambda found: 0) -> Rule:
    """The rule of an operator of a matrix and right sides, in either order, that broadcast."""
    call = _calling(name)

    def rule(info: VmapInfo, dims: Dims, A: Tensor, B: Tensor, *rest: Any) -> tuple[Any, Any]:
        if logical_rank(A, dims[0]) < 2 or logical_rank(B, dims[1]) < 2:
            for_one(call, dims, (A, B, *rest))
        left, right = aligned((A, B), dims[:2])
        found = call(left, right, *rest)
        return found, out_dims(found)

    return rule


_MATRICES: Final = (
    "_linalg_cholesky", "linalg_qr", "geqrf", "_linalg_eigh", "linalg_eig", "_linalg_eigvals",
    "_linalg_svd", "_linalg_lu_factor", "linalg_slogdet", "_linalg_ldl_factor",
    "cholesky_inverse",
)  # fmt: skip

RULES: Final[dict[str, Callable[..., Any]]] = {
    **{name: _of_matrix(name) for name in _MATRICES},
    "_check_matrices": _of_matrix("_check_matrices", 0),
    "_lu_permutation": _of_matrix("_lu_permutation", 1),
    "linalg_lu_solve": _of_factors("linalg_lu_solve"),
    "linalg_ldl_solve": _of_factors("linalg_ldl_solve"),
    "linalg_solve_triangular": _of_two("linalg_solve_triangular"),
    "cholesky_solve": _of_two("cholesky_solve"),
    "_linalg_lstsq": _of_two("_linalg_lstsq", _all_there),
}
