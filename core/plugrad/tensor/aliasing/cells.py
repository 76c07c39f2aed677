"""Cells: what tensors on immutable arrays have in place of shared memory, and each tensor's place
in it.

Only `tensor/aliasing/functionalize.py` changes them.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Final, final

from plugrad.dispatch.fork import hold_each_while_forking, hold_while_forking
from plugrad.tensor.aliasing.write_back import SAME_ELEMENTS, Step
from plugrad.tensor.base import TensorBase

# Strides and offset, in elements.
Layout = tuple[tuple[int, ...], int]


@final
class Cell:
    """Replaces the common memory of a group of tensors.

    Attributes:
        array: the array of the tensor that is the base of all others, even after it was freed.
        members: the living tensors of the group, by id.
        lock: held while the array is replaced.
    """

    def __init__(self, array: Any) -> None:
        self.array: Any = array
        self.members: dict[int, Alias] = {}
        self.lock: Any = threading.RLock()


@final
class Alias:
    """A tensor's place in a cell.

    Attributes:
        steps: the operators that lead to it from the cell's array.
        ordered: whether it has all elements, in their order.
        repeats: whether some of its elements may share memory, as after `expand`.
        layout: its strides and offset, computed on first use.
    """

    def __init__(self, tensor: TensorBase, cell: Cell) -> None:
        self.key: int = id(tensor)
        self.cell = cell
        self.steps: list[Step] = []
        self.ordered: bool = True
        self.repeats: bool = False
        self.layout: Layout | None = None
        self.ref: Any = weakref.ref(tensor, self.forget)

    def forget(self, ref: Any) -> None:
        """The tensor was freed."""
        if self.cell.members.get(self.key) is self:
            del self.cell.members[self.key]
        if _aliases.get(self.key) is self:
            del _aliases[self.key]

    def restore(
        self,
        cell: Cell,
        steps: list[Step],
        ordered: bool,
        repeats: bool,
        layout: Layout | None,
    ) -> None:
        """Be in a cell again, at a place that it had before."""
        self.cell = cell
        self.steps = steps
        self.ordered = ordered
        self.repeats = repeats
        self.layout = layout
        cell.members[self.key] = self
        _aliases[self.key] = self

    def follow(self, other: Alias, step: Step | None) -> None:
        """Be where `step` leads to from another place of the cell; None: at that place."""
        self.ordered = other.ordered
        self.repeats = other.repeats
        if step is None:
            self.steps = other.steps
            self.layout = other.layout
            return
        self.steps = [*other.steps, step]
        self.layout = None
        if step[0].name not in SAME_ELEMENTS:
            self.ordered = False
            self.repeats = other.repeats or step[0].name not in _DISTINCT


# Views that read each element of their source at most once.
_DISTINCT: Final = frozenset(
    (
        "permute",
        "transpose",
        "t",
        "slice",
        "select",
        "diagonal",
        "real",
        "imag",
        "view_as_real",
        "view_as_complex",
        "_view_dtype",
    )
)

# Only tensors that have views, or are such, are in here.
_aliases: Final[dict[int, Alias]] = {}
# Held while a tensor gets its first cell.
ENTERING: Final[Any] = threading.RLock()
hold_while_forking(ENTERING)


def _locks() -> list[Any]:
    """The locks of all cells; no cell is made while `ENTERING` is held."""
    cells = {id(place.cell): place.cell for place in list(_aliases.values())}
    return [cell.lock for cell in cells.values()]


hold_each_while_forking(_locks)


def alias_of(tensor: TensorBase) -> Alias | None:
    """The tensor's place in a cell; None if it shares nothing."""
    found = _aliases.get(id(tensor))
    if found is None or found.ref() is not tensor:
        return None
    return found


def enter(tensor: TensorBase, cell: Cell) -> Alias:
    """Give a tensor a place in a cell, at first without steps."""
    made = Alias(tensor, cell)
    _aliases[made.key] = made
    cell.members[made.key] = made
    return made


def leave(tensor: TensorBase) -> None:
    """Take a tensor out of its cell: writes to the others no longer affect it."""
    place = alias_of(tensor)
    if place is not None:
        place.forget(None)
