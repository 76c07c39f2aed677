"""Runs a function in several processes, and raises the first error in the caller."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

from plugrad_nn.multiprocessing.interrupts import held_while_starting, run_quietly


class ProcessException(Exception):
    """A process of `spawn` has failed.

    Attributes:
        msg: what happened.
        error_index: the number of the process, from 0.
        pid: its id.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = error_pid

    @property
    def error_pid(self) -> int:
        """The id of the process."""
        return self.pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process of `spawn` has raised an exception; the message has its traceback.

    Args:
        msg: with the traceback.
        error_index: the number of the process.
        error_pid: its id.

    >>> import plugrad.multiprocessing as mp
    >>> str(mp.ProcessRaisedException("it failed", error_index=0, error_pid=7))
    'it failed'
    """


class ProcessExitedException(ProcessException):
    """A process of `spawn` was ended by a signal, or by an exit code.

    Attributes:
        exit_code: of the process; negative, the number of a signal.
        signal_name: the name of that signal.

    Args:
        msg: what happened.
        error_index: the number of the process.
        error_pid: its id.
        exit_code, signal_name: see above.

    >>> import plugrad.multiprocessing as mp
    >>> error = mp.ProcessExitedException("it ended", 0, 7, exit_code=-9, signal_name="SIGKILL")
    >>> error.exit_code, error.signal_name
    (-9, 'SIGKILL')
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), arguments


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """The main function of a process: its error goes to a file, because a pipe would not be read
    yet."""

    def work() -> None:
        _end_with_parent()
        try:
            fn(index, *args)
        except Exception:
            with open(error_file, "wb") as file:
                pickle.dump(traceback.format_exc(), file)
            sys.exit(1)

    run_quietly(work)  # the caller has the interrupt too


def _end_with_parent() -> None:
    """Have a thread that ends this process when the one that started it has ended."""
    import threading

    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True, name="plugrad-parent").start()


class ProcessContext:
    """The processes that `start_processes` has started.

    Attributes:
        processes: in the order of their numbers.
        sentinels: by handle, the number of the process that it watches.

    Args:
        processes: which have been started.
        error_files: where each writes the error that it ends with.

    >>> import plugrad.multiprocessing as mp
    >>> mp.ProcessContext([], []).pids()
    []
    """

    def __init__(self, processes: Sequence[Any], error_files: Sequence[str]) -> None:
        self.error_files = list(error_files)
        self.processes = list(processes)
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def _join_procs_with_timeout(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process has failed or all have ended; one that fails ends the others.

        Args:
            timeout: for how many seconds to wait; by default until something happens.
            grace_period: how many seconds the others get to end after the request, before they are
                killed.

        Returns whether all have ended.

        Raises:
            ProcessRaisedException: a process has raised an exception.
            ProcessExitedException: a process was ended by a signal, or by an exit code.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            if not self.sentinels:
                self._remove_files()
            return not self.sentinels
        self._end_others(30 if grace_period is None else grace_period)
        try:
            raise self._error(failed)
        finally:
            self._remove_files()

    def _end_others(self, grace_period: float) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._join_procs_with_timeout(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        path = self.error_files[index]
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                told = pickle.load(file)  # it is the process's own
            message = f"\n\n-- Process {index:d} terminated with the following error:\n{told}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code >= 0:
            message = f"process {index:d} terminated with exit code {code:d}"
            return ProcessExitedException(message, index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        message = f"process {index:d} terminated with signal {name}"
        return ProcessExitedException(message, index, process.pid, code, name)

    def _remove_files(self) -> None:
        for path in self.error_files:
            if os.path.exists(path):
                os.unlink(path)


class SpawnContext(ProcessContext):
    """`ProcessContext` by its former name.

    Args:
        processes, error_files: see there.

    >>> import plugrad.multiprocessing as mp, warnings
    >>> warnings.simplefilter("ignore")
    >>> mp.SpawnContext([], []).pids()
    []
    """

    def __init__(self, processes: Sequence[Any], error_files: Sequence[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(index, *args)` in `nprocs` processes.

    Args:
        fn: a function that can be pickled, unless the start method is ``"fork"``.
        args: its arguments after the number of the process.
        nprocs: how many processes.
        join: wait for all of them.
        daemon: end the processes when this one ends; they cannot have processes of their own.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.

    Returns the processes if it does not wait for them, else None.

    Raises:
        ProcessRaisedException: a process has raised an exception.
        ProcessExitedException: a process was ended by a signal, or by an exit code.

    >>> import plugrad.multiprocessing as mp
    >>> mp.start_processes(print, nprocs=2)
    """
    mp = multiprocessing.get_context(start_method)
    processes: list[Any] = []
    files = []
    for index in range(nprocs):
        descriptor, path = tempfile.mkstemp(prefix="plugrad-process-", suffix=".pickle")
        os.close(descriptor)
        # A process that raises creates it again.
        os.unlink(path)
        files.append(path)
        process = mp.Process(  # type: ignore[attr-defined]  # every context has it
            target=_run, args=(fn, index, args, path), daemon=daemon
        )
        with held_while_starting(mp):
            process.start()
            processes.append(process)
    context = ProcessContext(processes, files)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(index, *args)` in `nprocs` new processes.

    If one of them fails, the others are ended and its error is raised here. Arguments and errors
    are the same as for `start_processes`.

    Args:
        fn, args, nprocs, join, daemon: see there.
        start_method: ``"spawn"``; another one warns.

    >>> import plugrad.multiprocessing as mp
    >>> mp.spawn(print, nprocs=1)
    """
    if start_method != "spawn":
        warnings.warn(
            "This method only supports start_method=spawn (got: "
            f"{start_method}).\nTo use a different start_method use:\n\t\t"
            " plugrad.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
