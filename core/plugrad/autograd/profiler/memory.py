"""MemoryAccount: how many bytes the results of operators take, and when they are freed.

It counts each array that an operator returns in a tensor and that owns its memory, from that return
until the array is freed. It does not count views and results written into arguments. It does not
see temporaries within a kernel, nor arrays from elsewhere (`from_numpy`, a copy made outside any
operator).
"""

from __future__ import annotations

import functools
import time
import weakref
from typing import TYPE_CHECKING, Any, final

from plugrad.tensor.base import TensorBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugrad.autograd.profiler.recorder import Record


@final
class MemoryAccount:
    """Watches arrays through weak references.

    Attributes:
        history: pairs of time (`time.perf_counter_ns`) and bytes allocated (or, if negative,
            freed).

    An array may be freed on any thread at any point, so this takes no locks: each step is one
    operation on a built-in container.
    """

    def __init__(self, note: Callable[[Record | None, int], None]) -> None:
        self.note: Callable[[Record | None, int], None] | None = note
        self.live: dict[int, Any] = {}
        self.history: list[tuple[int, int]] = []

    def close(self) -> None:
        """Watch no longer."""
        self.note = None
        self.live = {}

    def results(self, record: Record, result: Any, args: Any) -> None:
        """Count what a call returned that it was not given."""
        if isinstance(result, TensorBase):
            self._result(record, result._backend_array, args)
        elif isinstance(result, (list, tuple)):
            for item in result:
                if isinstance(item, TensorBase):
                    self._result(record, item._backend_array, args)

    def _result(self, record: Record, array: Any, args: Any) -> None:
        owner = _owner(array)
        key = id(owner)
        if key in self.live or _is_among(owner, args):
            return
        nbytes: Any = getattr(owner, "nbytes", None)
        if not isinstance(nbytes, int):
            return
        try:
            watch: Any = weakref.ref(owner, functools.partial(self._freed, key, nbytes))
        except TypeError:
            return  # nothing would report when it is freed, so it would seem to stay forever
        self.live[key] = watch
        self._count(record, nbytes)

    def _freed(self, key: int, nbytes: int, watch: Any) -> None:
        if self.live.pop(key, None) is not None:
            self._count(None, -nbytes)

    def _count(self, record: Record | None, nbytes: int) -> None:
        note = self.note
        if note is not None:
            self.history.append((time.perf_counter_ns(), nbytes))
            note(record, nbytes)


def _owner(array: Any) -> Any:
    """The object that holds the memory behind an array."""
    found = array
    while True:
        base = getattr(found, "base", None)
        if base is None:
            return found
        found = base


def _is_among(owner: Any, args: Any) -> bool:
    for value in args:
        if isinstance(value, TensorBase):
            if _owner(value._backend_array) is owner:
                return True
        elif isinstance(value, (list, tuple)) and _is_among(owner, value):
            return True
    return False
