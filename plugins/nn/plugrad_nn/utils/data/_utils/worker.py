"""The program of a worker process: it reads batches until it gets the message to end."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

import numpy as np

import plugrad
from plugrad.plugins import (
    BackendNotFoundError,
    OperatorNotFoundError,
    PluginError,
    get_manager,
)
from plugrad_nn.multiprocessing.interrupts import run_quietly
from plugrad_nn.utils.data._utils.errors import ExceptionWrapper
from plugrad_nn.utils.data._utils.transport import WorkerEnd
from plugrad_nn.utils.data._utils.worker_info import WorkerInfo, become_worker, get_worker_info
from plugrad_nn.utils.data.graph_settings import seed_pipes

__all__ = ["WorkerInfo", "get_worker_info"]

# Plugins with libraries that start threads; a forked child lacks the threads and would wait for
# them forever.
_NOT_AFTER_FORK: Final = ("cuda", "jax")

_OF_DEVICES: Final = (BackendNotFoundError, OperatorNotFoundError, PluginError)

_imported_in = os.getpid()

# Imported here, so that no worker has to import it while its other thread also imports.
_set_num_threads: Final = plugrad.set_num_threads

# The seconds that a worker may continue after the message to end.
_PATIENCE: Final = 10.0


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's copy of an iterable data set has no more samples."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """A persistent worker starts another epoch, and reports when it has."""

    seed: int | None = None


@dataclass(frozen=True)
class Job:
    """The task of a loader's workers.

    Attributes:
        create_fetcher: makes the fetcher for this process's copy of the data set.
        is_iterable: whether the data set is an iterable one.
        dataset: the data set.
        base_seed: to which a worker's number is added for its seed.
        shared_seed: with which all workers shuffle a pipe; None for another data set.
        init_fn: the user's function, called with the worker's number first.
        num_workers: how many workers there are.
        persistent: whether they stay for the next epoch.
    """

    create_fetcher: Callable[[Any], Any]
    is_iterable: bool
    dataset: Any
    base_seed: int
    shared_seed: int | None
    init_fn: Callable[[int], Any] | None
    num_workers: int
    persistent: bool


def run(job: Job, worker_id: int, connection: Any) -> None:
    """Be a worker process."""

    def work() -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            left = _leave_devices()
            # Other devices belong to the main process, which moves batches to its default device. A
            # forked worker may be inside a block with another default; its threads are not.
            plugrad.set_default_device("cpu")
            with plugrad.device("cpu"):
                _Worker(job, worker_id, connection, left).run()

    # The main process has also received the interrupt, or has ended.
    run_quietly(work, hold_afterwards=True)


def numpy_seed(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's global generator in a worker: as in PyTorch, four words that PyTorch's
    algorithm computes from the two numbers."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in np.random.SeedSequence(entropy).generate_state(4)]


def _leave_devices() -> list[str]:
    """In a forked child, unload backends that would hang here; these."""
    if os.getpid() == _imported_in:
        return []
    plugins = get_manager()
    left = []
    for name, plugin in plugins.discovered().items():
        if name in _NOT_AFTER_FORK and plugin.status == "loaded":
            plugins.unload(name)
            left.append(name)
    return left


class _Inbox:
    """Messages from the main process, read by a thread. So the main process never waits for a
    worker that waits for it, and a worker detects the end of the main process."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._finished = threading.Event()
        self._closed = threading.Event()
        self.is_closed = False
        threading.Thread(target=self._read, daemon=True, name="plugrad-inbox").start()

    def get(self) -> Any:
        """The next message; None if there will be no more."""
        message = self._messages.get()
        return None if self.is_closed else message

    def wait_for_end(self, seconds: float) -> None:
        """Wait until there will be no more messages."""
        self._closed.wait(seconds)

    def finish(self) -> None:
        """The worker is about to end."""
        self._finished.set()

    def _read(self) -> None:
        try:
            while True:
                message = ForkingPickler.loads(self._connection.recv_bytes())
                if message is None:
                    break
                self._messages.put(message)
        except (EOFError, OSError):
            pass  # the main process has ended
        self.is_closed = True
        self._closed.set()
        self._messages.put(None)
        if not self._finished.wait(_PATIENCE):
            os._exit(1)


class _Worker:
    def __init__(self, job: Job, worker_id: int, connection: Any, left_behind: list[str]) -> None:
        self._job = job
        self._left_behind = left_behind
        self._id = worker_id
        self._end = WorkerEnd(connection)
        self._where = f"in DataLoader worker process {worker_id}"
        self._problem: ExceptionWrapper | None = None
        self._fetcher: Any = None
        # An iterable data set has ended, so tasks requested in advance are void.
        self._is_done = False

    def run(self) -> None:
        inbox = _Inbox(self._end.connection)
        try:
            self._prepare()
            while (message := inbox.get()) is not None:
                task, index, released = message
                self._end.pool.released(released)
                if isinstance(index, _ResumeIteration):
                    self._end.send(task, index)
                    self._seed_pipes(index.seed)
                    self._make_fetcher()
                elif not self._is_done:
                    self._send(task, self._fetch(index))
        except KeyboardInterrupt:
            # So the main process sees its own interrupt before it sees that this one has ended.
            inbox.wait_for_end(1)
            raise
        finally:
            inbox.finish()

    def _prepare(self) -> None:
        job = self._job
        _set_num_threads(1)  # the workers together use the processor
        seed = job.base_seed + self._id
        random.seed(seed)
        plugrad.manual_seed(seed)
        np.random.seed(numpy_seed(job.base_seed, self._id))
        self._seed_pipes(job.shared_seed)
        info = WorkerInfo(self._id, job.num_workers, seed, job.dataset)
        become_worker(info, self._end.pool.allocate)
        try:
            if job.init_fn is not None:
                job.init_fn(self._id)
        except Exception as error:
            self._problem = self._wrapped(error)
            return
        self._make_fetcher()

    def _seed_pipes(self, seed: int | None) -> None:
        if seed is not None:
            seed_pipes(self._job.dataset, seed)

    def _make_fetcher(self) -> None:
        self._is_done = False
        try:
            self._fetcher = self._job.create_fetcher(self._job.dataset)
        except Exception as error:
            self._problem = self._wrapped(error)

    def _wrapped(self, error: Exception) -> ExceptionWrapper:
        """The current exception; an error about a device also says what to do."""
        if self._left_behind and isinstance(error, _OF_DEVICES):
            names = " and ".join(map(repr, self._left_behind))
            error.add_note(
                f"A worker process that was forked cannot use {names}: pass "
                "multiprocessing_context='spawn' to DataLoader, or keep the data set on the CPU."
            )
        return ExceptionWrapper(where=self._where)

    def _fetch(self, index: Any) -> Any:
        """A batch, or the object to send in its place."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            return problem
        try:
            return self._fetcher.fetch(index)
        except StopIteration:
            if self._job.is_iterable:
                self._is_done = True
                return _IterableDatasetStopIteration(self._id)
            return ExceptionWrapper(where=self._where)
        except Exception as error:
            return self._wrapped(error)

    def _send(self, task: int, data: Any) -> None:
        try:
            self._end.send(task, data)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception:
            if isinstance(data, ExceptionWrapper):
                self._end.send(task, data.without_class())
            else:
                self._end.send(task, ExceptionWrapper(where=self._where))
