"""A backend with three devices that work asynchronously: each has a thread and a stream of work.

Elementwise operators return before they are done; everything else waits for its result. Arrays are
NumPy's, in memory that only the device's thread uses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from plugrad.plugins import Backend, DeviceQueue
from plugrad_cpu.backend import CpuBackend
from tests.core.backends.host_memory import Array, device_position, leaves, opened, wrapped

DEVICES = 3

# Operators with results that have the dtype of floating point operands and their broadcast shape.
ASYNCHRONOUS = frozenset(
    ["add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid"]
)


class Promise:
    """An array that a device may still be computing; reading its elements waits."""

    def __init__(self, future: Future[Array], device: int, shape: Any = None, dtype: Any = None):
        self.future = future
        self.device = device
        self._shape = shape
        self._dtype = dtype

    @property
    def data(self) -> Array:
        return self.future.result()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape if self._shape is None else self._shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype if self._dtype is None else self._dtype


def kept(data: Any, device: int) -> Promise:
    """A promise that is kept already."""
    future: Future[Array] = Future()
    future.set_result(np.asarray(data))
    return Promise(future, device)


class WorkerQueue(DeviceQueue):
    """The engine's view of a device: one stream, with one order for all threads."""

    def __init__(self, backend: WorkersBackend, index: int) -> None:
        self.backend = backend
        self.index = index

    def activate(self) -> None:
        self.backend.log.append(("activate", self.index, threading.current_thread().name))

    def record_event(self) -> threading.Event:
        event = threading.Event()
        self.backend.streams[self.index].submit(event.set)
        return event

    def wait_event(self, event: threading.Event) -> None:
        self.backend.log.append(("wait_event", self.index, threading.current_thread().name))
        self.backend.streams[self.index].submit(event.wait)

    def synchronize(self) -> None:
        self.backend.synchronize(self.index)


class WorkersBackend(Backend):
    """NumPy's kernels, run by the worker thread of the arrays' device.

    Attributes:
        streams: the work of each device, in order.
        log: what happened, as `(what, device, thread)`.
    """

    def __init__(self, name: str = "workers") -> None:
        super().__init__(name, array_type=Promise)
        self.host = CpuBackend()
        self.log: list[tuple[str, int, str]] = []
        self.streams = [
            ThreadPoolExecutor(1, thread_name_prefix=f"{name}-{index}") for index in range(DEVICES)
        ]

    def close(self) -> None:
        """End the threads."""
        for stream in self.streams:
            stream.shutdown()

    def device_count(self) -> int:
        return DEVICES

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return {name: self._queued(name, raw) for name, raw in self.host.kernels().items()}

    def _queued(self, name: str, raw: Callable[..., Any]) -> Callable[..., Any]:
        base = name.partition(".")[0]
        device_at = device_position(raw)

        def kernel(*args: Any) -> Any:
            arrays = [value for value in leaves(args) if isinstance(value, Promise)]
            device: int = arrays[0].device if arrays else args[device_at]

            def work() -> Any:
                self.log.append((name, device, threading.current_thread().name))
                with np.errstate(all="ignore"):  # it is the thread's own
                    return raw(*[opened(value, Promise) for value in args])

            if base in ASYNCHRONOUS and all(array.dtype.kind == "f" for array in arrays):
                shape = np.broadcast_shapes(*[array.shape for array in arrays])
                future = self.streams[device].submit(lambda: np.asarray(work()))
                return Promise(future, device, shape, arrays[0].dtype)
            found = self.streams[device].submit(work).result()
            return wrapped(found, lambda array: kept(array, device))

        return kernel

    def from_host(self, array: Array, index: int) -> Promise:
        return kept(array.copy(), index)

    def to_host(self, array: Promise) -> Array:
        """Waits for the device's work so far: some of it may write to the array."""
        copied: Future[Array] = self.streams[array.device].submit(lambda: array.data.copy())
        return copied.result()

    def strides(self, array: Promise) -> tuple[int, ...]:
        return self.host.strides(array.data)

    def storage_offset(self, array: Promise) -> int:
        return self.host.storage_offset(array.data)

    def make_generator(self, index: int) -> Any:
        return self.host.make_generator(index)

    def make_queue(self, index: int) -> DeviceQueue:
        return WorkerQueue(self, index)

    def synchronize(self, index: int) -> None:
        self.streams[index].submit(lambda: None).result()
