"""Bytes of the arrays that operators return, from their return until they are freed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from plugrad.plugins.tracing import arrays_of


class _Watch(weakref.ref[Any]):
    """Of an array: where it is, and how large."""

    __slots__ = ("device", "key", "nbytes")
    device: Any
    key: int
    nbytes: int


class Memory:
    """Watches arrays through weak references.

    Args:
        changed: called with a device and how many bytes came, or went below 0, on any thread.

    An array may be freed in the middle of anything, so nothing here waits for a lock.
    """

    def __init__(self, changed: Callable[[Any, int], None]) -> None:
        self._changed: Callable[[Any, int], None] | None = changed
        self._live: dict[int, _Watch] = {}

    def close(self) -> None:
        """Watch no longer."""
        self._changed = None
        self._live = {}

    def add(self, tensors: list[Any], given: list[Any]) -> None:
        """Count those of the arrays that own their memory and that are not among those given."""
        live = self._live
        for tensor, array in zip(tensors, arrays_of(tensors), strict=True):
            key = id(array)
            if key in live or getattr(array, "base", None) is not None:
                continue  # known, or a view
            nbytes = getattr(array, "nbytes", None)
            if type(nbytes) is not int or _is_among(array, given):
                continue
            try:
                watch = _Watch(array, self._freed)
            except TypeError:
                continue  # when it goes cannot be known
            watch.key, watch.device, watch.nbytes = key, tensor.device, nbytes
            live[key] = watch
            changed = self._changed
            if changed is not None:
                changed(watch.device, nbytes)

    def _freed(self, watch: Any) -> None:
        changed = self._changed
        if self._live.pop(watch.key, None) is not None and changed is not None:
            changed(watch.device, -watch.nbytes)


def _is_among(array: Any, given: list[Any]) -> bool:
    """Whether an array is that of one of the tensors, or holds the memory behind it."""
    for each in arrays_of(given):
        while each is not None:
            if each is array:
                return True
            each = getattr(each, "base", None)
    return False
