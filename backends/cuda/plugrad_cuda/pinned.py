"""Page-locked host memory, which a GPU can read and write directly, and copies through it."""

from __future__ import annotations

import importlib
import threading
from typing import Any, Final

import numpy as np

from plugrad.plugins.scopes import Locked, hold_while_forking
from plugrad_cuda import library
from plugrad_cuda.streams import Event, Stream, current_of

HostArray = np.ndarray[Any, Any]


class CopiesUnderWay:
    """Keeps host memory that a GPU still reads or writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        hold_while_forking(self._lock)
        self._copies: list[tuple[HostArray, Event]] = []
        self._captured: list[HostArray] = []

    def keep(self, array: HostArray, stream: Stream) -> None:
        """Keep an array until a stream has done what it was given so far; for good, if that goes
        into a graph."""
        with Locked(self._lock):
            if stream._raw.is_capturing():
                self._captured.append(array)
                return
            self._copies = [pair for pair in self._copies if not pair[1].query()]
            self._copies.append((array, stream.record_event()))


under_way: Final = CopiesUnderWay()


def pin(array: HostArray) -> HostArray:
    """A copy in page-locked memory, of the same layout."""
    library.require()
    pinned: HostArray = importlib.import_module("cupyx").empty_like_pinned(array)
    pinned[...] = array
    return pinned


def is_pinned(array: HostArray) -> bool:
    """Whether an array is in memory from `pin` or from CuPy's other functions."""
    if not library.device_count():
        return False
    kind = library.cupy().cuda.PinnedMemoryPointer
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, kind)


def from_host(array: HostArray, index: int, non_blocking: bool) -> Any:
    """A copy on a GPU, on the calling thread's current stream.

    CuPy copies by way of page-locked memory of its own: the array may be written to afterwards.
    With `non_blocking`, a page-locked array is read when the stream comes to it.
    """
    module = library.cupy()
    with module.cuda.Device(index):
        if not (non_blocking and is_pinned(array) and array.flags.c_contiguous):
            return module.array(array, order="K")
        stream = current_of(index)
        result = module.empty(array.shape, array.dtype)
        result.set(array, stream=stream._raw)
        under_way.keep(array, stream)
        return result


def to_host(array: Any, non_blocking: bool) -> HostArray:
    """A copy in host memory, after the current stream's work so far.

    With `non_blocking`, the copy is in page-locked memory, and complete when that stream reaches
    it.
    """
    index = array.device.id
    with library.cupy().cuda.Device(index):
        if not non_blocking:
            found: HostArray = array.get(order="A")
            return found
        stream = current_of(index)
        target = importlib.import_module("cupyx").empty_pinned(array.shape, array.dtype)
        array.get(stream=stream._raw, out=target, blocking=False)
        under_way.keep(target, stream)
        return target  # type: ignore[no-any-return]  # CuPy has no types
