"""What a plugin needs that traces steps: runs them on stand-ins for arrays, to see what they do.

`Listener` sees every operator that is called and every node that runs backward; `listening` has
one listen to this thread. `Before`, `put_arrays` and the others give tensors other arrays.
"""

from __future__ import annotations

from typing import Any

from plugrad.device import Device
from plugrad.dispatch.active_backends import find_backend
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.trace import Trace as Listener
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, wrap
from plugrad.tensor.exchange import (
    HAS_GRAD,
    REQUIRES_GRAD,
    Before,
    arrays_of,
    cell_of,
    drop_gradients,
    put_arrays,
    put_gradients,
    sharers,
    situation,
)

__all__ = [
    "HAS_GRAD",
    "REQUIRES_GRAD",
    "Before",
    "Listener",
    "arrays_of",
    "cell_of",
    "drop_gradients",
    "generators",
    "listening",
    "mode",
    "put_arrays",
    "put_gradients",
    "sharers",
    "situation",
    "tensor_of",
]


class listening:
    """Context manager: a listener hears of what this thread does, and its method `note(tensor)` of
    each tensor that is about to get another array."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener
        self.log: Any = None

    def __enter__(self) -> None:
        state = current_state()
        self.listener.outer = state.trace
        state.trace = self.listener
        self.log = state.array_log
        state.array_log = self.listener

    def __exit__(self, *exc_info: object) -> None:
        state = current_state()
        state.trace = self.listener.outer
        state.array_log = self.log


def mode() -> tuple[bool, bool]:
    """Whether this thread records operations, and whether it is in inference mode."""
    state = current_state()
    return state.grad_enabled, state.inference_mode


def tensor_of(array: Any, dtype: DType, device: Device) -> TensorBase:
    """A new tensor around a backend's array."""
    return wrap(array, dtype, device)


def generators(device_type: str) -> list[Any]:
    """The default generators of a backend's devices, in the order of their indices."""
    active = find_backend(device_type)
    return [active.generator(index) for index in range(active.backend.device_count())]
