"""Streams of one pass: which one a node works on, and what waits for what.

A node works on the stream that its forward ran on, a leaf's accumulator on the one on which it was
made. A pass stands in the order of its caller's streams like any other call: a stream that takes
part starts after what the caller's stream of its device was given before, and at the end the
caller's streams wait for all that took part.
"""

from __future__ import annotations

from typing import Any, final

from plugrad.device import Device
from plugrad.dispatch.active_backends import find_backend, streams_of
from plugrad.dispatch.streams import STREAMS, DeviceStreams
from plugrad.graph.node import Node
from plugrad.tensor.base import TensorBase


@final
class Arrival:
    """How a gradient came to wait in a node's inputs.

    Attributes:
        stream: the one it was made on; it can be used there without waiting.
        event: a mark after it, for other streams; None if nobody else was going to ask.
    """

    def __init__(self, stream: object, event: object) -> None:
        self.stream: Any = stream
        self.event: Any = event

    def order(self, grad: TensorBase, stream: Any) -> None:
        """Let a stream of the gradient's device use it: after what made it, and until done."""
        if self.stream != stream:
            if self.event is None:
                self.event = self.stream.record_event()
            stream.wait_event(self.event)
            lend(grad, stream)


def lend(grad: TensorBase, stream: Any) -> None:
    """A gradient's memory is in use on a stream that it was not made on."""
    find_backend(grad.device.type).backend.record_stream(grad.array, stream)


def stream_on(node: Node, device: Device) -> Any:
    """The stream that a node works on, if that is one of the device's; else None."""
    place = node._stream()
    return place.stream if place is not None and place.device is device else None


@final
class Guard:
    """Undoes the choice of a stream."""

    def __init__(self, streams: DeviceStreams | None, before: object) -> None:
        self._streams = streams
        self._before: Any = before

    def leave(self) -> None:
        if self._streams is not None:
            self._streams.use(self._before)


@final
class PassStreams:
    """The streams that take part in a pass.

    Attributes:
        callers: the stream of each device that was current where the pass was called.
        used: the other streams that a node ran on, with their devices'; guarded by the pass's lock.
    """

    def __init__(self) -> None:
        self.callers: dict[DeviceStreams, Any] = {}
        self.used: dict[Any, DeviceStreams] = {}
        for streams in _known_streams():
            self.callers[streams] = streams.current()

    def enter(self, node: Node, lock: Any) -> Guard:
        """Make the stream of a node current on this thread."""
        place = node._stream()
        if place is None:
            # It works on what is current: the caller's stream, or the device thread's own.
            for streams in _known_streams():
                self._take_part(streams, streams.current(), lock)
            return Guard(None, None)
        found = streams_of(place.device)
        if found is None:
            return Guard(None, None)
        self._take_part(found, place.stream, lock)
        before = found.current()
        if before == place.stream:
            return Guard(None, None)
        found.use(place.stream)
        return Guard(found, before)

    def _take_part(self, streams: DeviceStreams, stream: Any, lock: Any) -> None:
        if lock is None:
            self._start(streams, stream)
        else:
            with lock:
                self._start(streams, stream)

    def _start(self, streams: DeviceStreams, stream: Any) -> None:
        caller = self.callers.get(streams)
        if caller is None or caller == stream or stream in self.used:
            return
        stream.wait_event(caller.record_event())
        self.used[stream] = streams

    def adopt(self) -> None:
        """Work on the caller's streams, on a thread that stands in for the caller's."""
        for streams, stream in self.callers.items():
            streams.use(stream)

    def join(self) -> None:
        """Let the caller's streams wait for the others; on the caller's thread, at the end."""
        used = self.used
        self.used = {}
        for stream, streams in used.items():
            self.callers[streams].wait_event(stream.record_event())


def _known_streams() -> list[DeviceStreams]:
    return [streams for streams in list(STREAMS.devices.values()) if streams is not None]
