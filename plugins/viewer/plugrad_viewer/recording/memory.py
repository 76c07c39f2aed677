"""Bytes of the arrays that operators return, by device, from their return until they are freed."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from plugrad.plugins.tracing import arrays_of


class Memory:
    """Watches arrays through weak references.

    Args:
        changed: called with a device and its bytes whenever they have changed, on any thread.

    An array may be freed in the middle of anything, so nothing here waits for a lock.
    """

    def __init__(self, changed: Callable[[str, int], None]) -> None:
        self._changed: Callable[[str, int], None] | None = changed
        self._live: dict[int, Any] = {}
        self._bytes: dict[str, int] = {}
        self._names: dict[Any, str] = {}

    def close(self) -> None:
        """Watch no longer."""
        self._changed = None
        self._live = {}

    def add(self, tensors: list[Any], given: list[Any]) -> None:
        """Count those of the arrays that own their memory and that are not among those given."""
        for tensor, array in zip(tensors, arrays_of(tensors), strict=True):
            key = id(array)
            if key in self._live or getattr(array, "base", None) is not None:
                continue  # known, or a view
            nbytes = getattr(array, "nbytes", None)
            if not isinstance(nbytes, int) or _is_among(array, given):
                continue
            device = self._name_of(tensor.device)
            try:
                watch = weakref.ref(array, functools.partial(self._freed, key, device, nbytes))
            except TypeError:
                continue  # when it goes cannot be known
            self._live[key] = watch
            self._count(device, nbytes)

    def _name_of(self, device: Any) -> str:
        name = self._names.get(device)
        if name is None:
            name = self._names[device] = str(device)
        return name

    def _freed(self, key: int, device: str, nbytes: int, watch: Any) -> None:
        if self._live.pop(key, None) is not None:
            self._count(device, -nbytes)

    def _count(self, device: str, nbytes: int) -> None:
        changed = self._changed
        if changed is not None:
            total = self._bytes[device] = self._bytes.get(device, 0) + nbytes
            changed(device, total)


def _is_among(array: Any, given: list[Any]) -> bool:
    """Whether an array is that of one of the tensors, or holds the memory behind it."""
    for each in arrays_of(given):
        while each is not None:
            if each is array:
                return True
            each = getattr(each, "base", None)
    return False
