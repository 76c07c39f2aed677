"""Context: state that the groups of a model share: the orders that determine what to gather next,
and the end of a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad import Tensor
from plugrad._C import _current_graph_task_id
from plugrad_distributed.fully_sharded.group import ParameterGroup
from plugrad_distributed.fully_sharded.reduction import Reduction

if TYPE_CHECKING:
    from plugrad_distributed.fully_sharded.unit import Unit

__all__ = ["Context", "in_backward"]


def in_backward() -> bool:
    """Whether this thread runs a backward pass: a forward is a recomputation then."""
    return _current_graph_task_id() != -1


class Context:
    """The shared state of a model's units.

    Attributes:
        units: in the order of `modules()`.
        running: the unit with the outermost running forward.
        underway: unfinished reductions of gradients.
        is_last_backward: whether the next backward pass waits for reductions at its end.
    """

    def __init__(self, units: list[Unit]) -> None:
        self.units = units
        self.running: Unit | None = None
        self.underway: list[Reduction] = []
        self.is_last_backward = True
        # Groups in the order in which this forward and the previous one used them.
        self._order: list[ParameterGroup] = []
        self._former: list[ParameterGroup] = []
        # Groups in the order in which recorded forwards ended.
        self._ended: list[ParameterGroup] = []
        self._places: dict[int, list[int]] = {}
        self._passes: set[int] = set()

    def groups(self) -> list[ParameterGroup]:
        """The groups of all units."""
        return [unit.group for unit in self.units if unit.group is not None]

    # Forward

    def enter(self, unit: Unit) -> bool:
        """A forward begins; whether it is the outermost one."""
        if self.running is not None:
            return False
        self.running = unit
        self._order = []
        return True

    def leave(self) -> None:
        """The outermost forward has ended."""
        self.running = None
        self._former = self._order
        for unit in self.units:
            unit.end_partial()
        for group in self.groups():
            if group.is_underway:
                # Gathered ahead, and not used.
                group.reshard()

    def next_in_forward(self, group: ParameterGroup) -> ParameterGroup | None:
        """A group is used: returns the group that followed it last time."""
        place = len(self._order)
        self._order.append(group)
        if place + 1 < len(self._former) and self._former[place] is group:
            return self._former[place + 1]
        return None

    def forward_ended(self, group: ParameterGroup) -> None:
        """A recorded forward of a group has ended."""
        self._places.setdefault(id(group), []).append(len(self._ended))
        self._ended.append(group)

    # Backward

    def next_in_backward(self, group: ParameterGroup) -> ParameterGroup | None:
        """The backward of a group begins: returns the group with the forward that ended before its
        own."""
        places = self._places.get(id(group))
        if not places:
            return None
        place = places.pop()
        return self._ended[place - 1] if place else None

    def expect_end(self) -> None:
        """Register `_end` for the end of the running backward pass."""
        number = _current_graph_task_id()
        if number == -1 or number in self._passes:
            return
        self._passes.add(number)
        engine: Any = getattr(Tensor, "_execution_engine")  # noqa: B009 - missing from the types
        engine.queue_callback(lambda: self._end(number))

    def make_room(self) -> None:
        """Let reductions progress, so that at most the newest one still holds whole gradients."""
        waiting = self.underway[:-1]
        self.underway = self.underway[-1:]
        for reduction in waiting:
            reduction.finish()
        for reduction in self.underway:
            reduction.advance()

    def _end(self, number: int) -> None:
        """A backward pass has ended."""
        self._passes.discard(number)
        for group in reversed(self.groups()):
            if group.reducer.enabled and group.reducer.has_kept:
                group.reduce([])
            group.backward_is_over()
        if self.is_last_backward:
            underway, self.underway = self.underway, []
            for reduction in underway:
                reduction.finish()
            self._ended.clear()
            self._places.clear()

    def reset(self) -> None:
        """Drop the state of a forward or backward that failed half way, and its gradients."""
        underway, self.underway = self.underway, []
        for reduction in underway:
            reduction.wait()
        self.running = None
        self._order, self._former = [], []
        self._ended.clear()
        self._places.clear()
        self._passes.clear()
        for unit in self.units:
            unit.forget_partial()
        for group in self.groups():
            group.reducer.forget()
            group.reshard()
