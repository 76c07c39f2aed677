"""Records which tensors get other arrays, for code that traces a step.

On backends with immutable arrays a write puts another array into the tensor, so a trace would leave
the tracer's arrays in tensors.

A thread's `array_log` is called before, and stores the former array as a `FormerArray`, which can
restore it. `note_made`, `note_read` and `note_grad` in `base.py` also notify it of new tensors, of
values that Python reads and of gradients that Python assigns. It is also notified of an `x[i]` that
had to be a copy, because `i` is not known yet.
"""

from __future__ import annotations

from typing import Any, final

from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.tensor.aliasing.cells import Alias, Cell, Layout, alias_of, leave
from plugrad.tensor.aliasing.write_back import Step
from plugrad.tensor.base import TensorBase, replace_array


@final
class FormerArray:
    """The array that a tensor had at one time, and its place among those it shared it with."""

    def __init__(self, tensor: TensorBase) -> None:
        self.tensor = tensor
        self.array: Any = tensor._backend_array
        place = alias_of(tensor)
        self.place: Alias | None = place
        self.cell: Cell | None = None if place is None else place.cell
        self.cell_array: Any = None if place is None else place.cell.array
        self.steps: list[Step] = [] if place is None else place.steps
        self.ordered: bool = place is None or place.ordered
        self.repeats: bool = place is not None and place.repeats
        self.layout: Layout | None = None if place is None else place.layout

    def restore(self) -> None:
        """Give the tensor that array again, and that place."""
        replace_array(self.tensor, self.array)
        place = self.place
        leave(self.tensor)
        if place is not None and self.cell is not None:
            self.cell.array = self.cell_array
            place.restore(self.cell, self.steps, self.ordered, self.repeats, self.layout)


def note_array(tensor: TensorBase) -> None:
    """Notify the thread's log, if there is one, before a tensor changes. Tensors of levels are left
    out, because a level ends before its tensors could be read."""
    log = current_state().array_log
    if log is not None and tensor._keyset & TRANSFORMS_BIT == 0:
        log.note(tensor)


def note_selected(tensor: TensorBase) -> None:
    """Notify it of a copy that would be a view if the index were known."""
    log = current_state().array_log
    if log is not None:
        log.selected(tensor)


def note_stored(value: object) -> None:
    """Notify it of a value that was assigned by such an index."""
    log = current_state().array_log
    if log is not None:
        log.stored(value)
