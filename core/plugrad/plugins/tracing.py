"""For plugins that trace steps: run them on placeholders for arrays, to see what they do.

`Listener` sees every operator call, every node that runs backward and every other change of
tensors; `listening` makes one listen to this thread. `Before`, `put_arrays` and the others give
tensors other arrays. `memory_to_write` is for work on arrays without an operator.
"""

from __future__ import annotations

from typing import Any

from plugrad.device import Device
from plugrad.dispatch.autocast import autocast_in_force
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import WATCH, LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, wrap
from plugrad.tensor.direct import is_direct, memory_to_write
from plugrad.tensor.exchange import (
    HAS_GRAD,
    IS_CONJ,
    IS_NEG,
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
from plugrad.tensor.guards import SameArguments, SameObjects
from plugrad.tensor.math_bits import resolved

__all__ = [
    "HAS_GRAD",
    "IS_CONJ",
    "IS_NEG",
    "REQUIRES_GRAD",
    "Before",
    "Listener",
    "SameArguments",
    "SameObjects",
    "arrays_of",
    "cell_of",
    "drop_gradients",
    "generators",
    "is_direct",
    "listener",
    "listening",
    "memory_to_write",
    "mode",
    "put_arrays",
    "put_gradients",
    "resolved",
    "sharers",
    "situation",
    "tensor_of",
]


class Listener(Trace):
    """A listener to a thread's work; override the methods that you need.

    The methods of `Trace` observe operators and nodes and let them run.
    """

    def note(self, tensor: Any) -> None:
        """The tensor is about to get another array, or its present array is about to be used."""

    def made(self, tensor: Any) -> None:
        """The tensor is new; it may have no contents yet."""

    def read(self, tensor: Any) -> None:
        """Python is about to see the tensor's values, or another backend to get them."""

    def grad_assigned(self, tensor: Any) -> None:
        """Python is about to assign the tensor's `.grad`."""

    def selected(self, tensor: Any) -> None:
        """The tensor is an `x[i]` that is a copy, because the value of `i` is unknown."""

    def stored(self, value: Any) -> None:
        """A value was assigned to such an `x[i]`."""


class listening(Scope):
    """Context manager: a listener observes this thread's work."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        # Represents the scope, which must not be referenced: freeing it restores the state.
        self._watcher = object()

    def read(self, state: LocalState) -> Any:
        return state.trace, state.array_log

    def change(self, state: LocalState) -> None:
        self.listener.outer = state.trace
        WATCH.add(self._watcher)
        state.trace = self.listener
        state.array_log = self.listener

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace, state.array_log = before
        WATCH.discard(self._watcher)


def listener() -> Any:
    """The listener to this thread, or None."""
    return current_state().array_log


def mode() -> tuple[bool, bool, frozenset[tuple[str, DType]]]:
    """Whether this thread records operations, whether it is in inference mode, and for which device
    types it autocasts, with the dtypes."""
    state = current_state()
    return state.grad_enabled, state.inference_mode, frozenset(autocast_in_force(state).items())


def tensor_of(array: Any, dtype: DType, device: Device) -> TensorBase:
    """A new tensor around a backend's array."""
    return wrap(array, dtype, device)


def generators(device_type: str) -> list[Any]:
    """The default generators of a backend's devices, in the order of their indices."""
    active = find_backend(device_type)
    return [active.generator(index) for index in range(active.backend.device_count())]
