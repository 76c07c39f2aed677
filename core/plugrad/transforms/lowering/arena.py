"""A memory plan: which results of kernels go where in one arena, by their lifetimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.transforms.capture.aliases import Aliases
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.node import Node

ALIGNMENT: Final = 64


def takes_out(function: Any) -> bool:
    """Whether a kernel on arrays writes into an array that it is given as `out`: NumPy's
    elementwise functions do, and kernels with an attribute `takes_out`."""
    if isinstance(function, np.ufunc):
        return function.nout == 1
    return bool(getattr(function, "takes_out", False))


@dataclass
class Part:
    """A value's place in the arena; `strides` count bytes."""

    name: str
    born: int
    dies: int
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    native: Any
    over_argument: bool
    offset: int = -1


class Plan:
    """Where values are that kernels write with `out=`.

    Args:
        graph: the operators.
        results: names of values that leave a run, and so have their own memory.
        active: the backend; one that makes no arena has an empty plan.
    """

    def __init__(self, graph: Graph, results: tuple[str, ...], active: ActiveBackend) -> None:
        self.parts: list[Part] = []
        self.size = 0
        self.total = 0
        self._active = active
        aliases = Aliases(graph)
        self._aliases = aliases
        self._given = aliases.all_places(list(results))
        self._last: dict[str, int] = {}
        for number, node in enumerate(graph.nodes):
            for name in (*node.reads(), *node.defines()):
                for place in aliases.places(name) if name in aliases._roots else ():
                    self._last[place] = number
        self._buffers: dict[str, int] = {}
        self._memory: list[Any] = []

    def add(self, number: int, name: str, array: Any, function: Any) -> None:
        """Plan memory for a result; `array` is an example of it, `number` is its node's."""
        if not isinstance(array, np.ndarray) or array.ndim == 0 or array.size == 0:
            return
        if self._aliases.places(name) != {name} or name in self._given:
            return
        steps = sorted(zip(array.strides, array.shape, strict=True))
        dense = array.itemsize
        for step, size in steps:
            if size > 1:
                if step != dense:
                    return
                dense *= size
        self.parts.append(
            Part(
                name,
                number,
                self._last[name],
                -(-array.nbytes // ALIGNMENT) * ALIGNMENT,
                array.shape,
                array.strides,
                array.dtype,
                isinstance(function, np.ufunc) and function.signature is None,
            )
        )

    def has(self, name: str) -> bool:
        """Whether a value has a place in the arena."""
        return any(part.name == name for part in self.parts)

    def ends(self, number: int, node: Node) -> bool:
        """Whether the only value that a node reads was made in the run, and is not requested after
        it, by whatever name."""
        read, made = node.reads(), node.defines()
        if len(read) != 1 or len(made) != 1:
            return False
        (source,) = read
        places = self._aliases.places(source)
        return places == {source} and source not in self._given and self._last[source] == number

    def finish(self) -> None:
        """Give every value its place: the lowest that is free while it lives."""
        placed: list[Part] = []
        for part in self.parts:
            taken = sorted(
                (other.offset, other.offset + other.size)
                for other in placed
                # One that dies here may be overwritten by a function that works by elements.
                if other.dies > part.born or (other.dies == part.born and not part.over_argument)
            )
            at = 0
            for start, end in taken:
                if start - at >= part.size:
                    break
                at = max(at, end)
            part.offset = at
            placed.append(part)
            self.size = max(self.size, at + part.size)
        self.total = sum(part.size for part in self.parts)
        if not self.parts or self.allocate() == []:
            self.parts, self.size, self.total = [], 0, 0
        self._buffers = {part.name: number for number, part in enumerate(self.parts)}

    def buffer(self, name: str) -> int | None:
        """The number of a value's place, if it has one."""
        return self._buffers.get(name)

    def allocate(self) -> list[Any]:
        """Arrays for all places, in new memory."""
        if not self.parts:
            return []
        parts = [(part.offset, part.shape, part.strides, part.native) for part in self.parts]
        found = self._active.backend.arena(self.size, parts)
        self._memory = found or []
        return self._memory

    def holds(self, array: Any) -> bool:
        """Whether an array is in the memory that was allocated last."""
        return any(np.may_share_memory(array, part) for part in self._memory)
