"""Makes a registration of several steps atomic: completely or not at all, even after an
interrupt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope


class Transaction(Scope):
    """Context manager: undoes what its block does unless the block reaches `commit()`.

    Steps may run twice, and before what they undo has been done.

    Attributes:
        handles: the registrations of the block: objects with `remove()`.
    """

    def __init__(self, kept: list[Any]) -> None:
        """`kept` gets the handles of a block that ends without an error."""
        self.kept = kept
        self.handles: list[Any] = []
        self._undo: list[Callable[[], object]] = []
        self._finish: list[Callable[[], object]] = []
        self._is_whole = False

    def on_failure(self, step: Callable[[], object]) -> None:
        """Call `step` if the block fails, before the steps that were added earlier."""
        self._undo.append(step)

    def on_success(self, step: Callable[[], object]) -> None:
        """Call a function once the registrations are final."""
        self._finish.append(step)

    def commit(self) -> None:
        """The block is through: nothing is undone."""
        self._is_whole = True

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        pass

    def value(self) -> Transaction:
        return self

    def restore(self, state: LocalState, before: Any) -> None:
        if self._is_whole:
            known = {id(handle) for handle in self.kept}
            self.kept.extend([one for one in self.handles if id(one) not in known])
            for step in self._finish:
                step()
            return
        for handle in reversed(self.handles):
            handle.remove()
        for step in reversed(self._undo):
            step()
