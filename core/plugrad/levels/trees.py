"""Arguments and results of Functions: tuples, lists and dicts of tensors and other values."""

from __future__ import annotations

# Interpreted: it runs seldom.
from collections.abc import Callable
from typing import Any

from plugrad.levels.arguments import like


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree with `function(leaf)` in the place of every leaf."""
    if isinstance(tree, (list, tuple)):
        return like(tree, [map_tree(function, item) for item in tree])
    if isinstance(tree, dict):
        return {key: map_tree(function, item) for key, item in tree.items()}
    return function(tree)


def map_with(function: Callable[[Any, Any], Any], tree: Any, prefix: Any) -> Any:
    """A tree with `function(leaf, value)` in place of every leaf.

    Args:
        prefix: a tree of values with the upper structure of `tree`: its leaf applies to all leaves
            of the subtree in that place.

    Raises:
        ValueError: `tree` does not have that structure.
    """
    if not isinstance(prefix, (list, tuple, dict)):
        return map_tree(lambda leaf: function(leaf, prefix), tree)
    if isinstance(tree, dict):
        if not isinstance(prefix, dict) or prefix.keys() != tree.keys():
            raise ValueError("the trees differ")
        return {key: map_with(function, item, prefix[key]) for key, item in tree.items()}
    if not isinstance(tree, (list, tuple)) or isinstance(tree, tuple) != isinstance(prefix, tuple):
        raise ValueError("the trees differ")
    if len(tree) != len(prefix):
        raise ValueError("the trees differ")
    pairs = zip(tree, prefix, strict=True)
    return like(tree, [map_with(function, item, value) for item, value in pairs])


def leaves_of(tree: Any) -> list[Any]:
    """All that is in a tree, in order."""
    found: list[Any] = []
    map_tree(found.append, tree)
    return found


def shown(tree: Any) -> str:
    """The structure of a tree in an error message: ``(*, {'a': *})``."""
    if isinstance(tree, dict):
        return "{" + ", ".join([f"{key!r}: {shown(item)}" for key, item in tree.items()]) + "}"
    if not isinstance(tree, (list, tuple)):
        return "*"
    items = ", ".join([shown(item) for item in tree])
    if isinstance(tree, list):
        return f"[{items}]"
    return f"({items},)" if len(tree) == 1 else f"({items})"
