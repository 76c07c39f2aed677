"""DeviceThread: one thread per device that is not the host, with its queue of node tasks."""

from __future__ import annotations

from typing import Any, final

from plugrad.autograd.engine.primitives import Primitives
from plugrad.autograd.engine.ready_queue import NodeTask, ReadyQueue
from plugrad.device import HOST_TYPES, Device
from plugrad.dispatch.backend import ActiveBackend, DeviceQueue, active_backends


@final
class DeviceThread:
    """What the engine knows of a device's thread.

    Attributes:
        device: the device it serves.
        active: the backend it was made for; another one of the same name gets a new thread.
        queue: the backend's queue, through which node tasks go.
        ready: the engine's queue behind it. It outlives the thread, and with it what came too late.
        thread: its handle; a thread of the pool may stand in for it while it waits.
        stopping: whether it was told to end.
    """

    def __init__(self, device: Device, active: ActiveBackend, primitives: Primitives) -> None:
        self.device = device
        self.active = active
        self.queue: DeviceQueue = active.queue(device.index or 0)
        ready = self.queue.ready
        if ready is None:
            ready = ReadyQueue()
            ready.share(primitives)
            self.queue.ready = ready
        self.ready: ReadyQueue = ready
        self.thread: Any = None
        self.stopping: bool = False

    def serves(self, active: ActiveBackend) -> bool:
        """Whether tasks for this backend's device are still taken from the queue."""
        return self.active is active and not self.ready.closed

    def push(self, task: NodeTask) -> None:
        self.queue.push(task)

    def pop(self) -> NodeTask:
        """The next task, when there is one."""
        task: NodeTask = self.queue.pop()
        return task


def device_queues() -> list[DeviceQueue]:
    """The queues of all devices that are not the host."""
    return [
        active.queue(index)
        for active in active_backends()
        if active.name not in HOST_TYPES
        for index in range(active.backend.device_count())
    ]
