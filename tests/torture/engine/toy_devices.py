"""The backend "toy" with four devices, in the process of a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, active_backends
from plugrad.plugins import DeviceQueue
from tests.core.autograd.devices.toy import ToyBackend

DEVICES = ("cpu", "toy:0", "toy:1", "toy:2", "toy:3")


def _nothing(place: str) -> None:
    pass


class Points:
    """What the queues call before everything they do; a family puts its own function here."""

    passed: Callable[[str], None] = staticmethod(_nothing)


class _Queue(DeviceQueue):
    def push(self, task: Any) -> None:
        Points.passed("push")
        super().push(task)

    def record_event(self) -> Any:
        Points.passed("record_event")
        return super().record_event()

    def wait_event(self, event: Any) -> None:
        Points.passed("wait_event")
        super().wait_event(event)

    def fork(self) -> None:
        Points.passed("fork")
        super().fork()

    def join(self) -> None:
        Points.passed("join")
        super().join()


class _PlainBackend(ToyBackend):
    """Devices with queues that record nothing."""

    def make_queue(self, index: int) -> DeviceQueue:
        return _Queue()


def have_toy_devices() -> None:
    """Activate the backend unless it is active."""
    if all(active.name != "toy" for active in active_backends()):
        ENGINE.stop()
        activate_backend(_PlainBackend())
