"""Streams of one pass: which stream a node runs on, and which streams wait for which.

A node runs on the stream of its forward, a leaf's accumulator on the stream on which it was made. A
pass follows the order of its caller's streams like any other call: each stream of the pass first
waits for earlier work on the caller's stream of its device, and at the end the caller's streams
wait for all streams of the pass.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, final

from plugrad.device import Device
from plugrad.dispatch.backends.active import find_backend, streams_of
from plugrad.dispatch.backends.streams import STREAMS, DeviceStreams
from plugrad.dispatch.settings import settings
from plugrad.graph.node import MAX_SEQUENCE_NR, Node
from plugrad.tensor.base import TensorBase

MISMATCH: Final = (
    "The AccumulateGrad node's stream does not match the stream of the node that produced the "
    "incoming gradient. Streams then wait for each other, and a CUDA graph cannot be captured if "
    "the node's stream is the default one. The node belongs to an earlier forward, which something "
    "keeps alive, for example a loss. Delete it; or, if the streams differ on purpose, call "
    "plugrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)."
)


@final
class Arrival:
    """How a gradient in a node's inputs was produced.

    Attributes:
        stream: the stream that computed it; work on this stream can use it without waiting.
        event: an event after it, for other streams; None if no other stream needs it.
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
    find_backend(grad.device.type).backend.record_stream(grad._backend_array, stream)


@final
class _Mismatch:
    """Whether to warn if a leaf accumulates on another stream than its gradients' producers; once
    is enough."""

    def __init__(self) -> None:
        self.warn: bool = True
        self.warned: bool = False


_mismatch: Final = _Mismatch()


def warn_of_mismatch(enabled: bool) -> None:
    """Whether to warn of it from now on."""
    _mismatch.warn = enabled
    _mismatch.warned = False


def note_mismatch(consumer: Node) -> None:
    """A gradient comes from another stream than its consumer's."""
    again = settings.warn_always or not _mismatch.warned
    if _mismatch.warn and again and consumer._number == MAX_SEQUENCE_NR:
        _mismatch.warned = True
        warnings.warn(MISMATCH, UserWarning, stacklevel=1)


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
    """The streams that a pass uses.

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
            # It runs on the current stream: the caller's, or the device thread's own.
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
        """Make the caller's streams current on a thread that stands in for the caller's."""
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
