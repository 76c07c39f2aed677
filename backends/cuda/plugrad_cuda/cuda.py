"""`plugrad.cuda`: what programs ask of GPUs, under PyTorch's names.

Without a GPU `is_available` is false and `device_count` 0, memory is 0 bytes, and what needs a
GPU raises a RuntimeError that says why there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import plugrad
from plugrad_cuda import library
from plugrad_cuda.devices import DeviceProperties as DeviceProperties
from plugrad_cuda.devices import can_device_access_peer as can_device_access_peer
from plugrad_cuda.devices import current_device as current_device
from plugrad_cuda.devices import device as device
from plugrad_cuda.devices import device_of as device_of
from plugrad_cuda.devices import get_device_capability as get_device_capability
from plugrad_cuda.devices import get_device_name as get_device_name
from plugrad_cuda.devices import get_device_properties as get_device_properties
from plugrad_cuda.devices import index_of as _index_of
from plugrad_cuda.devices import set_device as set_device
from plugrad_cuda.devices import synchronize as synchronize
from plugrad_cuda.generator import default_generator as _default_generator
from plugrad_cuda.graphs import CUDAGraph as CUDAGraph
from plugrad_cuda.graphs import capture as capture
from plugrad_cuda.graphs import graph as graph
from plugrad_cuda.graphs import graph_pool_handle as graph_pool_handle
from plugrad_cuda.graphs import make_graphed_callables as make_graphed_callables
from plugrad_cuda.memory import empty_cache as empty_cache
from plugrad_cuda.memory import max_memory_allocated as max_memory_allocated
from plugrad_cuda.memory import max_memory_reserved as max_memory_reserved
from plugrad_cuda.memory import mem_get_info as mem_get_info
from plugrad_cuda.memory import memory_allocated as memory_allocated
from plugrad_cuda.memory import memory_reserved as memory_reserved
from plugrad_cuda.memory import memory_stats as memory_stats
from plugrad_cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from plugrad_cuda.streams import Event as Event
from plugrad_cuda.streams import ExternalStream as ExternalStream
from plugrad_cuda.streams import Stream as Stream
from plugrad_cuda.streams import StreamContext as StreamContext
from plugrad_cuda.streams import current_stream as current_stream
from plugrad_cuda.streams import default_stream as default_stream
from plugrad_cuda.streams import is_current_stream_capturing as is_current_stream_capturing
from plugrad_cuda.streams import set_stream as set_stream
from plugrad_cuda.streams import stream as stream

# bfloat16 has arithmetic of its own from this capability on.
_BF16_CAPABILITY = 8


def is_available() -> bool:
    """Whether there is a GPU that can be used; never raises."""
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
    """Whether the current GPU computes with bfloat16; all do by way of float32."""
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
    """The seed of the current GPU's generator."""
    return int(_generator(None).initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, as a tensor of bytes on the host."""
    return plugrad.as_tensor(_generator(device).get_state())


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator to one that `get_rng_state` gave."""
    _generator(device).set_state(new_state.numpy())


def get_rng_state_all() -> list[Any]:
    """The states of all GPUs' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of all GPUs' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _generator(device: Any) -> Any:
    library.require()
    return _default_generator(_index_of(device))
