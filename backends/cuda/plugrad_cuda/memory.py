"""Memory of GPUs: statistics of CuPy's pool, and memory that several streams use."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any, Final

from plugrad.plugins.scopes import Locked, hold_while_forking
from plugrad_cuda import library
from plugrad_cuda.devices import index_of
from plugrad_cuda.streams import Event, Stream


class _Peaks:
    """The peaks of used and reserved bytes, by GPU. Recorded from the first query on, since it
    makes every allocation slower."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        hold_while_forking(self._lock)
        self._used: dict[int, int] = {}
        self._reserved: dict[int, int] = {}
        self._pool: Any = None

    def watch(self) -> None:
        """Look at every allocation from now on."""
        with Locked(self._lock):
            if self._pool is None:
                module = library.require()
                self._pool = module.get_default_memory_pool()
                module.cuda.set_allocator(self._allocate)

    def _allocate(self, size: int) -> Any:
        pointer = self._pool.malloc(size)
        self.note(pointer.device_id)
        return pointer

    def note(self, index: int) -> tuple[int, int]:
        """The peaks of a GPU, including current use."""
        used, reserved = _used(index), _reserved(index)
        with Locked(self._lock):
            self._used[index] = max(used, self._used.get(index, 0))
            self._reserved[index] = max(reserved, self._reserved.get(index, 0))
            return self._used[index], self._reserved[index]

    def reset(self, index: int) -> None:
        with Locked(self._lock):
            self._used.pop(index, None)
            self._reserved.pop(index, None)


_peaks: Final = _Peaks()


def _used(index: int) -> int:
    module = library.cupy()
    with module.cuda.Device(index):
        return int(module.get_default_memory_pool().used_bytes())


def _reserved(index: int) -> int:
    module = library.cupy()
    with module.cuda.Device(index):
        return int(module.get_default_memory_pool().total_bytes())


def memory_allocated(device: Any = None) -> int:
    """Bytes that arrays on a GPU occupy; 0 without a GPU."""
    return _used(index_of(device)) if library.device_count() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes that CuPy's pool holds on a GPU, those in use included; 0 without a GPU."""
    return _reserved(index_of(device)) if library.device_count() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use at a time since peaks were last reset, or first requested."""
    if not library.device_count():
        return 0
    _peaks.watch()
    return _peaks.note(index_of(device))[0]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool held since peaks were last reset, or first requested."""
    if not library.device_count():
        return 0
    _peaks.watch()
    return _peaks.note(index_of(device))[1]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Restart recording of the peaks."""
    index = index_of(device)
    _peaks.watch()
    _peaks.reset(index)
    _peaks.note(index)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """The pool's statistics, under PyTorch's names; empty without a GPU."""
    found: OrderedDict[str, int] = OrderedDict()
    if library.device_count():
        used, reserved = memory_allocated(device), memory_reserved(device)
        found["allocated_bytes.all.current"] = used
        found["allocated_bytes.all.peak"] = max_memory_allocated(device)
        found["inactive_split_bytes.all.current"] = reserved - used
        found["reserved_bytes.all.current"] = reserved
        found["reserved_bytes.all.peak"] = max_memory_reserved(device)
    return found


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a GPU, of all processes."""
    free, total = library.require().cuda.Device(index_of(device)).mem_info
    return int(free), int(total)


def empty_cache() -> None:
    """Return unused memory of the pools to CUDA; does nothing without a GPU."""
    if library.device_count():
        lent.collect()
        library.cupy().get_default_memory_pool().free_all_blocks()
        library.cupy().get_default_pinned_memory_pool().free_all_blocks()


class LentMemory:
    """Memory that streams use which it was not made on.

    CuPy's pool hands memory out again in the order of the stream that it was made on. Memory that
    another stream uses is therefore kept here until nothing else refers to it, and that stream has
    finished its work up to then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        hold_while_forking(self._lock)
        self._used: dict[int, tuple[Any, list[Stream]]] = {}
        self._waiting: list[tuple[Any, list[Event]]] = []
        self._unshared = -1
        self.capturing: set[object] = set()  # the graphs: no event may be queried meanwhile

    def lend(self, memory: Any, stream: Stream) -> None:
        """Memory, as CuPy's `array.data.mem`, is in use on a stream."""
        with Locked(self._lock):
            self._collect()
            streams = self._used.setdefault(id(memory), (memory, []))[1]
            if stream not in streams:
                streams.append(stream)

    def collect(self) -> None:
        """Release memory that is no longer used."""
        with Locked(self._lock):
            self._collect()

    def held(self) -> int:
        """How many pieces of memory are kept, those that others refer to included."""
        return len(self._used) + len(self._waiting)

    def _collect(self) -> None:
        if self.capturing:
            return
        for key in list(self._used):
            if self._is_ours_alone(key):
                memory, streams = self._used.pop(key)
                self._waiting.append((memory, [stream.record_event() for stream in streams]))
        self._waiting = [
            pair for pair in self._waiting if not all(event.query() for event in pair[1])
        ]

    def _is_ours_alone(self, key: int) -> bool:
        """By comparing reference counts with an object that only a tuple in a dict refers to."""
        if self._unshared < 0:
            probe: dict[int, tuple[Any, list[Stream]]] = {0: (object(), [])}
            self._unshared = sys.getrefcount(probe[0][0])
        return sys.getrefcount(self._used[key][0]) <= self._unshared


lent: Final = LentMemory()
