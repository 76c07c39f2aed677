"""Joins elementwise calls: one function computes them block by block, so that intermediate results
stay in the cache.

A group is a tree. Its root is the last call; below it are calls with results that only one other
call of the group reads. The package that provides the kernels also makes the function
(`Variant.joins`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.backends.links import Link, Operand
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.transforms.capture.aliases import Aliases
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.node import Node, Ref
from plugrad.transforms.lowering.kernel_calls import Call
from plugrad.transforms.lowering.step import Step

# Calls that are joined at most: each keeps a block of elements in the cache.
MOST: Final = 16


class Groups:
    """Which calls of a step can be joined.

    Args:
        step: the captured step.
        calls: for each node its calls, None if it is called on tensors.
        values: by name, tensors like those that nodes read and make.
    """

    def __init__(self, step: Step, calls: list[list[Call] | None], values: dict[str, Any]) -> None:
        self._step = step
        self._values = values
        self._aliases = Aliases(step.graph)
        nodes = step.graph.nodes
        self._calls: dict[int, Call] = {}
        for number, (node, found) in enumerate(zip(nodes, calls, strict=True)):
            if found is not None and len(found) == 1 and self._is_link(node, found[0]):
                self._calls[number] = found[0]
        self._readers: dict[str, set[int]] = {}
        for number, node in enumerate(nodes):
            for name in node.reads():
                self._readers.setdefault(name, set()).add(number)
        self._maker = {str(nodes[number].results[0]): number for number in self._calls}

    def _is_link(self, node: Node, call: Call) -> bool:
        """Whether a call gives an array like all that it is given."""
        if call.joins is None or call.writes or call.into or node.random or not node.single:
            return False
        name = node.results[0]
        if name is None or name not in node.defines():
            return False
        made = self._values[name]
        for value in call.arguments:
            if not isinstance(value, (Ref, int, float, str)) and value is not None:
                return False
            if isinstance(value, Ref) and not self._is_like(self._values[value.name], made):
                return False
        return self._is_like(made, made)

    def _is_like(self, value: Any, made: TensorBase) -> bool:
        if not isinstance(value, TensorBase):
            return isinstance(value, float)  # a number that is followed
        sizes = sizes_of(made)
        return (
            0 not in sizes
            and len(sizes) > 0
            and value.dtype is made.dtype
            and sizes_of(value) == sizes
            and self._step.active.backend.is_contiguous(value._backend_array)
        )

    def found(self) -> list[list[int]]:
        """The numbers of the nodes of each group, in their order; the last one is the root."""
        root_of: dict[int, int] = {}
        members: dict[int, list[int]] = {}
        for number in sorted(self._calls):
            group = [number]
            for name in dict.fromkeys(self._step.graph.nodes[number].reads()):
                below = self._maker.get(name)
                if below is None or not self._can_join(below, number, name):
                    continue
                others = members[root_of[below]]
                if len(group) + len(others) > MOST or not self._unchanged(others, number):
                    continue
                del members[root_of[below]]
                group = [*others, *group]
            group = sorted(group)
            members[number] = group
            for each in group:
                root_of[each] = number
        return [group for group in members.values() if len(group) > 1]

    def _can_join(self, below: int, number: int, name: str) -> bool:
        return (
            self._readers[name] == {number}
            and name not in self._kept()
            and self._aliases.places(name) == {name}
            and self._calls[below].joins == self._calls[number].joins
        )

    def _kept(self) -> set[str]:
        return {*self._step.results, *self._step.graph.needed()}

    def _unchanged(self, group: list[int], until: int) -> bool:
        """Whether a group's inputs stay unchanged until it runs."""
        nodes = self._step.graph.nodes
        for number in group:
            places = self._aliases.all_places(nodes[number].reads())
            for other in nodes[number + 1 : until]:
                if not places.isdisjoint(self._aliases.written(other)):
                    return False
        return True

    def joined(self, group: list[int]) -> tuple[Node, Call] | None:
        """A group as one node with its call; None if its provider does not join it."""
        nodes = self._step.graph.nodes
        inputs: list[str] = []
        made = {str(nodes[number].results[0]): place for place, number in enumerate(group)}
        links: list[Link] = []
        for number in group:
            call = self._calls[number]
            arguments: list[Any] = []
            for value in call.arguments:
                if not isinstance(value, Ref):
                    arguments.append(value)
                elif value.name in made:
                    arguments.append(Operand(True, made[value.name]))
                else:
                    if value.name not in inputs:
                        inputs.append(value.name)
                    arguments.append(Operand(False, inputs.index(value.name)))
            links.append(Link(call.function, tuple(arguments)))
        root = self._calls[group[-1]]
        function = root.joins(links)
        if function is None:
            return None
        refs = tuple([Ref(name) for name in inputs])
        node = replace(nodes[group[-1]], values=refs)
        kernels = [self._calls[number] for number in group]
        otherwise = Call(one_by_one(self._step.active, kernels, links), refs)
        return node, Call(function, refs, otherwise=otherwise, takes_out=True)


def one_by_one(active: ActiveBackend, calls: list[Call], links: list[Link]) -> Callable[..., Any]:
    """The computation of a group's function, as the calls that it replaces."""
    functions = [_declining(call) for call in calls]

    def compute(*inputs: Any) -> Any:
        results: list[Any] = []
        for function, link in zip(functions, links, strict=True):
            arguments = [
                (results if value.of_link else inputs)[value.number]
                if isinstance(value, Operand)
                else value
                for value in link.arguments
            ]
            results.append(active.taken(function(*arguments), "a joined call"))
        return results[-1]

    return compute


def _declining(call: Call) -> Callable[..., Any]:
    """A call's function, and the next one if it declines."""
    first, other = call.function, call.otherwise
    if other is None:
        return first  # type: ignore[no-any-return]

    def run(*arguments: Any) -> Any:
        found = first(*arguments)
        return other.function(*arguments) if found is NotImplemented else found

    return run


def with_joined(graph: Graph, joined: dict[str, tuple[Node, Call]], gone: set[str]) -> Graph:
    """The graph with groups in the place of their last nodes, without the nodes before those."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name in joined:
            nodes.append(joined[node.name][0])
        elif node.name not in gone:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))
