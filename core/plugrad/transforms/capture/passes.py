"""Passes from graph to graph: dead code elimination, common subexpressions, constant folding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plugrad._generated.calls import call_detach
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.transforms.capture.aliases import OUTSIDE, Aliases
from plugrad.transforms.capture.node import Constant, Node, Ref, with_names
from plugrad.transforms.capture.undo import silently

if TYPE_CHECKING:
    from plugrad.transforms.capture.graph import Graph

# What they return is what was in memory before.
UNDEFINED = ("empty", "empty_like", "empty_strided", "new_empty")


def dead_code(graph: Graph) -> Graph:
    aliases = Aliases(graph)
    needed = graph.needed()
    # What is read later, of whichever value, must have been written.
    places = set(aliases.all_places(sorted(needed))) | {OUTSIDE}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if (
            node.random
            or not needed.isdisjoint(node.defines())
            or not places.isdisjoint(aliases.written(node))
        ):
            kept.append(node)
            needed.update(node.reads())
            places |= aliases.all_places(node.reads())
    return replace(graph, nodes=tuple(kept[::-1])).without_unused_constants()


def common_subexpressions(graph: Graph) -> Graph:
    aliases = Aliases(graph)
    # Memory that is written to at any time, and memory that the caller gets.
    written = frozenset[str]().union(*[aliases.written(node) for node in graph.nodes])
    given = aliases.all_places(sorted(graph.needed()))
    times: dict[str, int] = {}
    first: dict[Any, Node] = {}
    names: dict[str, str] = {}
    kept: list[Node] = []
    for old in graph.nodes:
        node = old.renamed(names)
        for place in aliases.written(old):
            times[place] = times.get(place, 0) + 1
        key = _key(node, aliases, times)
        fresh = [name for name in old.defines() if aliases.places(name) == {name}]
        own = [name for name in fresh if name in written or name in given]
        if key is None or own or None in old.results:
            kept.append(node)
        elif key in first:
            pairs = zip(old.results, first[key].results, strict=True)
            names.update({a: b for a, b in pairs if a is not None and b is not None})
        else:
            first[key] = node
            kept.append(node)
    gradients = {
        owner: None if name is None else names.get(name, name)
        for owner, name in graph.gradients.items()
    }
    outputs = tuple([with_names(output, names) for output in graph.outputs])
    made = replace(graph, nodes=tuple(kept), outputs=outputs, gradients=gradients)
    return made.without_unused_constants()


def _key(node: Node, aliases: Aliases, times: dict[str, int]) -> Any:
    """What nodes agree in that compute the same; None for one that has to stay."""
    if node.random or node.writes or node.op.op.name in UNDEFINED or not node.defines():
        return None
    if set(node.defines()) != {name for name in node.results if name is not None}:
        return None  # a result is an argument itself
    reads = [(name, tuple(sorted(aliases.places(name)))) for name in node.reads()]
    state = tuple([(name, tuple([times.get(p, 0) for p in places])) for name, places in reads])
    return node.op, _hashable(node.values), node.mode, state


def _hashable(value: Any) -> Any:
    """Arguments as a key: equal only if they are spelled alike."""
    if isinstance(value, (list, tuple)):
        return tuple([_hashable(item) for item in value])
    return type(value).__name__, repr(value)


def fold_constants(graph: Graph, freeze: bool) -> Graph:
    aliases = Aliases(graph)
    written = frozenset[str]().union(*[aliases.written(node) for node in graph.nodes])
    given = aliases.all_places(sorted(graph.needed()))
    mutated = set(aliases.mutations())
    values: dict[str, Any] = {}
    for constant in graph.held.values():
        if constant.fresh or (freeze and not constant.grad_of and constant.name not in mutated):
            values[constant.name] = constant.value
    held = dict(graph.held)
    kept: list[Node] = []
    for node in graph.nodes:
        results = None
        if _folds(node, values, aliases, written, given):
            results = _computed(node, values)
        if results is None:
            kept.append(node)
            continue
        for name, result in zip(node.results, results, strict=True):
            if name is not None:
                values[name] = result
                held[name] = Constant(name, result, fresh=True)
    return replace(graph, nodes=tuple(kept), held=held).without_unused_constants()


def _folds(
    node: Node,
    values: dict[str, Any],
    aliases: Aliases,
    written: frozenset[str],
    given: frozenset[str],
) -> bool:
    """Whether a node computes the same in every run, and its result is never written to."""
    if node.random or node.writes or node.op.op.name in UNDEFINED or not node.defines():
        return False
    for name in node.reads():
        if name not in values:
            return False
        value = values[name]
        if isinstance(value, TensorBase) and node.mode == "grad" and needs_grad(value):
            return False
    places = aliases.all_places(node.defines())
    return places.isdisjoint(written) and places.isdisjoint(given)


def _computed(node: Node, values: dict[str, Any]) -> list[Any] | None:
    def resolved(value: Any) -> Any:
        if isinstance(value, Ref):
            return values[value.name]
        if isinstance(value, (list, tuple)):
            return type(value)([resolved(item) for item in value])
        return value

    with silently():
        result = node.op.op.call(resolved(node.values))
        results = [result] if node.single else list(result)
        return [call_detach(r) if isinstance(r, TensorBase) else r for r in results]
