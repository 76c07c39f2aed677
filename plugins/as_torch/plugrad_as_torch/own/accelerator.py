"""`torch.accelerator`: the GPUs of plugrad-cuda, if it is installed and finds any."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import plugrad

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a usable accelerator."""
    return plugrad.cuda.is_available()


def device_count() -> int:
    """How many accelerators there are; 0 if none."""
    return plugrad.cuda.device_count() if is_available() else 0


def current_accelerator(check_available: bool = False) -> plugrad.device | None:
    """The device without an index, such as `device("cuda")`; None if there is none."""
    return plugrad.device("cuda") if is_available() else None


def _of_cuda(name: str, function: str = "") -> Callable[..., Any]:
    """A function of `plugrad.cuda` that needs a GPU."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_available():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return getattr(plugrad.cuda, function or name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "torch.accelerator"
    call.__doc__ = f"`plugrad.cuda.{function or name}`; RuntimeError if there is no accelerator."
    return call


current_device_index = _of_cuda("current_device_index", "current_device")
current_device_idx = current_device_index
current_stream = _of_cuda("current_stream")
empty_cache = _of_cuda("empty_cache")
get_device_capability = _of_cuda("get_device_capability")
get_memory_info = _of_cuda("get_memory_info", "mem_get_info")
max_memory_allocated = _of_cuda("max_memory_allocated")
max_memory_reserved = _of_cuda("max_memory_reserved")
memory_allocated = _of_cuda("memory_allocated")
memory_reserved = _of_cuda("memory_reserved")
memory_stats = _of_cuda("memory_stats")
reset_peak_memory_stats = _of_cuda("reset_peak_memory_stats")
set_device_index = _of_cuda("set_device_index", "set_device")
set_device_idx = set_device_index
set_stream = _of_cuda("set_stream")
synchronize = _of_cuda("synchronize")


class device_index:
    """A block in which a GPU is the current one; None changes nothing."""

    def __init__(self, device: int | None) -> None:
        self.idx = device
        self._inside: Any = None

    def __enter__(self) -> None:
        if self.idx is not None:
            self._inside = functools.partial(set_device_index, current_device_index())
            set_device_index(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self._inside is not None:
            self._inside()
            self._inside = None
