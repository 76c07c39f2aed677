"""Streams: queues of work on a device; what the core requires of backends that have them."""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.device import Device
from plugrad.dispatch.backends.backend import Backend


@final
class DeviceStreams:
    """The streams of one device: which of them the calling thread works on."""

    def __init__(self, backend: Backend, index: int) -> None:
        self.backend = backend
        self.index = index

    def current(self) -> Any:
        """The stream that receives the calling thread's work."""
        return self.backend.current_stream(self.index)

    def use(self, stream: Any) -> None:
        """Let the calling thread's work go to a stream."""
        self.backend.use_stream(self.index, stream)


@final
class Streams:
    """The devices with streams.

    Attributes:
        active: whether there are any; programs without streams check only this.
        devices: the devices that were looked up, with their streams; None for a device without.
    """

    def __init__(self) -> None:
        self.active: bool = False
        self.devices: dict[Device, DeviceStreams | None] = {}

    def forget(self, active: bool) -> None:
        """A backend was added or removed: `active` says whether one that is left has streams."""
        self.active = active
        self.devices = {}


STREAMS: Final = Streams()


def has_streams(backend: Backend) -> bool:
    """Whether a backend exposes the stream that a thread works on."""
    ours: Any = Backend
    theirs: Any = type(backend)
    return theirs.current_stream is not ours.current_stream
