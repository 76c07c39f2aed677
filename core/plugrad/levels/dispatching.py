"""The kernel at the key `Transforms`: a call goes to the innermost level that runs."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dispatch.kernel_hooks import set_transforms
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.levels.arguments import living_values
from plugrad.levels.batching import BatchedCall
from plugrad.levels.recording import call_recorded, make_outer_level_kernel
from plugrad.tensor.levels import VMAP, Level


@final
class TransformsKernel:
    """An operator's kernel at the key `Transforms`."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.batched = BatchedCall(op)

    def __call__(self, keyset: i64, *args: Any) -> Any:
        state = current_state()
        level: Level | None = state.level
        values = living_values(args)
        if level is None:
            # A tensor got out of its transform.
            return self.op.call(values)
        if level.kind == VMAP:
            return self.batched.call(state, level, values)
        return call_recorded(self.op, state, level, values)


def _make_transforms_kernel(op: Operator) -> TransformsKernel:
    return TransformsKernel(op)


set_transforms(_make_transforms_kernel, make_outer_level_kernel)
