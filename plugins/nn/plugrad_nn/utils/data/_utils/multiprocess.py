"""One pass over a loader by worker processes: they read ahead, and batches come in order."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import time
import warnings
import weakref
from collections.abc import Sequence
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

import plugrad_nn.multiprocessing
from plugrad_nn.multiprocessing.interrupts import held_while_starting
from plugrad_nn.utils.data._utils import MP_STATUS_CHECK_INTERVAL
from plugrad_nn.utils.data._utils.errors import ExceptionWrapper
from plugrad_nn.utils.data._utils.iteration import _BaseDataLoaderIter, _DatasetKind
from plugrad_nn.utils.data._utils.pin_memory import pin_memory
from plugrad_nn.utils.data._utils.transport import MainEnd
from plugrad_nn.utils.data._utils.worker import (
    Job,
    _IterableDatasetStopIteration,
    _ResumeIteration,
    run,
)
from plugrad_nn.utils.data._utils.worker_info import get_worker_info
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from plugrad_nn.utils.data.graph_settings import apply_sharding

# How many seconds to wait before checking that workers are alive, and how many seconds one may
# finish its batch after a request to end.
_PATIENCE = MP_STATUS_CHECK_INTERVAL

# The number of pieces of shared memory that a program's kept batches may use, over all workers of a
# loader.
_MOST_KEPT: Final = 256

# This process's ends of pipes: a forked child closes its copies. Otherwise a worker would not
# notice that this process has ended, because other workers still hold that end.
_own_ends: weakref.WeakSet[Any] = weakref.WeakSet()


def _close_ends_of_parent() -> None:
    for end in list(_own_ends):
        end.close()
    _own_ends.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_ends_of_parent)


class _Workers:
    """The processes of one iterator, and the ends of the pipes to them."""

    def __init__(self) -> None:
        self.processes: list[Any] = []
        self.ends: list[MainEnd] = []
        self._owner = os.getpid()
        self._is_stopped = False

    def start(self, context: Any, job: Job) -> None:
        """Start one more process. Raises the errors of multiprocessing, for example if something
        cannot be pickled.
        """
        number = len(self.processes)
        ours, theirs = context.Pipe(duplex=True)
        _own_ends.add(ours)
        try:
            process = context.Process(target=run, args=(job, number, theirs), daemon=True)
            with held_while_starting(context), warnings.catch_warnings():
                # JAX warns about forks, but a forked worker does not use JAX.
                warnings.filterwarnings("ignore", "os.fork\\(\\) was called", RuntimeWarning)
                process.start()
                self.processes.append(process)
                self.ends.append(MainEnd(ours, max(16, _MOST_KEPT // job.num_workers)))
        except Exception:
            ours.close()
            raise
        finally:
            theirs.close()

    def stop(self) -> None:
        """End all processes, first by asking."""
        if self._is_stopped or os.getpid() != self._owner:
            return
        self._is_stopped = True
        for number in range(len(self.processes)):
            self.stop_one(number)
        until = time.monotonic() + _PATIENCE
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
                process.join(_PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()

    def stop_one(self, number: int) -> None:
        """Request that a process ends, without waiting."""
        end = self.ends[number].connection
        if not end.closed:
            # Without an error if it has ended.
            with contextlib.suppress(OSError):
                end.send_bytes(ForkingPickler.dumps(None))
            end.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Reads in worker processes. A task is the sampler's indices for one batch, and has a number.
    Each worker gets `prefetch_factor` tasks in advance; whenever a batch is delivered, the next
    worker in turn gets another one. Batches that arrive early are stored.
    """

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError(
                "num_workers must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        if self._prefetch_factor <= 0:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        context = loader.multiprocessing_context or plugrad_nn.multiprocessing
        self._worker_init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            self._worker_init_fn = functools.partial(_take_share, loader.worker_init_fn)
        job = Job(
            functools.partial(
                _create_fetcher,
                self._dataset_kind,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
            ),
            self._dataset_kind == _DatasetKind.Iterable,
            self._dataset,
            self._base_seed,
            self._shared_seed,
            self._worker_init_fn,
            self._num_workers,
            self._persistent_workers,
        )
        self._running = _Workers()
        self._finalizer = weakref.finalize(self, self._running.stop)
        try:
            for _ in range(self._num_workers):
                self._running.start(context, job)
        except BaseException:
            self._shutdown_workers()
            raise
        self._workers = self._running.processes
        self._reset(loader, first_iter=True)

    @property
    def _shutdown(self) -> bool:
        return not self._finalizer.alive

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0
        self._rcvd_idx = 0
        # By the number of a task: its worker and, once it has arrived, its result.
        self._task_info: dict[int, tuple[Any, ...]] = {}
        self._tasks_outstanding = 0
        if not first_iter:
            self._resume()
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _resume(self) -> None:
        """Restart persistent workers, and drop their remaining batches of the last epoch."""
        for worker in range(self._num_workers):
            self._put(worker, -1, _ResumeIteration(self._shared_seed))
        waiting = set(range(self._num_workers))
        while waiting:
            for worker in self._ready(sorted(waiting), None):
                _, data = self._receive(worker)
                if isinstance(data, _ResumeIteration):
                    waiting.discard(worker)

    def _try_put_index(self) -> None:
        if self._tasks_outstanding >= self._prefetch_factor * self._num_workers:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._next_worker()
        if worker is None:
            return
        self._put(worker, self._send_idx, index)
        self._task_info[self._send_idx] = (worker,)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _next_worker(self) -> int | None:
        """The next worker in turn that has not ended and, if batches come as they are ready, has at
        most its share of tasks."""
        most = self._prefetch_factor * self._num_workers // max(1, sum(self._workers_status))
        for worker in itertools.islice(self._worker_queue_idx_cycle, self._num_workers):
            if not self._workers_status[worker]:
                continue
            if self._in_order or self._workers_num_tasks[worker] < most:
                return worker
        return None

    def _put(self, worker: int, task: int, index: Any) -> None:
        end = self._running.ends[worker]
        message = ForkingPickler.dumps((task, index, end.released()))
        try:
            end.connection.send_bytes(message)
        except OSError:
            pass  # the worker has ended, which is detected when its batch is requested
        except BaseException:
            # The worker cannot read a half-written message.
            self._shutdown_workers()
            raise

    def _next_data(self) -> Any:
        while True:
            self._skip_void_tasks()
            if self._rcvd_idx >= self._send_idx:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if len(self._task_info[self._rcvd_idx]) == 2:
                worker, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data, worker)
            if self._shutdown or self._tasks_outstanding <= 0:
                raise AssertionError(
                    "Invalid iterator state: shutdown or no outstanding tasks when fetching next "
                    "data"
                )
            task, data = self._get_data()
            self._tasks_outstanding -= 1
            worker = self._task_info[task][0]
            if isinstance(data, _IterableDatasetStopIteration):
                self._mark_worker_as_unavailable(worker)
                self._try_put_index()
            elif task != self._rcvd_idx and self._in_order:
                self._task_info[task] = (worker, data)
            else:
                del self._task_info[task]
                if task == self._rcvd_idx:
                    self._rcvd_idx += 1
                return self._process_data(data, worker)

    def _skip_void_tasks(self) -> None:
        """Advance to the first task that has arrived, or that a worker still has."""
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info is not None and (len(info) == 2 or self._workers_status[info[0]]):
                return
            self._task_info.pop(self._rcvd_idx, None)
            self._rcvd_idx += 1

    def _process_data(self, data: Any, worker_idx: int) -> Any:
        self._workers_num_tasks[worker_idx] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return pin_memory(data) if self._pin_memory else data

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        self._workers_status[worker_id] = False
        if shutdown or not self._persistent_workers:
            self._running.stop_one(worker_id)

    def _get_data(self) -> tuple[int, Any]:
        """The next message from a worker. Raises RuntimeError if a worker has died, or no message
        arrives in time.
        """
        active = [n for n, is_active in enumerate(self._workers_status) if is_active]
        ready = self._ready(active, self._timeout if self._timeout > 0 else None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        wanted = self._task_info.get(self._rcvd_idx, (ready[0],))[0]
        return self._receive(wanted if wanted in ready else ready[0])

    def _ready(self, workers: Sequence[int], timeout: float | None) -> list[int]:
        """The workers that have sent something or have ended; none if there is no message in
        time."""
        ends = {self._running.ends[worker].connection: worker for worker in workers}
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _PATIENCE if until is None else min(_PATIENCE, until - time.monotonic())
            found = connection.wait(list(ends), max(0.0, left))
            if found:
                return [ends[end] for end in found]
            dead = [worker for worker in workers if not self._workers[worker].is_alive()]
            if dead and not connection.wait(list(ends), 0):
                raise self._failure(dead)
            if until is not None and time.monotonic() >= until:
                return []

    def _receive(self, worker: int) -> tuple[int, Any]:
        try:
            return self._running.ends[worker].receive()
        except (EOFError, ConnectionResetError):
            error = self._failure([worker])
            raise error from error.__cause__
        except BaseException:
            # A half-read message cannot be continued.
            self._shutdown_workers()
            raise

    def _failure(self, workers: Sequence[int]) -> RuntimeError:
        """The error about workers that have ended by themselves; the others are ended."""
        dead = [self._workers[worker] for worker in workers]
        for process in dead:
            process.join(_PATIENCE)
        dead += [p for p in self._workers if p not in dead and p.exitcode not in (None, 0)]
        reason = _reason(dead[0])
        pids = ", ".join(str(process.pid) for process in dead)
        self._shutdown_workers()
        error = RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
        error.__cause__ = reason
        return error

    def _shutdown_workers(self) -> None:
        self._finalizer()


def _take_share(init_fn: Any, worker_id: int) -> None:
    """Have the pipe of this worker read its share of the samples."""
    info = get_worker_info()
    if info is None:
        raise AssertionError("_take_share runs in a worker")
    apply_sharding(info.dataset, info.num_workers, info.id)
    if init_fn is not None:
        init_fn(worker_id)


def _create_fetcher(
    kind: int, auto_collation: bool, collate_fn: Any, drop_last: bool, dataset: Any
) -> Any:
    return _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)


def _reason(process: Any) -> RuntimeError:
    """How a worker ended."""
    code = process.exitcode
    about = f"DataLoader worker (pid {process.pid})"
    if code is not None and code < 0:
        name = signal.strsignal(-code) or f"Unknown signal {-code}"
        hint = ""
        if -code == getattr(signal, "SIGBUS", None):
            hint = (
                "It is possible that dataloader's workers are out of shared memory. Please try to "
                "raise your shared memory limit."
            )
        return RuntimeError(f"{about} is killed by signal: {name}. {hint}")
    return RuntimeError(
        f"{about} exited unexpectedly with exit code {code}. Details are lost due to "
        "multiprocessing. Rerunning with num_workers=0 may give better error trace."
    )
