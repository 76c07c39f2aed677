"""Backends with devices that are only names, which record copies to and from them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from tests.core.devices.places import Places


@pytest.fixture
def places() -> Iterator[Places]:
    """The backend "places" with three devices; its conversions share memory with the host."""
    yield from _active(Places("places"))


@pytest.fixture
def near() -> Iterator[Places]:
    """A backend with a kind of memory of its own, which DLPack numbers 12."""
    yield from _active(Places("near", dlpack=12))


@pytest.fixture
def beside() -> Iterator[Places]:
    """Another backend for the memory of `near`; its arrays cannot be written to."""
    yield from _active(Places("beside", dlpack=12, mutable=False))


def _active(backend: Places) -> Iterator[Places]:
    activate_backend(backend)
    yield backend
    ENGINE.stop()
    deactivate_backend(backend.name)
