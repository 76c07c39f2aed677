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

    def close(self) -> None:
        """Watch no longer."""
        self._changed = None
        self._live = {}

    def add(self, tensors: list[Any], given: list[Any]) -> None:
        """Count those of the arrays that own their memory and that are not among those given."""
        known: set[int] | None = None
        for tensor, array in zip(tensors, arrays_of(tensors), strict=True):
            if array is None or getattr(array, "base", None) is not None:
                continue  # a view
            key = id(array)
            if key in self._live:
                continue
            if known is None:
                known = {id(_owner(each)) for each in arrays_of(given)}
            nbytes = getattr(array, "nbytes", None)
            if key in known or not isinstance(nbytes, int):
                continue
            device = str(tensor.device)
            try:
                watch = weakref.ref(array, functools.partial(self._freed, key, device, nbytes))
            except TypeError:
                continue  # when it goes cannot be known
            self._live[key] = watch
            self._count(device, nbytes)

    def _freed(self, key: int, device: str, nbytes: int, watch: Any) -> None:
        if self._live.pop(key, None) is not None:
            self._count(device, -nbytes)

    def _count(self, device: str, nbytes: int) -> None:
        changed = self._changed
        if changed is not None:
            total = self._bytes[device] = self._bytes.get(device, 0) + nbytes
            changed(device, total)


def _owner(array: Any) -> Any:
    """The object that holds the memory behind an array."""
    found = array
    while (base := getattr(found, "base", None)) is not None:
        found = base
    return found
