"""The GPU that a thread works on, and the properties of each GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import plugrad
from plugrad.plugins.scopes import Scope
from plugrad_cuda import library

_as_device: Final[Any] = plugrad.device  # which takes text as well


def current_device() -> int:
    """The index of the calling thread's GPU.

    Raises:
        RuntimeError: there is no GPU; the message says why.
    """
    index: int = library.require().cuda.runtime.getDevice()
    return index


def index_of(device: Any) -> int:
    """The index of a GPU that is given as an index, as a device or as text; None is the current.

    Raises:
        ValueError: it is not a GPU.
        RuntimeError: there is no such GPU, or none at all.
    """
    if device is None:
        return current_device()
    if not isinstance(device, int):
        wanted = _as_device(str(device))
        if wanted.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {wanted}")
        if wanted.index is None:
            return current_device()
        device = wanted.index
    library.require()
    count = library.device_count()
    if not 0 <= device < count:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: cuda:{device} of {count} device"
            f"{'s' if count != 1 else ''}"
        )
    return int(device)


def device_of_index(index: int) -> Any:
    """plugrad's device of an index, as tensors have it: without one if there is but one GPU."""
    return _as_device("cuda" if library.device_count() == 1 else f"cuda:{index}")


def set_device(device: Any) -> None:
    """Make a GPU the calling thread's; a negative index does nothing."""
    if isinstance(device, int) and device < 0:
        return
    library.require().cuda.runtime.setDevice(index_of(device))


class device(Scope):
    """Within ``with device(1):`` the calling thread works on a GPU; None and -1 change nothing.

    Tensors are still made on plugrad's default device; ``device="cuda"`` means this GPU.
    """

    def __init__(self, device: Any) -> None:
        unchanged = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if unchanged else index_of(device)
        self.prev_idx = -1

    def read(self, state: Any) -> int:
        self.prev_idx = -1 if self.idx < 0 else current_device()
        return self.prev_idx

    def change(self, state: Any) -> None:
        set_device(self.idx)

    def restore(self, state: Any, before: int) -> None:
        set_device(before)


class device_of(device):
    """Within it the calling thread works on the GPU of a tensor; others change nothing."""

    def __init__(self, obj: Any) -> None:
        if not isinstance(obj, plugrad.Tensor):
            raise TypeError(f"device_of(): argument 'obj' must be Tensor, not {type(obj).__name__}")
        super().__init__(obj.device if obj.device.type == "cuda" else None)


@dataclass(frozen=True)
class DeviceProperties:
    """CUDA's properties of a GPU; sizes in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    warp_size: int
    L2_cache_size: int
    shared_memory_per_block: int
    regs_per_multiprocessor: int


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The properties of a GPU, by default the current one."""
    found = library.require().cuda.runtime.getDeviceProperties(index_of(device))
    return DeviceProperties(
        name=library.name_of(found),
        major=found["major"],
        minor=found["minor"],
        total_memory=found["totalGlobalMem"],
        multi_processor_count=found["multiProcessorCount"],
        max_threads_per_multi_processor=found["maxThreadsPerMultiProcessor"],
        warp_size=found["warpSize"],
        L2_cache_size=found["l2CacheSize"],
        shared_memory_per_block=found["sharedMemPerBlock"],
        regs_per_multiprocessor=found["regsPerMultiprocessor"],
    )


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Major and minor number of a GPU's compute capability."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU reads another one's memory without going by way of the host."""
    runtime = library.require().cuda.runtime
    return bool(runtime.deviceCanAccessPeer(index_of(device), index_of(peer_device)))


def synchronize(device: Any = None) -> None:
    """Wait until all streams of a GPU, by default the current one, have done their work."""
    library.require().cuda.Device(index_of(device)).synchronize()
