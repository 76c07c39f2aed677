"""The common part of test backends with NumPy's arrays, plain or wrapped."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.plugins import Backend

Array = np.ndarray[Any, Any]


class HostMemory(Backend):
    """NumPy arrays and the CPU's kernels on devices that are only names."""

    def __init__(self, name: str) -> None:
        super().__init__(name, array_type=np.ndarray)

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return find_backend("cpu").kernels

    def as_array(self, value: Any) -> Any:
        return np.asarray(value)

    def from_host(self, array: Array, index: int) -> Any:
        return np.array(array)

    def to_host(self, array: Any) -> Array:
        return np.array(array)

    def strides(self, array: Any) -> tuple[int, ...]:
        return tuple(step // array.dtype.itemsize for step in array.strides)


def device_position(kernel: Callable[..., Any]) -> int:
    """Where among its arguments a kernel gets the device's index; -1 if it gets none."""
    try:
        parameters = list(inspect.signature(kernel).parameters)
    except ValueError:  # NumPy's own functions
        return -1
    return parameters.index("device") if "device" in parameters else -1


def leaves(value: Any) -> list[Any]:
    """What tuples and lists hold, and those in them."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def opened(value: Any, array_type: type) -> Any:
    """NumPy's array in one of `array_type`, in a list too; what is none stays."""
    if isinstance(value, list):
        return [opened(item, array_type) for item in value]
    return value.data if isinstance(value, array_type) else value


def wrapped(value: Any, wrap: Callable[[Any], Any]) -> Any:
    """What a kernel returned, with `wrap` around every array."""
    if isinstance(value, (tuple, list)):
        return type(value)([wrapped(item, wrap) for item in value])
    return wrap(value) if isinstance(value, (np.ndarray, np.generic)) else value
