"""A step for a compiler that compiles for its own backend's tensors, and differently for the
host's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from plugrad.dispatch.backends.active import canonical_device
from plugrad.tensor.base import TensorBase


class ByDevice:
    """A compiled step that depends on the device of the first tensor among its arguments, or else
    on the default device.

    Args:
        name: the backend that provides the compiler.
        own: the step as that backend compiles it.
        on_host: makes the step as it is compiled for other tensors.
    """

    def __init__(self, name: str, own: Callable[..., Any], on_host: Callable[[], Any]) -> None:
        functools.update_wrapper(self, own)
        self._name = name
        self._own: Any = own
        self._make = on_host
        self._on_host: Any = None
        self._last: Any = own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = _first((*args, *kwargs.values()))
        device = canonical_device(None) if found is None else found.device
        if device.type == self._name:
            self._last = self._own
        else:
            if self._on_host is None:
                self._on_host = self._make()
            self._last = self._on_host
        return self._last(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        """`explain` and other attributes belong to the program that ran last."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._last, name)


def _first(values: Iterable[Any]) -> TensorBase | None:
    for value in values:
        if isinstance(value, TensorBase):
            return value
        inside = value.values() if isinstance(value, dict) else value
        if isinstance(value, (dict, list, tuple)):
            found = _first(inside)
            if found is not None:
                return found
    return None
