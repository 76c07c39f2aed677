"""Handles Ctrl-C while a process starts or ends, when no code could catch the KeyboardInterrupt.

A terminal interrupts all processes of a program. The first one informs the user; the others should
end quietly. Python runs code of its own before and after a process's function, and prints a
traceback if the interrupt comes there.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any

_CAN_HOLD = hasattr(signal, "pthread_sigmask")


@contextlib.contextmanager
def held_while_starting(context: Any) -> Iterator[None]:
    """Hold interrupts back while a process starts; it starts with them held back, too.

    Args:
        context: the multiprocessing context that starts the process. A process that a server forks
            does not start from this process, so nothing is held back there.
    """
    method = context.get_start_method()
    if not _CAN_HOLD or method == "forkserver":
        yield
        return
    if method == "spawn":
        # It needs this process of Python's own, and to start that lets interrupts come again.
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_quietly(function: Callable[[], None], hold_afterwards: bool = False) -> None:
    """In a process started this way: allow interrupts, and end `function` at the first one.

    Args:
        hold_afterwards: block interrupts from then to the end of the process. Use it for a process
            that another one ends if it does not end by itself.
    """
    can_hold = _CAN_HOLD and multiprocessing.parent_process() is not None
    with contextlib.suppress(KeyboardInterrupt):
        try:
            if can_hold:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            function()
        finally:
            if can_hold and hold_afterwards:
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
