"""Passes file descriptors to other processes, which request them when they unpickle a message.

multiprocessing's `DupFd` does the same, but loses the last messages of a process: it removes the
address before the queues have sent everything. This one waits for the receivers.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import secrets
import sys
import threading
import time
from multiprocessing import reduction, util
from multiprocessing.connection import Client, Listener
from multiprocessing.context import get_spawning_popen
from typing import Any, Final

from plugrad.plugins.scopes import hold_while_forking

# The seconds that a child process waits for receivers at its end.
_PATIENCE: Final = 5.0


class _Sender:
    """Descriptors that were sent and not received yet, and the thread that delivers them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: dict[int, int] = {}
        self._numbers = itertools.count()
        self._listener: Any = None

    def add(self, descriptor: int) -> tuple[Any, int]:
        """Keep a copy of a descriptor for a receiver; returns the address and number to request it
        by."""
        with self.lock:
            if self._listener is None:
                # An address without a file where possible, so that it lasts to the end.
                name = f"\0plugrad_{os.getpid()}_{secrets.token_hex(8)}"
                address = name if sys.platform == "linux" else None
                authkey = bytes(multiprocessing.current_process().authkey)
                self._listener = Listener(address, "AF_UNIX", 64, authkey)
                threading.Thread(target=self._serve, daemon=True, name="plugrad-sender").start()
            number = next(self._numbers)
            self.waiting[number] = os.dup(descriptor)
            return self._listener.address, number

    def _serve(self) -> None:
        while True:
            # A receiver that ends meanwhile, or is none of ours, is its own problem.
            with (
                contextlib.suppress(OSError, EOFError, multiprocessing.AuthenticationError),
                self._listener.accept() as connection,
            ):
                number, receiver = connection.recv()
                descriptor = self.waiting.get(number)
                if descriptor is not None:
                    reduction.send_handle(connection, descriptor, receiver)
                    del self.waiting[number]
                    os.close(descriptor)

    def wait(self) -> None:
        """At the end of a process: a result may be the last thing that it has sent."""
        if multiprocessing.parent_process() is None:
            return
        end = time.monotonic() + _PATIENCE
        while self.waiting and time.monotonic() < end:
            time.sleep(0.005)

    def forget(self) -> None:
        """In the child of a fork: sent descriptors belong to the parent."""
        for descriptor in self.waiting.values():
            os.close(descriptor)
        self.waiting = {}
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        self.wait_at_end()

    def wait_at_end(self) -> None:
        """Register `wait` to run after queues have been flushed, which happens at priority -5."""
        util.Finalize(None, self.wait, exitpriority=-50)


_sender: Final = _Sender()
hold_while_forking(_sender.lock)
_sender.wait_at_end()
util.register_after_fork(_sender, _Sender.forget)


class _Passed:
    """A descriptor in a message."""

    def __init__(self, address: Any, number: int) -> None:
        self._place = (address, number)

    def detach(self) -> int:
        """The descriptor, in the process that has received the message.

        Raises OSError if the sender has ended.
        """
        address, number = self._place
        authkey = bytes(multiprocessing.current_process().authkey)
        with Client(address, authkey=authkey) as connection:
            connection.send((number, os.getpid()))
            return reduction.recv_handle(connection)


def passed(descriptor: int) -> Any:
    """The object to send for a descriptor; its `detach` gives the receiver's copy."""
    if get_spawning_popen() is not None:
        # The new process inherits it.
        return reduction.DupFd(descriptor)
    return _Passed(*_sender.add(descriptor))
