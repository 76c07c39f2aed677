"""Rules of resampling, which has any number of leading dimensions."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import to_front

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo


def _rule(function: Callable[..., Any]) -> Rule:
    def resample(info: VmapInfo, dims: tuple[Any, ...], self: Tensor, *how: Any) -> tuple[Any, Any]:
        return function(to_front(self, dims[0]), *how), 0

    return resample


RULES: Final[dict[str, Rule]] = {
    "_resample": _rule(F._resample),
    "_resample_backward": _rule(F._resample_backward),
}
