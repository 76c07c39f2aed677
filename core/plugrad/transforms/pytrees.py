"""Arguments and results of transformed functions, as trees of containers, by optree.

As in PyTorch, None is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import optree
except ImportError as error:
    raise ImportError(
        "plugrad.vmap and plugrad.func take trees of tensors apart with optree, which is not "
        "installed: pip install 'plugrad[transforms]'"
    ) from error


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, and its structure."""
    try:
        leaves, structure = optree.tree_flatten(tree, none_is_leaf=True)
    except RecursionError:
        raise ValueError("expected a tree of tensors, got one that is nested too deep") from None
    return leaves, structure


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    """The tree of a structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree of `function(leaf, ...)`; `others` have the structure of the first."""
    return optree.tree_map(function, tree, *others, none_is_leaf=True)


def broadcast_to(prefix: Any, tree: Any) -> list[Any] | None:
    """One leaf of `prefix` for each leaf of `tree`; None if it is not a prefix of `tree`.

    A leaf of the prefix applies to all leaves of the subtree in its place.
    """
    try:
        leaves: list[Any] = optree.broadcast_prefix(prefix, tree, none_is_leaf=True)
    except (ValueError, TypeError):
        return None
    return leaves


def shown(structure: Any) -> str:
    """A structure in an error message: ``(*, {'a': *})``."""
    text = str(structure)
    return text.removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(", NoneIsLeaf")
