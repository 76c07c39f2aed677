"""A backend with several streams per device for threads to choose from, which detects races.

It is the backend "late" of the engine's tests, which has vector clocks, with two additions:
nodes run on the streams of their forward, and memory is handed out again as caching allocators do.
"""

from __future__ import annotations

from typing import Any

from plugrad.plugins import DeviceQueue
from tests.core.autograd.devices.toy import (
    DEVICES,
    LateArray,
    LateBackend,
    Memory,
    NotOrderedError,
    Stream,
    ToyQueue,
)


class ChosenStream(Stream):
    """A stream as the engine sees it: with events.

    Attributes:
        freed: the records of memory that was allocated on this stream and freed.
    """

    def __init__(self, backend: StreamsBackend, name: str) -> None:
        super().__init__(name)
        self.backend = backend
        self.freed: list[OwnedMemory] = []

    def record_event(self) -> dict[Stream, int]:
        with self.backend.clock:
            self.backend.events += 1
            return dict(self.seen)

    def wait_event(self, event: dict[Stream, int]) -> None:
        with self.backend.clock:
            self.wait_for(event)


class OwnedMemory(Memory):
    """Memory that returns to the stream that allocated it when it has no references.

    Attributes:
        uses: the streams that have used it, with the last tick.
        lent: streams that the allocator checks before it reuses the memory.
    """

    def __init__(self, owner: ChosenStream) -> None:
        super().__init__()
        self.owner = owner
        self.uses: dict[Stream, int] = {}
        self.lent: set[Stream] = set()

    def __del__(self) -> None:
        self.owner.freed.append(self)

    def unordered(self) -> Stream | None:
        """A stream that may still use it and that no stream would wait for."""
        for stream, tick in self.uses.items():
            if stream not in self.lent and not self.owner.has_seen(stream, tick):
                return stream
        return None


class StreamQueue(ToyQueue):
    """The order of work that a device's thread has of its own."""

    def __init__(self, backend: StreamsBackend, index: int) -> None:
        super().__init__(index, backend.log)
        self.backend = backend

    def activate(self) -> None:
        super().activate()
        self.backend.use(self.index, ChosenStream(self.backend, f"worker of {self.index}"))


class StreamsBackend(LateBackend):
    """NumPy arrays on four devices, each with as many streams as somebody makes.

    Attributes:
        events: how many marks were made.
        ran: which kernel ran on which stream, by name.
    """

    def __init__(self, name: str = "streams") -> None:
        super().__init__(name)
        self.events = 0
        self.ran: list[tuple[str, str]] = []
        self.defaults = [ChosenStream(self, f"default of {index}") for index in range(DEVICES)]

    def stream(self, name: str) -> ChosenStream:
        """A new stream."""
        return ChosenStream(self, name)

    def make_queue(self, index: int) -> DeviceQueue:
        self.queues_made.append(index)
        return StreamQueue(self, index)

    def current_stream(self, index: int) -> Any:
        return self.current(index)

    def use_stream(self, index: int, stream: Any) -> None:
        self.use(index, stream)

    def record_stream(self, array: LateArray, stream: Any) -> None:
        assert isinstance(array.memory, OwnedMemory)
        array.memory.lent.add(stream)

    def make_memory(self, stream: Stream) -> Memory:
        """Worst case: whatever was given back to the stream is handed out now."""
        assert isinstance(stream, ChosenStream)
        while stream.freed:
            other = stream.freed.pop().unordered()
            if other is not None:
                raise NotOrderedError(
                    f"{stream.name} is given memory that {other.name} may still be using"
                )
        return OwnedMemory(stream)

    def _read(self, array: LateArray, stream: Stream, name: str) -> None:
        self.ran.append((name.partition(".")[0], stream.name))
        super()._read(array, stream, name)
        assert isinstance(array.memory, OwnedMemory)
        if stream is not array.memory.owner and name != "to_host":  # which waits
            array.memory.uses[stream] = stream.seen[stream] + 1
