"""A backend with several devices for explored programs, and a watchdog: nothing here may hang."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator

import pytest

from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import DeviceQueue
from tests.core.autograd.devices.toy import ToyBackend

HANGS_AFTER_SECONDS = 300.0


class PlainBackend(ToyBackend):
    """Devices with queues that record nothing."""

    def make_queue(self, index: int) -> DeviceQueue:
        return DeviceQueue()


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module", autouse=True)
def toy() -> Iterator[ToyBackend]:
    """The backend "toy" with four devices."""
    ENGINE.stop()
    backend = PlainBackend()
    activate_backend(backend)
    yield backend
    deactivate_backend("toy")
