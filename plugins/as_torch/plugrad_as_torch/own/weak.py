"""`torch.utils.weak`: dicts with tensors as keys, compared by identity and held weakly."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

_Entries = dict[Any, Any]

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that equals every other one to the same object, and hashes by the object's
    id."""

    def __new__(cls, key: Any, callback: Any = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    _id: int

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        here, there = self(), other() if isinstance(other, WeakIdRef) else None
        return self is other if here is None or there is None else here is there


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict by the identity of its keys; an entry disappears with its key.

    >>> import plugrad
    >>> x, y = plugrad.zeros(2), plugrad.zeros(2)
    >>> names = WeakTensorKeyDictionary({x: "x"})
    >>> names[x], y in names
    ('x', False)
    >>> del x
    >>> len(names)
    0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: _Entries = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _drop(self, reference: Any) -> None:
        self.data.pop(reference, None)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[self.ref_type(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._drop)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no weak reference to it is possible
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            if (key := reference()) is not None:
                yield key

    def __len__(self) -> int:
        return sum(reference() is not None for reference in list(self.data))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Any) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        """The tensor, or None if it has been freed."""
        return self.ref()
