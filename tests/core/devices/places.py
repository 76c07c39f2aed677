"""A backend with three devices in host memory; arrays record their device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.plugins import Backend
from tests.core.backends.host_memory import Array, device_position, leaves, opened, wrapped

DEVICES = 3


class Placed:
    """A NumPy array on a device."""

    def __init__(self, data: Array, device: int) -> None:
        self.data = np.asarray(data)
        self.device = device

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)


class Places(Backend):
    """NumPy's kernels, on arrays of one device at a time.

    Attributes:
        log: the copies that were asked for, as `(method, what it was told)`.
        kind: DLPack's number for the memory; -1 shares none.
    """

    def __init__(self, name: str, dlpack: int = -1, mutable: bool = True) -> None:
        super().__init__(name, array_type=Placed, mutable=mutable)
        self.kind = dlpack
        self.log: list[tuple[str, Any]] = []

    def device_count(self) -> int:
        return DEVICES

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return {name: _placed(raw) for name, raw in find_backend("cpu").kernels.items()}

    def from_host(self, array: Array, index: int) -> Placed:
        self.log.append(("from_host", index))
        return Placed(array, index)

    def to_host(self, array: Placed) -> Array:
        self.log.append(("to_host", array.device))
        return array.data

    def strides(self, array: Placed) -> tuple[int, ...]:
        return tuple(step // array.dtype.itemsize for step in array.data.strides)

    def make_generator(self, index: int) -> Any:
        return find_backend("cpu").backend.make_generator(0)

    def dlpack_type(self) -> int:
        return self.kind

    def dlpack_device(self, array: Placed) -> tuple[int, int]:
        if self.kind < 0:
            raise BufferError("no")
        return self.kind, array.device

    def to_dlpack(self, array: Placed, **options: Any) -> Any:
        return array.data

    def from_dlpack(self, source: Any, index: int) -> Placed:
        if source.__dlpack_device__() != (self.kind, index):
            raise BufferError("not this device's")
        self.log.append(("from_dlpack", index))
        return Placed(source.__dlpack__(), index)


class Swift(Places):
    """Copies by methods of its own, which are told whether anybody waits."""

    def copy_from_host(self, array: Array, index: int, non_blocking: bool = False) -> Placed:
        self.log.append(("copy_from_host", non_blocking))
        return Placed(array.copy(), index)

    def copy_to_host(self, array: Placed, non_blocking: bool = False) -> Array:
        self.log.append(("copy_to_host", non_blocking))
        return array.data.copy()

    def copy_to_device(self, array: Placed, index: int, non_blocking: bool = False) -> Placed:
        self.log.append(("copy_to_device", non_blocking))
        return Placed(array.data.copy(), index)

    def pin(self, array: Array) -> Array:
        return array.copy().view(Pinned)

    def is_pinned(self, array: Array) -> bool:
        return isinstance(array, Pinned)


class Pinned(np.ndarray[Any, Any]):
    """Host memory that a device could read on its own."""


def _placed(raw: Callable[..., Any]) -> Callable[..., Any]:
    device_at = device_position(raw)

    def kernel(*args: Any) -> Any:
        arrays = [leaf for leaf in leaves(args) if isinstance(leaf, Placed)]
        device = arrays[0].device if arrays else args[device_at]
        assert all(array.device == device for array in arrays), "a kernel got arrays of two devices"
        with np.errstate(all="ignore"):
            found = raw(*[opened(value, Placed) for value in args])
        return wrapped(found, lambda array: Placed(array, device))

    return kernel
