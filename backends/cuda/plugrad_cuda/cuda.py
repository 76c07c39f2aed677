"""`plugrad.cuda`: functions for GPUs, under PyTorch's names.

Without a GPU `is_available` is false and `device_count` 0, memory is 0 bytes, and functions that
need a GPU raise a RuntimeError that says why there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import plugrad
from plugrad.plugins.arguments import explains
from plugrad_cuda import library
from plugrad_cuda.devices import (
    DeviceProperties,
    can_device_access_peer,
    current_device,
    device,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    set_device,
    synchronize,
)
from plugrad_cuda.devices import index_of as _index_of
from plugrad_cuda.generator import default_generator as _default_generator
from plugrad_cuda.graphs import (
    CUDAGraph,
    capture,
    graph,
    graph_pool_handle,
    make_graphed_callables,
)
from plugrad_cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from plugrad_cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
)

__all__ = [
    "is_available",
    "device_count",
    "init",
    "is_initialized",
    "is_bf16_supported",
    "DeviceProperties",
    "can_device_access_peer",
    "current_device",
    "device",
    "device_of",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "set_device",
    "synchronize",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "initial_seed",
    "get_rng_state",
    "set_rng_state",
    "get_rng_state_all",
    "set_rng_state_all",
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "is_current_stream_capturing",
    "set_stream",
    "stream",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "CUDAGraph",
    "capture",
    "graph",
    "graph_pool_handle",
    "make_graphed_callables",
]


def __dir__() -> list[str]:
    return sorted(__all__)


# bfloat16 has arithmetic of its own from this capability on.
_BF16_CAPABILITY = 8


def is_available() -> bool:
    """Whether there is a GPU that can be used; never raises.

    >>> import plugrad
    >>> plugrad.cuda.is_available() == (plugrad.cuda.device_count() > 0)
    True
    """
    return library.device_count() > 0


def device_count() -> int:
    """The number of GPUs that can be used; 0 without a driver. Never raises."""
    return library.device_count()


def init() -> None:
    """Make sure that there is a GPU to use; RuntimeError says why there is none."""
    library.require()


def is_initialized() -> bool:
    """Whether a GPU is in use, or could be from now on without further ado."""
    return library.cupy.cache_info().currsize > 0 and is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes with bfloat16; False without one.

    Args:
        including_emulation: whether by way of float32 counts, as all GPUs do.
    """
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= _BF16_CAPABILITY


def manual_seed(seed: int) -> None:
    """Seed the generator of the current GPU; nothing without one."""
    if is_available():
        _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; nothing without one."""
    for index in range(device_count()):
        _generator(index).manual_seed(int(seed))


def seed() -> None:
    """Seed the generator of the current GPU with a number that the system picks."""
    if is_available():
        _generator(None).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with one number that the system picks."""
    if is_available():
        manual_seed_all(_generator(None).seed())


def initial_seed() -> int:
    """The seed of the current GPU's generator; RuntimeError without one."""
    return int(_generator(None).initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, as a tensor of bytes on the host.

    Args:
        device: the GPU, by default the current one.

    Raises:
        RuntimeError: there is no GPU, or not that many.
    """
    return plugrad.as_tensor(_generator(device).get_state())


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator to one that `get_rng_state` gave.

    Args:
        new_state: a tensor of bytes on the host.
        device: the GPU, by default the current one.

    Raises:
        RuntimeError: there is no GPU, or not that many.
    """
    _generator(device).set_state(new_state.numpy())


def get_rng_state_all() -> list[Any]:
    """The states of all GPUs' generators, in the order of the GPUs; empty without one."""
    return [get_rng_state(index) for index in range(device_count())]


@explains
def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of all GPUs' generators to those that `get_rng_state_all` gave."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _generator(device: Any) -> Any:
    library.require()
    return _default_generator(_index_of(device))
