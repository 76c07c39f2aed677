"""Which tensors got other arrays while somebody watches: who traces a step wants to know.

On backends with immutable arrays a write is another array in the tensor, so a trace would leave
tensors with the tracer's arrays behind. An `ArrayLog` knows what they had, and puts it back.
"""

from __future__ import annotations

from typing import Any, final

from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase
from plugrad.tensor.cells import Alias, Cell, Layout, alias_of, leave
from plugrad.tensor.write_back import Step


@final
class FormerArray:
    """The array that a tensor had at one time, and its place among those it shared it with."""

    def __init__(self, tensor: TensorBase) -> None:
        self.tensor = tensor
        self.array: Any = tensor.array
        place = alias_of(tensor)
        self.place: Alias | None = place
        self.cell: Cell | None = None if place is None else place.cell
        self.cell_array: Any = None if place is None else place.cell.array
        self.steps: list[Step] = [] if place is None else place.steps
        self.ordered: bool = place is None or place.ordered
        self.repeats: bool = place is not None and place.repeats
        self.layout: Layout | None = None if place is None else place.layout

    def restore(self) -> None:
        self.tensor.replace_array(self.array)
        place = self.place
        leave(self.tensor)
        if place is not None and self.cell is not None:
            self.cell.array = self.cell_array
            place.restore(self.cell, self.steps, self.ordered, self.repeats, self.layout)


@final
class ArrayLog:
    """Context manager: notes on this thread, and those that backward runs on for it, which tensors
    of a backend with immutable arrays get another array; on leaving all have their former one.

        with ArrayLog() as log:
            ...
            for tensor, before, now in log.changes():
                ...
    """

    def __init__(self) -> None:
        self.entries: dict[int, FormerArray] = {}
        self.outer: Any = None

    def __enter__(self) -> ArrayLog:
        state = current_state()
        self.outer = state.array_log
        state.array_log = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        current_state().array_log = self.outer
        for entry in self.entries.values():
            entry.restore()
        self.entries.clear()

    def note(self, tensor: TensorBase) -> None:
        """A tensor is about to get another array, or to share its own."""
        if id(tensor) not in self.entries:
            self.entries[id(tensor)] = FormerArray(tensor)

    def changes(self) -> list[tuple[TensorBase, Any, Any]]:
        """Tensors that have another array than before, that one, and what they have now."""
        return [
            (entry.tensor, entry.array, entry.tensor.array)
            for entry in self.entries.values()
            if entry.tensor.array is not entry.array
        ]


def note_array(tensor: TensorBase) -> None:
    """Tell the thread's log, if there is one, of a tensor that is about to change."""
    log = current_state().array_log
    if log is not None:
        log.note(tensor)
