"""CudaQueue: the queue of the engine's thread of a GPU."""

from __future__ import annotations

from typing import Any

from plugrad.plugins import DeviceQueue
from plugrad_cuda import library
from plugrad_cuda.streams import Event, Stream, set_stream


class CudaQueue(DeviceQueue):
    """The queue of one GPU; its thread has a stream of its own.

    Nodes run on the streams of their forward, which the engine orders; its own stream is for nodes
    without one. So `fork` and `join` do nothing.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._stream: Stream | None = None

    @property
    def stream(self) -> Stream:
        """The thread's own."""
        if self._stream is None:
            self._stream = Stream(self.index)
        return self._stream

    def activate(self) -> None:
        """Make the GPU the calling thread's, and the own stream."""
        set_stream(self.stream)

    def record_event(self) -> Event:
        return self.stream.record_event()

    def wait_event(self, event: Any) -> None:
        """The host waits at once for other backends' events, because CUDA cannot."""
        if isinstance(event, Event):
            self.stream.wait_event(event)
        elif hasattr(event, "synchronize"):
            event.synchronize()

    def synchronize(self) -> None:
        library.require().cuda.Device(self.index).synchronize()
