"""Single nodes of `torch.utils._pytree`: how each kind of container is flattened, and the keys of
its entries."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import optree

__all__ = [
    "_defaultdict_flatten",
    "_defaultdict_unflatten",
    "_deque_flatten",
    "_deque_unflatten",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_list_flatten",
    "_list_flatten_with_keys",
    "_list_unflatten",
    "_namedtuple_flatten",
    "_namedtuple_flatten_with_keys",
    "_namedtuple_unflatten",
    "_ordereddict_flatten",
    "_ordereddict_unflatten",
    "_tuple_flatten",
    "_tuple_flatten_with_keys",
    "_tuple_unflatten",
]

_Flat: TypeAlias = tuple[list[Any], Any]


@dataclass(frozen=True)
class MappingKey:
    """The key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The dict's value for this key."""
        return mapping[self.key]


@dataclass(frozen=True)
class SequenceKey:
    """The position in a list or a tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item at this position."""
        return sequence[self.idx]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute, such as the field of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute of an object."""
        return getattr(obj, self.name)


KeyPath: TypeAlias = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """A path as text.

    >>> keystr((MappingKey("a"), SequenceKey(2), GetAttrKey("b")))
    "['a'][2].b"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The object at the end of a path.

    >>> key_get({"a": [5]}, (MappingKey("a"), SequenceKey(0)))
    5
    """
    for key in kp:
        obj = key.get(obj)
    return obj


def key_path(accessor: optree.PyTreeAccessor) -> KeyPath:
    """The path of a leaf, from optree's."""
    return tuple(map(_key, accessor))


def _key(entry: optree.PyTreeEntry) -> Any:
    if isinstance(entry, optree.NamedTupleEntry):
        return GetAttrKey(entry.field)
    if isinstance(entry, optree.GetAttrEntry):
        return GetAttrKey(entry.name)
    return (
        MappingKey(entry.entry)
        if isinstance(entry, optree.MappingEntry)
        else SequenceKey(entry.entry)
    )


def _list_flatten(d: list[Any]) -> _Flat:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _tuple_flatten(d: tuple[Any, ...]) -> _Flat:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _list_flatten_with_keys(d: Any) -> _Flat:
    return [(SequenceKey(place), value) for place, value in enumerate(d)], None


_tuple_flatten_with_keys = _list_flatten_with_keys


def _dict_flatten(d: dict[Any, Any]) -> _Flat:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> _Flat:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


_ordereddict_flatten = _dict_flatten


def _ordereddict_unflatten(values: Iterable[Any], context: Any) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> _Flat:
    values, keys = _dict_flatten(d)
    return values, [d.default_factory, keys]


def _defaultdict_unflatten(values: Iterable[Any], context: Any) -> defaultdict[Any, Any]:
    factory, keys = context
    return defaultdict(factory, _dict_unflatten(values, keys))


def _deque_flatten(d: deque[Any]) -> _Flat:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Any) -> deque[Any]:
    return deque(values, maxlen=context)


def _namedtuple_flatten(d: Any) -> _Flat:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Any) -> Any:
    return context(*values)


def _namedtuple_flatten_with_keys(d: Any) -> _Flat:
    keyed = [(GetAttrKey(name), value) for name, value in zip(d._fields, d, strict=True)]
    return keyed, type(d)


class NodeDef(NamedTuple):
    """How objects of a class are flattened and rebuilt."""

    type: Any
    flatten_fn: Callable[[Any], _Flat]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], _Flat] | None = None


_NODES: Final = (
    NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    NodeDef(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten),
    NodeDef(deque, _deque_flatten, _deque_unflatten, _list_flatten_with_keys),
)
# By class; all named tuples are under the function `namedtuple`, as in PyTorch. This table is for
# programs that read it; optree has its own, and `register_pytree_node` updates both.
SUPPORTED_NODES: Final[dict[Any, NodeDef]] = {node.type: node for node in _NODES}


def node_type(tree: Any) -> Any:
    """The key of an object in `SUPPORTED_NODES`, if it has one: its class, or `namedtuple`."""
    if type(tree) not in SUPPORTED_NODES and optree.is_namedtuple_instance(tree):
        return namedtuple
    return type(tree)
