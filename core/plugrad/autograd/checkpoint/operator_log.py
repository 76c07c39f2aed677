"""OperatorLog: the operators that a run called, their arguments and lines, to compare two runs."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import Scope
from plugrad.tensor.base import TensorBase, sizes_of


@final
class OperatorLog(Trace):
    """A listener that notes every call of an operator.

    Attributes:
        lines: what was called, such as ``plugrad::mul.Tensor(float32[2], float32[2])``.
        stacks: the stack of each call, outermost frame first, as text.
    """

    def __init__(self, outer: Trace | None) -> None:
        super().__init__(outer)
        self.lines: list[str] = []
        self.stacks: list[list[str]] = []

    def dispatch(self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        if kind == "call":
            given = ", ".join([_describe(value) for value in args])
            self.lines.append(f"{op.qualified_name}({given})")
            import traceback

            frames = traceback.extract_stack()
            self.stacks.append(
                [f"{frame.filename}:{frame.lineno}:{frame.name}" for frame in frames]
            )
        return super().dispatch(kind, op, keyset, args)


def _describe(value: object) -> str:
    if isinstance(value, TensorBase):
        return f"{value.dtype.name}{list(sizes_of(value))}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([_describe(item) for item in value]) + "]"
    return repr(value)


@final
class log_operators(Scope):
    """Context manager: note the operators that this thread calls; its value is the OperatorLog."""

    def __init__(self) -> None:
        self.log = OperatorLog(None)

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        self.log = OperatorLog(state.trace)
        state.trace = self.log

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace = before

    def value(self) -> Any:
        return self.log
