"""Rules of linear systems, inverses and determinants, which already take batches of matrices."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import aligned, first_of, to_front
from plugrad.ops.prepare import linear_systems as prepare

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def solve(info: VmapInfo, dims: Dims, A: Tensor, B: Tensor) -> tuple[Any, Any]:
    prepare.solve(first_of(A, dims[0]), first_of(B, dims[1]))
    left, right = aligned((A, B), dims)
    return F._linalg_solve(left, right), 0


def _of_matrices(function: Callable[..., Any], name: str) -> Rule:
    def rule(info: VmapInfo, dims: Dims, A: Tensor) -> tuple[Any, Any]:
        prepare.check_square(first_of(A, dims[0]), name)
        return function(to_front(A, dims[0])), 0

    return rule


RULES: Final[dict[str, Rule]] = {
    "_linalg_solve": solve,
    "linalg_det": _of_matrices(F.linalg_det, "linalg.det"),
    "linalg_inv": _of_matrices(F.linalg_inv, "linalg.inv"),
}
