"""The devices that these tests run on, and a watchdog for tests in which threads wait."""

from __future__ import annotations

import faulthandler
import sys
import threading
from collections.abc import Iterator

import pytest

from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import (
    activate_backend,
    active_backends,
    deactivate_backend,
)
from tests.core.autograd.devices.toy import LateBackend, ToyBackend

# A test in which threads wait for each other for ever shows where, and ends the run.
HANGS_AFTER_SECONDS = 120.0


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


def stop_threads() -> None:
    """End the engine's threads; `stop` itself does not wait for the pool's threads."""
    ENGINE.stop()
    for thread in threading.enumerate():
        if thread.name.startswith("plugrad-reentrant"):
            thread.join(HANGS_AFTER_SECONDS)


@pytest.fixture
def alone() -> Iterator[None]:
    """Deactivate other backends with streams, because every pass would order them: CUDA's may be
    active from another test."""
    others = [active.backend for active in active_backends() if active.streams]
    for backend in others:
        deactivate_backend(backend.name)
    yield
    for backend in others:
        activate_backend(backend)


@pytest.fixture
def toy(alone: None) -> Iterator[ToyBackend]:
    """The backend "toy" with four devices, none of which has a thread yet."""
    stop_threads()
    backend = ToyBackend()
    activate_backend(backend)
    yield backend
    stop_threads()
    deactivate_backend("toy")


@pytest.fixture
def late() -> Iterator[LateBackend]:
    """The backend "late": its devices work asynchronously and check that all readers wait."""
    stop_threads()
    backend = LateBackend()
    activate_backend(backend)
    yield backend
    stop_threads()
    deactivate_backend("late")
