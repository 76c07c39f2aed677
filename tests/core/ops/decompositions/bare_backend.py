"""Backends that can nothing but the primitives: what else they do comes from decompositions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.dispatch.backends.primitives import core_primitives, is_primitive
from plugrad.dispatch.operator import all_operators
from plugrad.plugins import Backend
from plugrad_cpu.backend import CpuBackend


class Memory:
    """An array that can nothing: what the core does with it goes through kernels."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype


def _opened(value: Any) -> Any:
    if isinstance(value, Memory):
        return value.data
    return [_opened(item) for item in value] if isinstance(value, list) else value


def _closed(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Memory(value)
    if isinstance(value, (tuple, list)):
        return type(value)([_closed(item) for item in value])
    return value


def on_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel on `Memory` from one on NumPy arrays."""

    def kernel(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return _closed(function(*[_opened(argument) for argument in args]))

    return kernel


class BareBackend(Backend):
    """Memory of its own, and the CPU's kernels of some primitives under their full names."""

    def __init__(self, name: str, primitives: list[str]) -> None:
        super().__init__(name, array_type=Memory)
        self.host = CpuBackend()
        kernels = self.host.kernels()
        self._kernels = {
            full: on_memory(kernels[full] if full in kernels else kernels[full.partition(".")[0]])
            for full in primitives
        }

    def kernels(self) -> dict[str, Callable[..., Any]]:
        return self._kernels

    def from_host(self, array: Any, index: int) -> Memory:
        return Memory(array.copy())

    def to_host(self, array: Memory) -> Any:
        return array.data.copy()

    def strides(self, array: Memory) -> tuple[int, ...]:
        return self.host.strides(array.data)

    def storage_offset(self, array: Memory) -> int:
        return self.host.storage_offset(array.data)


def primitives_of(level: str) -> list[str]:
    """Full names: the core primitives, or all of plugrad's primitives."""
    chosen = core_primitives() if level == "core" else all_operators()
    return [op.full_name for op in chosen if op.namespace == "plugrad" and is_primitive(op)]


@contextmanager
def bare_backend(level: str) -> Iterator[str]:
    """The device type of an active backend with the primitives of a level, core or full."""
    name = f"bare_{level}"
    activate_backend(BareBackend(name, primitives_of(level)))
    try:
        yield name
    finally:
        deactivate_backend(name)
