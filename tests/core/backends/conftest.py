"""Backends that live for one module of tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import Backend


@contextmanager
def activated(backend: Backend) -> Iterator[str]:
    """The device type of a backend while it is active; no thread of the engine outlives it."""
    activate_backend(backend)
    try:
        yield backend.name
    finally:
        ENGINE.stop()
        deactivate_backend(backend.name)
