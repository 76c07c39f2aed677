"""Streams and events: orders of work on a GPU, and marks between them.

Each thread has a current stream on each GPU, and it is CuPy's: what is chosen through CuPy holds
here, too. Kernels go to it, and the engine runs a node of backward on the stream of its forward.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from plugrad.plugins.arguments import explains
from plugrad.plugins.scopes import Scope
from plugrad_cuda import library
from plugrad_cuda.devices import current_device, device_of_index, index_of, set_device


class Stream:
    """An order of work on one GPU.

    Args:
        device: the GPU, by default the current one.
        priority: lower numbers come first; the GPU has few levels, -1 is above the default.

    Attributes:
        device: the GPU.
        cuda_stream: CUDA's handle, as an integer.

    Raises:
        RuntimeError: there is no GPU.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        cuda = library.require().cuda
        index = index_of(device)
        with cuda.Device(index):
            self._set(cuda.Stream(non_blocking=True, priority=priority), index)

    def _set(self, raw: Any, index: int) -> None:
        self._raw = raw
        self.device_index = index
        self.cuda_stream: int = raw.ptr

    @property
    def device(self) -> Any:
        return device_of_index(self.device_index)

    @property
    def priority(self) -> int:
        return int(self._raw.priority)

    def record_event(self, event: Event | None = None) -> Event:
        """A mark after the work that the stream was given so far: `event`, or a new one."""
        found = Event() if event is None else event
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """What the stream is given from now on waits for a mark, of any GPU's stream."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What the stream is given from now on waits for what another was given so far."""
        self.wait_event(stream.record_event())

    def query(self) -> bool:
        """Whether all its work is done."""
        return bool(self._raw.done)

    def synchronize(self) -> None:
        """Wait until all its work is done."""
        self._raw.synchronize()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and self.cuda_stream == other.cuda_stream
            and self.device_index == other.device_index
        )

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device_index))

    def __repr__(self) -> str:
        return f"<plugrad.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


def wrap(raw: Any, index: int) -> Stream:
    """plugrad's stream for CuPy's, which it keeps alive."""
    stream = Stream.__new__(Stream)
    stream._set(raw, index)
    return stream


class ExternalStream(Stream):
    """A stream of another library, which keeps it alive.

    Args:
        stream_ptr: CUDA's handle, as an integer.
        device: the GPU it was made on.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        cuda = library.require().cuda
        index = index_of(device)
        self._set(cuda.Stream.from_external(_Handle(stream_ptr)), index)


class _Handle:
    """An object of the CUDA stream protocol."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer


class Event:
    """A mark in the work of a stream.

    Args:
        enable_timing: whether it takes the time, for `elapsed_time`.
        blocking: whether `synchronize` sleeps rather than spins.
        interprocess: whether other processes may wait for it; not with timing.

    It belongs to the GPU of the stream that it is first recorded on.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        library.require()
        if interprocess and enable_timing:
            raise ValueError("an interprocess event cannot take the time")
        self._options = (blocking, not enable_timing, interprocess)
        self._raw: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark after what a stream, by default the current one, was given so far."""
        chosen = current_stream() if stream is None else stream
        cuda = library.cupy().cuda
        with cuda.Device(chosen.device_index):
            if self._raw is None:
                blocking, untimed, interprocess = self._options
                self._raw = cuda.Event(
                    block=blocking, disable_timing=untimed, interprocess=interprocess
                )
            self._raw.record(chosen._raw)

    def wait(self, stream: Stream | None = None) -> None:
        """What a stream, by default the current one, is given from now on waits for the mark."""
        if self._raw is None:
            return  # as in PyTorch: nothing was recorded
        chosen = current_stream() if stream is None else stream
        with library.cupy().cuda.Device(chosen.device_index):
            chosen._raw.wait_event(self._raw)

    def query(self) -> bool:
        """Whether the work before the mark is done."""
        return self._raw is None or bool(self._raw.done)

    def synchronize(self) -> None:
        """Wait until the work before the mark is done."""
        if self._raw is not None:
            self._raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two marks that are done.

        Raises:
            RuntimeError: one of them takes no time, or was not recorded.
        """
        if self._options[1] or end_event._options[1]:
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._raw is None or end_event._raw is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return float(library.cupy().cuda.get_elapsed_time(self._raw, end_event._raw))


class _Chosen(threading.local):
    """The streams that a thread chose, by GPU: CuPy does not keep them alive."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_chosen = _Chosen()


def current_of(index: int) -> Stream:
    """The calling thread's stream on a GPU."""
    raw = library.cupy().cuda.get_current_stream(index)
    known = _chosen.streams.get(index)
    if known is not None and known.cuda_stream == raw.ptr:
        return known
    found = wrap(raw, index)  # chosen through CuPy, or the default
    _chosen.streams[index] = found
    return found


def use(stream: Stream) -> None:
    """Make a stream the calling thread's on its GPU, without going to that GPU."""
    with library.cupy().cuda.Device(stream.device_index):
        stream._raw.use()
    _chosen.streams[stream.device_index] = stream


def current_stream(device: Any = None) -> Stream:
    """The calling thread's stream on a GPU, by default the current one."""
    library.require()
    return current_of(index_of(device))


def default_stream(device: Any = None) -> Stream:
    """The stream of threads that chose none: CUDA's legacy one, which all of them share; with
    CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1 in the environment each thread's own."""
    streams = library.require().cuda.Stream
    own = os.environ.get("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0")
    return wrap(streams.ptds if own else streams.null, index_of(device))


@explains
def set_stream(stream: Stream | None) -> None:
    """Make a stream, and its GPU, the calling thread's; None does nothing."""
    if stream is not None:
        set_device(stream.device_index)
        use(stream)


class StreamContext(Scope):
    """Within it the calling thread works on a stream and its GPU; afterwards as before."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def read(self, state: Any) -> tuple[int, Stream] | None:
        if self.stream is None:
            return None
        return current_device(), current_of(self.stream.device_index)

    def change(self, state: Any) -> None:
        set_stream(self.stream)

    def restore(self, state: Any, before: tuple[int, Stream] | None) -> None:
        if before is not None:
            index, stream = before
            use(stream)
            set_device(index)


def stream(stream: Stream | None) -> StreamContext:
    """``with stream(s):`` makes a stream the calling thread's; None changes nothing."""
    return StreamContext(stream)


def is_current_stream_capturing() -> bool:
    """Whether what is asked of the current stream goes into a graph instead of to the GPU."""
    if not library.device_count():
        return False
    return bool(current_stream()._raw.is_capturing())
