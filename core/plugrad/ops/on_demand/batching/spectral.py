"""Rules of Fourier transforms, which already take batches."""

# Tensor gets `__getitem__` in the class that users see.
# mypy: disable-error-code="index"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import logical_rank, physical_dims, to_front

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo


def _transform(function: Callable[..., Any]) -> Rule:
    def rule(
        info: VmapInfo, dims: tuple[Any, ...], self: Tensor, dim: tuple[int, ...], *rest: Any
    ) -> tuple[Any, Any]:
        inner = physical_dims(dim, logical_rank(self, dims[0]))
        return function(to_front(self, dims[0]), inner, *rest), 0

    return rule


RULES: Final[dict[str, Rule]] = {
    "_fft_c2c": _transform(F._fft_c2c),
    "_fft_r2c": _transform(F._fft_r2c),
    "_fft_c2r": _transform(F._fft_c2r),
}
