"""Choices that the writer of a random program makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from plugrad.testing.random_programs.model import Draft, Variable

T = TypeVar("T")

_MODES: Final = (
    "lib.no_grad()",
    "lib.enable_grad()",
    "lib.no_grad()",
    "lib.inference_mode()",
    "lib.autograd.graph.saved_tensors_hooks(pack, unpack)",
)


class Choice:
    """Draws; whatever is first or smallest is the simplest, as hypothesis shrinks to that.

    Attributes:
        number: draws an integer from the first to the second, both included.
        faults: whether statements that are meant to raise may be written.
        modes: whether statements in other grad modes may be written.
    """

    def __init__(self, number: Callable[[int, int], int], faults: bool, modes: bool) -> None:
        self.number = number
        self.faults = faults
        self.modes = modes

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]

    def chance(self, one_in: int) -> bool:
        """True once in `one_in` times."""
        return self.number(0, one_in - 1) == one_in - 1

    def fault(self, one_in: int) -> bool:
        return self.faults and self.chance(one_in)

    def seed(self) -> int:
        return self.number(0, 99)

    def mode(self, one_in: int = 12) -> str:
        """What a statement begins with: nothing, or the mode it runs in."""
        if not self.modes or not self.chance(one_in):
            return ""
        return f"with {self.one_of(_MODES)}:"

    def variable(
        self, draft: Draft, accept: Callable[[Variable], bool] | None = None
    ) -> Variable | None:
        """A variable, rather a new one; None if none is acceptable."""
        found = [v for v in draft.variables if not v.is_integer and (accept is None or accept(v))]
        if not found:
            return None
        back = self.number(0, len(found) - 1)
        if back > 3:
            back = self.number(0, len(found) - 1)
        return found[len(found) - 1 - back]

    def grad_variable(
        self, draft: Draft, accept: Callable[[Variable], bool] | None = None
    ) -> Variable | None:
        """A variable that presumably requires grad."""
        return self.variable(draft, lambda v: v.needs_grad and (accept is None or accept(v)))
