"""Device threads: one for each device except the host, with its queue of node tasks."""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.autograd.engine.primitives import Primitives
from plugrad.autograd.engine.ready_queue import NodeTask, ReadyQueue
from plugrad.device import HOST_TYPES, Device
from plugrad.dispatch.backends.active import ActiveBackend, active_backends, find_backend
from plugrad.dispatch.backends.backend import DeviceQueue
from plugrad.dispatch.local_state import current_state

# How long the end of the process waits for a node that is still running.
SHUTDOWN_SECONDS: Final = 10.0


@final
class DeviceThread:
    """The engine's record of a device's thread.

    Attributes:
        device: the device it serves.
        active: the backend it was made for; another one of the same name gets a new thread.
        queue: the backend's queue, through which node tasks go.
        streams: whether nodes choose among streams; the queue's events then do not cover their
            work.
        ready: the engine's queue behind it. It outlives the thread and keeps tasks that came too
            late.
        thread: its handle; a thread of the pool may replace it while it waits.
        stopping: whether it has to end.
    """

    def __init__(self, device: Device, active: ActiveBackend, primitives: Primitives) -> None:
        self.device = device
        self.active = active
        self.queue: DeviceQueue = active.queue(device.index or 0)
        self.streams: bool = active.streams
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


@final
class DeviceThreads:
    """The threads of all devices.

    Args:
        primitives: where locks and threads come from.
        run_task: called with the thread's state and a task, for each that a thread takes.
    """

    def __init__(self, primitives: Primitives, run_task: Any) -> None:
        self._primitives = primitives
        self._run_task: Any = run_task
        self._threads: dict[Device, DeviceThread] = {}
        self._lock: Any = primitives.lock()

    def thread_of(self, device: Device) -> DeviceThread:
        """The thread that serves a device, started when it is first needed."""
        active = find_backend(device.type)
        known = self._threads.get(device)
        if known is not None and known.serves(active):
            return known
        with self._lock:
            known = self._threads.get(device)
            if known is not None:
                if known.serves(active):
                    return known
                if known.active is not active:
                    known.push(NodeTask(None, None, None))
            made = DeviceThread(device, active, self._primitives)
            main = _Main(self, made)
            made.ready.closed = False
            try:
                made.thread = self._primitives.start_thread(f"plugrad-{device}", main.run)
            except BaseException:
                made.ready.closed = True
                main.cancelled = True  # it may have started all the same
                raise
            self._threads[device] = made
        return made

    def push(self, thread: DeviceThread, item: NodeTask) -> None:
        """Give a device's thread something to do; another one takes its place if it has ended."""
        thread.push(item)
        if thread.ready.closed:
            self.thread_of(thread.device)

    def serve(self, thread: DeviceThread) -> None:
        """The main loop of a device's thread: runs tasks of all passes until it has to end."""
        state = current_state()
        state.worker = thread
        activated = False
        while not (thread.stopping and thread.ready.close_if_empty()):
            item = thread.pop()
            task = item.graph_task
            if task is not None and not activated:
                try:
                    thread.queue.activate()
                    activated = True
                except BaseException as error:
                    task.fail(error)
            self._run_task(state, item)
            del item, task  # or the last pass would live until the next one

    def was_cancelled(self, main: _Main) -> bool:
        """Whether starting a thread failed after it had started."""
        with self._lock:
            return main.cancelled

    def stop(self) -> None:
        """Let all threads end when they have done what waits."""
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.push(NodeTask(None, None, None))
        worker: DeviceThread | None = current_state().worker
        for thread in threads:
            if thread is not worker:
                thread.thread.join(SHUTDOWN_SECONDS)


@final
class _Main:
    """What a device's thread runs."""

    def __init__(self, threads: DeviceThreads, thread: DeviceThread) -> None:
        self._all = threads
        self._served = thread
        self.cancelled: bool = False

    def run(self) -> None:
        if not self._all.was_cancelled(self):
            self._all.serve(self._served)
