"""Backends with one thing wrong each, and the topic of the kit that has to find it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrad.plugins import Backend, DeviceQueue
from plugrad_cpu.generator import CpuGenerator
from tests.core.autograd.devices.toy import LateBackend, LateQueue
from tests.core.backends.host_memory import Array, HostMemory


class SoundBackend(HostMemory):
    """NumPy arrays on two devices that are only names, with nothing wrong."""

    def __init__(self, name: str = "sound") -> None:
        super().__init__(name)

    def device_count(self) -> int:
        return 2

    def kernels(self) -> dict[str, Callable[..., Any]]:
        return dict(super().kernels())

    def make_generator(self, index: int) -> Any:
        return CpuGenerator()

    def make_queue(self, index: int) -> DeviceQueue:
        return DeviceQueue()


def with_kernel(name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Backend:
    """A backend with one kernel that is made from the right one."""

    class Broken(SoundBackend):
        def kernels(self) -> dict[str, Callable[..., Any]]:
            table = super().kernels()
            for key in [key for key in table if key == name or key.startswith(f"{name}.")]:
                table[key] = make(table[key])
            return table

    return Broken("broken")


def slightly_wrong(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: kernel(*args) * 1.001


def mutating(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Array, *args: Any) -> Any:
        result = np.array(kernel(a, *args))
        if a.flags.writeable:
            a[...] = result
        return result

    return run


def copying(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.array(kernel(*args))


def idle(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda target, *args: target


def narrowing(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        result = np.asarray(kernel(*args))
        return result.astype(np.float32) if result.dtype == np.float64 else result

    return run


def without_0_dim(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.atleast_1d(kernel(*args))


def by_memory(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Takes elements in the order of memory and ignores strides."""
    return lambda a: kernel(a.ravel(order="K")).reshape(a.shape)


def afraid_of_nothing(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Array, *args: Any) -> Any:
        if a.size == 0:
            raise RuntimeError("no elements")
        return kernel(a, *args)

    return run


def without_broadcasting(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim != b.ndim:
            raise RuntimeError("shapes differ")
        return kernel(a, b)

    return run


def unchecked(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Array, dim: int, index: Array) -> Any:
        return np.take(a, index, dim, mode="clip")

    return run


def hoarding(kernel: Callable[..., Any]) -> Callable[..., Any]:
    kept: list[Any] = []

    def run(*args: Any) -> Any:
        kept.append(np.asarray(kernel(*args)))
        return kept[-1]

    return run


def with_shared_scratch(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """It waits a moment so that another thread can interleave, which may happen at any time."""
    scratch: list[Any] = []

    def run(*args: Any) -> Any:
        scratch.append(kernel(*args))
        calls = len(scratch)
        until = time.monotonic() + 0.05
        while len(scratch) == calls and time.monotonic() < until:
            time.sleep(0.0005)
        return np.array(scratch[-1])

    return run


class AliasingBackend(SoundBackend):
    def copy_from_host(self, array: Array, index: int, non_blocking: bool = False) -> Array:
        return array


class RoundingBackend(SoundBackend):
    def to_host(self, array: Array) -> Array:
        if array.dtype == np.int64:
            return array.astype(np.float32).astype(np.int64)
        return np.array(array)


class ForgettingBackend(SoundBackend):
    def kernels(self) -> dict[str, Callable[..., Any]]:
        table = super().kernels()
        return {key: raw for key, raw in table.items() if key not in ("exp", "exp_")}


class StuckGenerator(CpuGenerator):
    """Restoring a state is forgotten."""

    def set_state(self, state: Any, /) -> Any:
        return self


class SharedGeneratorBackend(SoundBackend):
    def __init__(self) -> None:
        super().__init__("broken")
        self.only = CpuGenerator()

    def make_generator(self, index: int) -> Any:
        return self.only


class StuckGeneratorBackend(SoundBackend):
    def make_generator(self, index: int) -> Any:
        return StuckGenerator()


class LastInFirstOut(DeviceQueue):
    """Gives the newest task first."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.filled = threading.Semaphore(0)

    def push(self, task: Any) -> None:
        self.stack.append(task)
        self.filled.release()

    def pop(self) -> Any:
        self.filled.acquire()
        return self.stack.pop()


class ReorderingBackend(SoundBackend):
    def make_queue(self, index: int) -> DeviceQueue:
        return LastInFirstOut()


class CarelessQueue(LateQueue):
    """Does not wait for events."""

    def wait_event(self, event: Any) -> None:
        pass


class HastyQueue(LateQueue):
    """Does not let the caller wait for what backward has queued."""

    def join(self) -> None:
        pass


class Careless(LateBackend):
    def make_queue(self, index: int) -> DeviceQueue:
        return CarelessQueue(self, index)


class Hasty(LateBackend):
    def make_queue(self, index: int) -> DeviceQueue:
        return HastyQueue(self, index)


class CopyingDlpack(SoundBackend):
    """Says that it shares memory, and copies."""

    def from_dlpack(self, source: Any, index: int) -> Any:
        return np.array(np.from_dlpack(source))


@dataclass(frozen=True)
class Broken:
    """A broken backend.

    Attributes:
        topic: the one that has to find it.
        operator: the only one that is tried, to save time; empty where it is about none.
    """

    topic: str
    make: Callable[[], Backend]
    operator: str = ""


BROKEN = {
    "values are off": Broken("values", lambda: with_kernel("exp", slightly_wrong), "exp"),
    "a kernel writes to its argument": Broken(
        "values", lambda: with_kernel("neg", mutating), "neg"
    ),
    "results have another dtype": Broken("values", lambda: with_kernel("exp", narrowing), "exp"),
    "0-dim results have a dimension": Broken(
        "values", lambda: with_kernel("sum", without_0_dim), "sum"
    ),
    "a kernel of backward is off": Broken(
        "gradients", lambda: with_kernel("gelu_backward", slightly_wrong), "gelu"
    ),
    "a kernel of double backward is off": Broken(
        "double gradients", lambda: with_kernel("sin", slightly_wrong), "cos"
    ),
    "gradients are not those of tangents": Broken(
        "forward mode",
        lambda: with_kernel("_log_softmax_backward_data", slightly_wrong),
        "log_softmax",
    ),
    "strides are ignored": Broken("layouts", lambda: with_kernel("exp", by_memory), "exp"),
    "no elements are an error": Broken(
        "layouts", lambda: with_kernel("exp", afraid_of_nothing), "exp"
    ),
    "nothing is broadcast": Broken(
        "layouts", lambda: with_kernel("mul", without_broadcasting), "mul"
    ),
    "a write does nothing": Broken("in place", lambda: with_kernel("add_", idle), "add"),
    "views are copies": Broken("views", lambda: with_kernel("permute", copying), "permute"),
    "bounds are not checked": Broken(
        "errors", lambda: with_kernel("index_select", unchecked), "index_select"
    ),
    "an operator of the core is missing": Broken(
        "operators", lambda: ForgettingBackend("broken"), "exp"
    ),
    "memory of the host is shared": Broken("conversions", lambda: AliasingBackend("broken")),
    "large integers are rounded": Broken("conversions", lambda: RoundingBackend("broken")),
    "memory is copied, not shared": Broken("dlpack", lambda: CopyingDlpack("broken")),
    "states are not restored": Broken("generators", lambda: StuckGeneratorBackend("broken")),
    "devices share a generator": Broken("generators", SharedGeneratorBackend),
    "a queue changes the order": Broken("queues", lambda: ReorderingBackend("broken")),
    "events are not waited for": Broken("queues", lambda: Careless("broken")),
    "the caller does not wait": Broken("queues", lambda: Hasty("broken")),
    "results are kept": Broken("memory", lambda: with_kernel("exp", hoarding), "exp"),
    "threads share a buffer": Broken(
        "threads", lambda: with_kernel("exp", with_shared_scratch), "exp"
    ),
}
