"""DeviceThread: one thread per device that is not the host, with its queue of node tasks."""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.autograd.engine.primitives import Primitives
from plugrad.autograd.engine.ready_queue import NodeTask, ReadyQueue
from plugrad.device import Device
from plugrad.dispatch.backend import ActiveBackend, DeviceQueue

# So many threads of the pool wait for the next pass that nests deeply; others end.
MOST_IDLE: Final = 8


@final
class DeviceThread:
    """What the engine knows of a device's thread.

    Attributes:
        device: the device it serves.
        active: the backend it was made for; another one of the same name gets a new thread.
        queue: the backend's queue, through which node tasks go.
        thread: its handle; a thread of the pool may stand in for it while it waits.
        stopping: whether it was told to end.
    """

    def __init__(self, device: Device, active: ActiveBackend, primitives: Primitives) -> None:
        self.device = device
        self.active = active
        self.queue: DeviceQueue = active.queue(device.index or 0)
        self.ready = ReadyQueue()
        self.ready.share(primitives)
        self.queue.ready = self.ready
        self.thread: Any = None
        self.stopping: bool = False

    def push(self, task: NodeTask) -> None:
        self.queue.push(task)

    def pop(self) -> NodeTask:
        """The next task, when there is one."""
        task: NodeTask = self.queue.pop()
        return task


@final
class Handover:
    """A pass that a thread of the pool drives while the one that called it waits."""

    def __init__(self, task: Any, primitives: Primitives) -> None:
        self.task: Any = task
        self.done: bool = False
        self._changed: Any = primitives.condition()

    def wait(self) -> None:
        with self._changed:
            while not self.done:
                self._changed.wait()

    def finish(self) -> None:
        with self._changed:
            self.done = True
            self._changed.notify_all()


@final
class ReentrantPool:
    """Threads that take over from those whose stack of nested passes has grown too deep.

    A thread is started when none is idle, since all of them may have to wait for each other.
    """

    def __init__(self, primitives: Primitives, drive: Any) -> None:
        self._primitives = primitives
        self._drive: Any = drive
        self._changed: Any = primitives.condition()
        self._waiting: list[Handover] = []
        self._idle = 0
        self._started = 0
        self._stopping = False

    def submit(self, handover: Handover) -> None:
        start = False
        with self._changed:
            self._waiting.append(handover)
            if self._idle >= len(self._waiting):
                self._changed.notify()
            else:
                start = True
                self._started += 1
        if start:
            self._primitives.start_thread(f"plugrad-reentrant-{self._started}", self._main)

    def stop(self) -> None:
        """Let idle threads end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _main(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopping:
                    if self._idle >= MOST_IDLE:
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                if not self._waiting:
                    return
                handover = self._waiting.pop(0)
            self._drive(handover)
