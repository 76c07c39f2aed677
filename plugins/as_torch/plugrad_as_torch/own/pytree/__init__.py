"""`torch.utils._pytree`, by optree: None is a leaf, and dicts keep their order, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import optree

from plugrad_as_torch.own.pytree.nodes import (
    SUPPORTED_NODES,
    GetAttrKey,
    KeyPath,
    MappingKey,
    NodeDef,
    SequenceKey,
    key_get,
    key_path,
    keystr,
    node_type,
)

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "SUPPORTED_NODES",
    "SequenceKey",
    "_get_node_type",
    "_register_pytree_node",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_leaves_with_path",
    "tree_map_with_path",
    "treespec_leaf",
    "PyTree",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]

_Leaf = Callable[[Any], bool] | None

PyTree = Any
Context = Any
TreeSpec = optree.PyTreeSpec

# optree sorts the keys of dicts, but not in this namespace.
_NAMESPACE: Final = "plugrad_as_torch"
_in_order = optree.dict_insertion_ordered(True, namespace=_NAMESPACE)
_in_order.__enter__()


def tree_flatten(tree: Any, is_leaf: _Leaf = None) -> tuple[list[Any], Any]:
    """The leaves of a tree, and its structure.

    >>> tree_flatten({"b": 1, "a": [2, None]})[0]
    [1, 2, None]
    """
    leaves, spec = optree.tree_flatten(tree, is_leaf, none_is_leaf=True, namespace=_NAMESPACE)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: Any) -> Any:
    """The tree with this structure and these leaves."""
    if isinstance(leaves, TreeSpec):
        raise TypeError("tree_unflatten(): the leaves come first, then the structure")
    return optree.tree_unflatten(treespec, leaves)


def tree_leaves(tree: Any, is_leaf: _Leaf = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: Any, is_leaf: _Leaf = None) -> Any:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: _Leaf = None) -> bool:
    """Whether an object is a leaf and not a container of leaves.

    >>> tree_is_leaf(None), tree_is_leaf([1])
    (True, False)
    """
    return bool(optree.tree_is_leaf(tree, is_leaf, none_is_leaf=True, namespace=_NAMESPACE))


def treespec_leaf() -> Any:
    """The structure of a single leaf."""
    return optree.treespec_leaf(none_is_leaf=True, namespace=_NAMESPACE)


class _LeafType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance == treespec_leaf()


class LeafSpec(metaclass=_LeafType):
    """The class of a single leaf's structure, for `isinstance`; calling it returns that
    structure."""

    def __new__(cls) -> Any:
        return treespec_leaf()


def tree_flatten_with_path(
    tree: Any, is_leaf: _Leaf = None
) -> tuple[list[tuple[KeyPath, Any]], Any]:
    """The leaves of a tree, each with its path, and its structure.

    >>> tree_flatten_with_path({"a": [5]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    accessors, leaves, spec = optree.tree_flatten_with_accessor(
        tree, is_leaf, none_is_leaf=True, namespace=_NAMESPACE
    )
    paths = (key_path(accessor) for accessor in accessors)
    return list(zip(paths, leaves, strict=True)), spec


def tree_leaves_with_path(tree: Any, is_leaf: _Leaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with its path."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _Leaf = None
) -> Any:
    """The tree of `func(path, leaf, ...)`.

    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": [5]})
    {'a': ["['a'][0]"]}
    """
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    paths, values = [path for path, _ in leaves], [leaf for _, leaf in leaves]
    return tree_unflatten(map(func, paths, values, *others), spec)


is_namedtuple_class = optree.is_namedtuple_class
is_namedtuple_instance = optree.is_namedtuple_instance
is_structseq_class = optree.is_structseq_class
is_structseq_instance = optree.is_structseq_instance
_get_node_type = node_type


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _Leaf = None) -> Any:
    """The tree of `func(leaf, ...)`; the structure of the first tree is a prefix of the others."""
    return optree.tree_map(
        func, tree, *rests, is_leaf=is_leaf, none_is_leaf=True, namespace=_NAMESPACE
    )


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _Leaf = None) -> Any:
    """Call `func(leaf, ...)` for each leaf; returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _matches(wanted: Any) -> Callable[[Any], bool]:
    """Whether a leaf has one of these types, or the result of a function for it."""
    if callable(wanted) and not isinstance(wanted, type):
        chosen: Callable[[Any], bool] = wanted
        return chosen
    return lambda leaf: isinstance(leaf, wanted)


def tree_map_only(
    wanted: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: _Leaf = None
) -> Any:
    """`tree_map` for leaves of some types; other leaves stay unchanged."""
    chosen = _matches(wanted)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(
    wanted: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: _Leaf = None
) -> Any:
    """`tree_map_` for leaves of some types."""
    tree_map_only(wanted, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: _Leaf = None) -> bool:
    """Whether all leaves satisfy `pred`."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: _Leaf = None) -> bool:
    """Whether some leaf satisfies `pred`."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    wanted: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: _Leaf = None
) -> bool:
    """Whether all leaves of some types satisfy `pred`."""
    chosen = _matches(wanted)
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_any_only(
    wanted: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: _Leaf = None
) -> bool:
    """Whether some leaf of these types satisfies `pred`."""
    chosen = _matches(wanted)
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    **described: Any,
) -> None:
    """Flatten objects of a class, here and in `torch.func`. PyTorch's arguments for serialization
    are ignored."""
    optree.register_pytree_node(
        cls,
        flatten_fn,
        lambda context, leaves: unflatten_fn(list(leaves), context),
        namespace=optree.registry.__GLOBAL_NAMESPACE,
    )
    SUPPORTED_NODES[cls] = NodeDef(
        cls, flatten_fn, unflatten_fn, described.get("flatten_with_keys_fn")
    )


_register_pytree_node = register_pytree_node
