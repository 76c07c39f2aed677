"""Backends whose arrays cannot be written to: NumPy's, locked, and without strides; and JAX's."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import Backend
from plugrad_cpu.backend import CpuBackend

Array = np.ndarray[Any, Any]


def locked(value: Any) -> Any:
    """Arrays that NumPy refuses to write to, whatever else views their memory."""
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value).reshape(value.shape).view()
        value.setflags(write=False)
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(locked(item) for item in value)
    return value


def locking(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: locked(kernel(*args))


class FrozenBackend(CpuBackend):
    """The CPU's kernels on arrays that nobody can write to."""

    def __init__(self) -> None:
        Backend.__init__(self, "frozen", array_type=np.ndarray, mutable=False)

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return {
            name: locking(kernel)
            for name, kernel in super().kernels().items()
            if not name.partition(".")[0].endswith("_")
        }

    def from_host(self, array: Array, index: int) -> Array:
        frozen: Array = locked(array.copy())
        return frozen

    def to_host(self, array: Array) -> Array:
        return array.copy()

    def as_array(self, value: Any) -> Array:
        frozen: Array = locked(np.asarray(value))
        return frozen

    strides = Backend.strides
    storage_offset = Backend.storage_offset
    from_dlpack = Backend.from_dlpack
    dlpack_type = Backend.dlpack_type


def immutable_backends() -> list[str]:
    """Those to test: "frozen", and "jax" where it is installed and meant to be tested. Of two runs
    side by side, the one on the compiled core has JAX's arrays."""
    # `make test` has the names empty where nobody chose.
    named = os.environ.get("BACKENDS", "").split() or ["jax"]
    found = [importlib.util.find_spec(module) for module in ("plugrad_jax", "jax")]
    shared = os.environ.get("PLUGRAD_TEST_SHARED")
    here = not shared or os.environ.get("PLUGRAD_TEST_CORE") == "compiled"
    return ["frozen", "jax"] if here and "jax" in named and all(found) else ["frozen"]


@contextmanager
def immutable_device(name: str) -> Iterator[None]:
    """Such a backend is active inside; "frozen" is there only where a test asks for it."""
    if name == "frozen":
        activate_backend(FrozenBackend())
    yield
    if name == "frozen":
        deactivate_backend("frozen")
