"""Rule of matrix exponentials, which already take batches of matrices."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import first_of, to_front
from plugrad.ops.on_demand.prepare import matrix_functions as prepare

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo


def matrix_exp(info: VmapInfo, dims: tuple[Any, ...], self: Tensor) -> tuple[Any, Any]:
    prepare.matrix_exp(first_of(self, dims[0]))
    return F.linalg_matrix_exp(to_front(self, dims[0])), 0


RULES: Final[dict[str, Rule]] = {"linalg_matrix_exp": matrix_exp}
