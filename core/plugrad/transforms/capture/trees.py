"""Trees of arguments and results: dicts, lists and tuples, taken apart and put together again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tree:
    """The position of leaves in a value.

    Attributes:
        kind: the type of the container; None for a leaf.
        keys: of a dict, in the order of `children`.
    """

    kind: Any
    keys: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        inside = [str(child) for child in self.children]
        if self.keys or issubclass(self.kind, dict):
            pairs = zip(self.keys, inside, strict=True)
            return "{" + ", ".join(f"{key!r}: {text}" for key, text in pairs) + "}"
        if self.kind is list:
            return f"[{', '.join(inside)}]"
        if self.kind is tuple:
            return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
        return f"{self.kind.__name__}({', '.join(inside)})"


LEAF = Tree(None)


def flatten(value: Any, *, sort: bool = False) -> tuple[list[Any], Tree]:
    """The leaves of a value, and the tree to put them into again.

    What is neither a dict, list, tuple nor a named tuple is a leaf; subclasses of these are, too.

    Args:
        sort: take dicts apart in the order of their keys, if these have one, so that two that are
            equal have one tree.
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves, sort)


def _flatten(value: Any, leaves: list[Any], sort: bool) -> Tree:
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        keys = list(value)
        if sort and kind is dict and all(isinstance(key, str) for key in keys):
            keys.sort()
        children = tuple([_flatten(value[key], leaves, sort) for key in keys])
        return Tree(kind, tuple(keys), children)
    if kind is list or kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return Tree(kind, (), tuple([_flatten(item, leaves, sort) for item in value]))
    leaves.append(value)
    return LEAF


def unflatten(tree: Tree, leaves: list[Any]) -> Any:
    """The value that `flatten` took apart, with other leaves."""
    return _build(tree, iter(leaves))


def _build(tree: Tree, leaves: Iterator[Any]) -> Any:
    if tree.kind is None:
        return next(leaves)
    items = [_build(child, leaves) for child in tree.children]
    if issubclass(tree.kind, dict):
        return tree.kind(zip(tree.keys, items, strict=True))
    if hasattr(tree.kind, "_fields"):
        return tree.kind(*items)
    return tree.kind(items)


def paths(tree: Tree, name: str) -> list[str]:
    """Python that reads each leaf from a variable which holds the value."""
    if tree.kind is None:
        return [name]
    keys: Any = tree.keys if issubclass(tree.kind, dict) else range(len(tree.children))
    return [
        path
        for key, child in zip(keys, tree.children, strict=True)
        for path in paths(child, f"{name}[{key!r}]")
    ]


def source(tree: Tree, leaves: list[str], kinds: dict[Any, str]) -> str:
    """Python that builds the value from expressions of its leaves and of its `containers`."""
    return _source(tree, iter(leaves), kinds)


def _source(tree: Tree, leaves: Iterator[str], kinds: dict[Any, str]) -> str:
    if tree.kind is None:
        return next(leaves)
    items = [_source(child, leaves, kinds) for child in tree.children]
    if tree.kind is list:
        return f"[{', '.join(items)}]"
    if tree.kind is tuple:
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if issubclass(tree.kind, dict):
        pairs = zip(tree.keys, items, strict=True)
        text = "{" + ", ".join(f"{key!r}: {item}" for key, item in pairs) + "}"
        return text if tree.kind is dict else f"{kinds[tree.kind]}({text})"
    return f"{kinds[tree.kind]}({', '.join(items)})"


def containers(tree: Tree) -> list[Any]:
    """The types in a tree that Python has no signs for: named tuples and ordered dicts."""
    found = [] if tree.kind in (None, dict, list, tuple) else [tree.kind]
    for child in tree.children:
        found += containers(child)
    return found
