"""Backends with several devices: one that records the engine's calls of its queues, and one that
works asynchronously and detects reads of unfinished results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.plugins import DeviceQueue
from tests.core.backends.host_memory import Array, HostMemory, device_position

DEVICES = 4


class ToyQueue(DeviceQueue):
    """Notes every call with the thread it came from, as `(what, device, thread)`."""

    def __init__(self, index: int, log: list[tuple[str, int, str]]) -> None:
        self.index = index
        self.log = log

    def note(self, what: str) -> None:
        self.log.append((what, self.index, threading.current_thread().name))

    def push(self, task: Any) -> None:
        self.note("push")
        super().push(task)

    def pop(self) -> Any:
        task = super().pop()
        self.note("pop")
        return task

    def activate(self) -> None:
        self.note("activate")

    def record_event(self) -> Any:
        self.note("record_event")
        return self.index

    def wait_event(self, event: Any) -> None:
        self.note(f"wait_event {event}")

    def fork(self) -> None:
        self.note("fork")

    def join(self) -> None:
        self.note("join")


class ToyBackend(HostMemory):
    """NumPy arrays, on four devices that are only names.

    Attributes:
        log: the engine's calls of the queues.
        queues_made: the devices with queues that were requested.
    """

    def __init__(self, name: str = "toy") -> None:
        super().__init__(name)
        self.log: list[tuple[str, int, str]] = []
        self.queues_made: list[int] = []

    def device_count(self) -> int:
        return DEVICES

    def make_queue(self, index: int) -> DeviceQueue:
        self.queues_made.append(index)
        return ToyQueue(index, self.log)

    def calls(self, what: str, device: int | None = None) -> list[tuple[str, int, str]]:
        """The notes on one kind of call."""
        return [
            note for note in self.log if note[0] == what and (device is None or note[1] == device)
        ]


# The asynchronous backend: nothing is really late, but every stream of work has a clock, and every
# array has the stream and the tick at which it is complete. A stream may use arrays with ticks that
# it has seen. (These are vector clocks, as race detectors use them.)


class NotOrderedError(RuntimeError):
    """A stream used an array without having waited for the stream that works on it."""


class Stream:
    """A queue of work on one device."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[Stream, int] = {self: 0}

    def wait_for(self, seen: dict[Stream, int]) -> None:
        for stream, tick in seen.items():
            if self.seen.get(stream, -1) < tick:
                self.seen[stream] = tick

    def has_seen(self, other: Stream, tick: int) -> bool:
        return self.seen.get(other, -1) >= tick


class Memory:
    """What views share: who wrote last, and who has read since."""

    def __init__(self) -> None:
        self.writer: tuple[Stream, int] | None = None
        self.readers: dict[Stream, int] = {}


class LateArray:
    """An array that some stream of a device may still be working on."""

    def __init__(self, data: Array, device: int, memory: Memory) -> None:
        self.data = data
        self.device = device
        self.memory = memory

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self.data.strides

    @property
    def base(self) -> Any:
        return self.data.base


class LateQueue(ToyQueue):
    """The stream that a device's thread works on."""

    def __init__(self, backend: LateBackend, index: int) -> None:
        super().__init__(index, backend.log)
        self.backend = backend
        self.stream = Stream(f"worker of {index}")

    def activate(self) -> None:
        super().activate()
        self.backend.use(self.index, self.stream)

    def record_event(self) -> Any:
        super().record_event()
        with self.backend.clock:
            return dict(self.stream.seen)

    def wait_event(self, event: Any) -> None:
        self.note("wait_event")
        with self.backend.clock:
            self.stream.wait_for(event)

    def fork(self) -> None:
        super().fork()
        with self.backend.clock:
            self.stream.wait_for(self.backend.current(self.index).seen)

    def join(self) -> None:
        super().join()
        with self.backend.clock:
            self.backend.current(self.index).wait_for(self.stream.seen)


class LateBackend(ToyBackend):
    """NumPy arrays on four devices that work asynchronously.

    Every device has a default stream; a thread may choose another one with `use`.
    Copies from and to the host wait for the data, as usual. NotOrderedError is raised by a kernel
    that reads what its stream has not waited for, or overwrites what another may still read.
    """

    def __init__(self, name: str = "late") -> None:
        super().__init__(name)
        self.array_type = LateArray
        self.clock = threading.RLock()
        self.defaults = [Stream(f"default of {index}") for index in range(DEVICES)]
        self._local = threading.local()

    def use(self, index: int, stream: Stream) -> None:
        """Make a stream the current one of the calling thread."""
        setattr(self._local, str(index), stream)

    def use_own(self) -> None:
        """Give the calling thread streams of its own."""
        for index in range(DEVICES):
            self.use(index, Stream(f"{threading.current_thread().name} on {index}"))

    def current(self, index: int) -> Stream:
        stream: Stream = getattr(self._local, str(index), self.defaults[index])
        return stream

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return {
            name: self._wrapped(name, kernel)
            for name, kernel in find_backend("cpu").kernels.items()
        }

    def make_queue(self, index: int) -> DeviceQueue:
        self.queues_made.append(index)
        return LateQueue(self, index)

    def as_array(self, value: Any) -> Any:
        raise AssertionError("kernels return wrapped arrays")

    def from_host(self, array: Array, index: int) -> Any:
        return LateArray(np.array(array), index, self.make_memory(self.current(index)))

    def make_memory(self, stream: Stream) -> Memory:
        """Memory for a new array, requested by a stream."""
        return Memory()

    def to_host(self, array: Any) -> Array:
        with self.clock:
            self._read(array, self.current(array.device), "to_host")
            return np.array(array.data)

    def _read(self, array: LateArray, stream: Stream, name: str) -> None:
        writer = array.memory.writer
        if writer is not None and not stream.has_seen(*writer):
            raise NotOrderedError(
                f"{name} on {stream.name} reads what {writer[0].name} may still be writing"
            )
        array.memory.readers[stream] = stream.seen[stream] + 1

    def _write(self, array: LateArray, stream: Stream, name: str) -> None:
        for reader, tick in array.memory.readers.items():
            if not stream.has_seen(reader, tick) and reader is not stream:
                raise NotOrderedError(
                    f"{name} on {stream.name} overwrites what {reader.name} may still be reading"
                )
        array.memory.readers.clear()
        array.memory.writer = (stream, stream.seen[stream] + 1)

    def _wrapped(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        device_at = device_position(kernel)
        writes = name.partition(".")[0].endswith("_")

        def run(*args: Any) -> Any:
            arrays: list[LateArray] = []

            def unwrap(value: Any) -> Any:
                if isinstance(value, LateArray):
                    arrays.append(value)
                    return value.data
                if isinstance(value, list):
                    return [unwrap(item) for item in value]
                return value

            raw = [unwrap(value) for value in args]
            device: int = arrays[0].device if arrays else raw[device_at]
            with self.clock:
                stream = self.current(device)
                for array in arrays:
                    self._read(array, stream, name)
                if writes:
                    self._write(arrays[0], stream, name)
                stream.seen[stream] += 1

                def wrap(value: Any) -> Any:
                    if isinstance(value, (tuple, list)):
                        return type(value)(wrap(item) for item in value)
                    if writes and value is arrays[0].data:
                        return arrays[0]
                    made = np.asarray(value)
                    for array in arrays:
                        if np.may_share_memory(made, array.data):
                            return LateArray(made, device, array.memory)
                    memory = self.make_memory(stream)
                    memory.writer = (stream, stream.seen[stream])
                    return LateArray(made, device, memory)

                result = wrap(kernel(*raw))
                arrays.clear()  # recursive functions are cycles, which would keep them
                return result

        return run
