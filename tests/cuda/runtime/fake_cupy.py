"""The part of CuPy's interface that plugrad-cuda's runtime uses, over NumPy; it records the calls.

It does not test hardware. It checks the order and the arguments of calls: that a stream is used on
its own GPU, that an event is recorded before it is waited for, that no call waits for the GPU while
a graph is captured.
"""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np

COUNT = 2
_numbers = itertools.count(16)


class Memory:
    """What views share."""

    def __init__(self, holder: np.ndarray[Any, Any], device_id: int, pool: Any) -> None:
        self.holder = holder
        self.ptr: int = holder.ctypes.data
        self.device_id = device_id
        self.pool = pool


class Pointer:
    def __init__(self, mem: Memory, ptr: int, log: list[Any]) -> None:
        self.mem = mem
        self.ptr = ptr
        self.device_id = mem.device_id
        self._log = log

    def copy_from_device_async(self, src: Pointer, size: int, stream: Any) -> None:
        self._log.append(("copy", src.device_id, self.device_id, stream.name))
        import ctypes

        ctypes.memmove(self.ptr, src.ptr, size)


class Array(np.ndarray[Any, Any]):
    """A NumPy array with what CuPy's have beyond."""

    fake: Any = None
    mem: Any = None

    def __array_finalize__(self, source: Any) -> None:
        self.fake = getattr(source, "fake", None)
        self.mem = getattr(source, "mem", None) if self.base is not None else None

    @property
    def __cuda_array_interface__(self) -> Any:
        return {"data": (self.data.ptr, False), "shape": self.shape, "typestr": self.dtype.str}

    @property
    def device(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(id=self.data.device_id)

    @property
    def data(self) -> Any:  # type: ignore[override]
        if self.mem is None:
            self.mem = Memory(np.asarray(self), self.fake.device(), None)
        return Pointer(self.mem, self.ctypes.data, self.fake.log)

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> Any:
        chosen = stream or self.fake.cuda.get_current_stream(self.device.id)
        if blocking:
            chosen.synchronize()
        self.fake.log.append(("to host", chosen.name, blocking))
        if out is None:
            return np.array(self)
        out[...] = np.asarray(self)
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        self.fake.log.append(("from pinned", stream.name))
        self[...] = arr


class CudaError(RuntimeError):
    """CUDA's errors."""


class FakeCupy:
    """The module `cupy`.

    Attributes:
        log: the calls. driver, runtime_version: in CUDA's numbering.
    """

    __version__ = "14.2"
    __name__ = "cupy"
    ndarray = Array
    uint32 = np.uint32

    def __init__(self, count: int = COUNT, driver: int = 12090) -> None:
        self.log: list[Any] = []
        self.count, self.driver, self.runtime_version = count, driver, 12090
        self.local = threading.local()
        self.pool = FakePool(self)
        self.pinned = SimpleNamespace(free_all_blocks=lambda: self.log.append("free pinned"))
        self.capturing: list[FakeStream] = []
        fake = self

        class Device:
            def __init__(self, index: int) -> None:
                self.id = index
                self._before: list[int] = []

            def __enter__(self) -> Any:
                self._before.append(fake.device())
                fake.local.device = self.id
                return self

            def __exit__(self, *exc_info: object) -> None:
                fake.local.device = self._before.pop()

            def synchronize(self) -> None:
                fake.no_waiting("Device.synchronize")
                fake.log.append(("synchronize device", self.id))

            mem_info = (3, 7)

        def stream(
            null: bool = False, non_blocking: bool = False, priority: int | None = None
        ) -> Any:
            assert non_blocking, "a blocking stream waits for the default one"
            return FakeStream(fake, next(_numbers), fake.device(), priority or 0)

        self.null = [FakeStream(self, 0, index, 0) for index in range(max(count, 1))]
        stream.null = self.null[0]  # type: ignore[attr-defined]
        stream.from_external = lambda handle: FakeStream(  # type: ignore[attr-defined]
            fake, handle.__cuda_stream__()[1], fake.device(), 0
        )

        def event(block: bool, disable_timing: bool, interprocess: bool) -> FakeEvent:
            return FakeEvent(fake, disable_timing)

        self.allocator: Any = self.pool.malloc

        def set_allocator(allocator: Any) -> None:
            self.allocator = allocator

        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=stream,
            Event=event,
            MemoryPool=lambda: FakePool(fake),
            PinnedMemoryPointer=PinnedMemory,
            get_current_stream=self.current,
            get_elapsed_time=lambda start, end: float(end.number - start.number),
            get_allocator=lambda: self.allocator,
            set_allocator=set_allocator,
            runtime=SimpleNamespace(
                getDevice=self.device,
                setDevice=lambda index: setattr(self.local, "device", index),
                getDeviceCount=self.device_count,
                driverGetVersion=lambda: self.driver,
                runtimeGetVersion=lambda: self.runtime_version,
                deviceCanAccessPeer=lambda index, peer: index != peer,
                getDeviceProperties=self.properties,
            ),
        )

    def properties(self, index: int) -> dict[str, Any]:
        return {
            "name": f"Fake {index}".encode(),
            "major": 9,
            "minor": 0,
            "totalGlobalMem": 80 * 2**30,
            "multiProcessorCount": 132,
            "maxThreadsPerMultiProcessor": 2048,
            "warpSize": 32,
            "l2CacheSize": 50,
            "sharedMemPerBlock": 49152,
            "regsPerMultiprocessor": 65536,
        }

    def device_count(self) -> int:
        if self.driver == 0 or self.count == 0:
            raise CudaError("cudaErrorInsufficientDriver")
        return self.count

    def device(self) -> int:
        return getattr(self.local, "device", 0)

    def current(self, index: int = -1) -> FakeStream:
        chosen = self.device() if index < 0 else index
        found: FakeStream = getattr(self.local, f"stream{chosen}", self.null[chosen])
        return found

    def no_waiting(self, what: str) -> None:
        assert not self.capturing, f"{what} while a graph is captured"

    def get_default_memory_pool(self) -> FakePool:
        return self.pool

    def get_default_pinned_memory_pool(self) -> Any:
        return self.pinned

    def made(self, array: Any) -> Array:
        result = np.array(array, order="K").view(Array)
        result.fake = self
        pointer = self.allocator(max(result.nbytes, 1))
        result.mem = Memory(np.asarray(result), self.device(), pointer.pool)
        return result

    def array(self, value: Any, order: str = "K") -> Array:
        self.log.append(("from host", self.current().name))
        return self.made(value)

    asarray = array

    def empty(self, shape: Any, dtype: Any) -> Array:
        return self.made(np.empty(shape, dtype))

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return self.made(np.zeros(shape, dtype))

    def stack(self, arrays: Any) -> Array:
        return self.made(np.stack(arrays))

    def ascontiguousarray(self, array: Array) -> Array:
        return array if array.flags.c_contiguous else self.made(np.ascontiguousarray(array))

    def from_dlpack(self, source: Any) -> Any:
        return self.made(np.from_dlpack(source))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class FakeStream:
    def __init__(self, fake: FakeCupy, ptr: int, device_id: int, priority: int) -> None:
        self.fake, self.ptr, self.device_id, self.priority = fake, ptr, device_id, priority
        self.name = f"{'default' if ptr == 0 else 'stream'} {ptr} of {device_id}"
        self.done = True

    def use(self) -> None:
        assert self.ptr == 0 or self.fake.device() == self.device_id, "used on another GPU"
        setattr(
            self.fake.local,
            f"stream{self.fake.device()}",
            self.fake.null[self.fake.device()] if self.ptr == 0 else self,
        )

    def wait_event(self, event: FakeEvent) -> None:
        assert event.recorded is not None, "waits for what was not recorded"
        self.fake.log.append(("wait", self.name, event.recorded))

    def synchronize(self) -> None:
        self.fake.no_waiting("Stream.synchronize")
        self.fake.log.append(("synchronize", self.name))

    def is_capturing(self) -> bool:
        return self in self.fake.capturing

    def begin_capture(self, mode: Any = None) -> None:
        assert self.ptr != 0
        assert self.fake.current() is self
        self.fake.capturing.append(self)
        self.fake.log.append(("begin capture", self.name))

    def end_capture(self) -> Any:
        assert self.fake.current() is self
        self.fake.capturing.remove(self)
        self.fake.log.append(("end capture", self.name))
        return SimpleNamespace(
            launch=lambda stream: self.fake.log.append(("launch", stream.name)),
            debug_dot_str=lambda: "digraph {}",
        )


class FakeEvent:
    def __init__(self, fake: FakeCupy, disable_timing: bool) -> None:
        self.fake, self.disable_timing = fake, disable_timing
        self.recorded: str | None = None
        self.number = 0
        self._done = True

    def record(self, stream: FakeStream) -> None:
        assert stream.ptr == 0 or self.fake.device() == stream.device_id, "recorded on another GPU"
        self.recorded = stream.name
        self.captured = stream.is_capturing()
        self.number = next(_numbers)
        self.fake.log.append(("record", stream.name))

    @property
    def done(self) -> bool:
        assert not self.captured, "CUDA cannot tell of what was only captured"
        self.fake.no_waiting("Event.done")
        return self.recorded not in getattr(self.fake, "busy", ())

    def synchronize(self) -> None:
        self.fake.no_waiting("Event.synchronize")
        self.fake.log.append(("synchronize event", self.recorded))


class FakePool:
    """Counts bytes; nothing is given back."""

    def __init__(self, fake: FakeCupy) -> None:
        self.fake = fake
        self.bytes = [0] * COUNT

    def malloc(self, size: int) -> Any:
        self.bytes[self.fake.device()] += size
        return SimpleNamespace(device_id=self.fake.device(), pool=self)

    def used_bytes(self) -> int:
        return self.bytes[self.fake.device()]

    def total_bytes(self) -> int:
        return self.used_bytes() * 2

    def free_all_blocks(self) -> None:
        self.fake.log.append("free")


class PinnedMemory(bytearray):
    """Page-locked memory, as NumPy's arrays have it for their base."""


def fake_cupyx() -> Any:
    """The module `cupyx`."""

    def empty_pinned(shape: Any, dtype: Any) -> Any:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.ndarray(shape, dtype, buffer=PinnedMemory(max(size, 1)))

    return SimpleNamespace(
        empty_pinned=empty_pinned, empty_like_pinned=lambda a: empty_pinned(a.shape, a.dtype)
    )
