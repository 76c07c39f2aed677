"""Context: what the groups of a model share: orders, from which comes what is gathered next, and
the end of a backward pass."""

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
    """What the units of a model share.

    Attributes:
        units: in the order of `modules()`.
        running: the unit whose forward is the outermost one that runs.
        underway: reductions of gradients that are not finished.
        is_last_backward: whether the next backward pass waits for reductions at its end.
    """

    def __init__(self, units: list[Unit]) -> None:
        self.units = units
        self.running: Unit | None = None
        self.underway: list[Reduction] = []
        self.is_last_backward = True
        # Groups in the order in which this forward and the one before used them.
        self._order: list[ParameterGroup] = []
        self._former: list[ParameterGroup] = []
        # Groups in the order in which forwards that are recorded ended.
        self._ended: list[ParameterGroup] = []
        self._places: dict[int, list[int]] = {}
        self._passes: set[int] = set()

    def groups(self) -> list[ParameterGroup]:
        """Those of all units."""
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
        """The outermost forward is over."""
        self.running = None
        self._former = self._order
        for unit in self.units:
            unit.end_partial()
        for group in self.groups():
            if group.is_underway:
                # Gathered ahead, and not used.
                group.reshard()

    def next_in_forward(self, group: ParameterGroup) -> ParameterGroup | None:
        """A group is used: which one was the next after it last time."""
        place = len(self._order)
        self._order.append(group)
        if place + 1 < len(self._former) and self._former[place] is group:
            return self._former[place + 1]
        return None

    def forward_ended(self, group: ParameterGroup) -> None:
        """A recorded forward of a group is over."""
        self._places.setdefault(id(group), []).append(len(self._ended))
        self._ended.append(group)

    # Backward

    def next_in_backward(self, group: ParameterGroup) -> ParameterGroup | None:
        """The backward of a group begins: which one's forward ended before its own."""
        places = self._places.get(id(group))
        if not places:
            return None
        place = places.pop()
        return self._ended[place - 1] if place else None

    def expect_end(self) -> None:
        """Have `_end` called when the running backward pass is over."""
        number = _current_graph_task_id()
        if number == -1 or number in self._passes:
            return
        self._passes.add(number)
        engine: Any = getattr(Tensor, "_execution_engine")  # noqa: B009 - types do not know it
        engine.queue_callback(lambda: self._end(number))

    def make_room(self) -> None:
        """Let reductions move on, so that at most the newest one still has its whole gradients."""
        waiting = self.underway[:-1]
        self.underway = self.underway[-1:]
        for reduction in waiting:
            reduction.finish()
        for reduction in self.underway:
            reduction.advance()

    def _end(self, number: int) -> None:
        """A backward pass is over."""
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
        """Forget a forward or backward that failed half way, and its gradients."""
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
