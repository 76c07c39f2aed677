"""Passes on what MPI and mpiexec say to each other, so that the supervisor learns by which name MPI
knows the program:

    mpiexec ── supervisor ── rank
            "cmd=my_kvsname rc=0 kvsname=NAME"
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import socket
import threading
from collections.abc import MutableMapping

__all__ = ["Relay"]

_NAME = re.compile(rb"\bcmd=my_kvsname\b.*\bkvsname=(\S+)")
# The variable with the descriptor of the connection.
_VARIABLE = "PMI_FD"


class Relay:
    """Stands between mpiexec and a rank that is to be started.

    Args:
        environment: that of the rank, which gets a connection of its own; without a connection to
            mpiexec, it stays as it is.

    Attributes:
        name: MPI's name for the program; empty until MPI has asked for it.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self.name = ""
        self._line = b""
        self._for_rank: socket.socket | None = None
        given = environment.get(_VARIABLE, "")
        if not given.isdecimal():
            return
        try:
            os.set_inheritable(int(given), False)
        except OSError:
            # Of another process, which it was closed in.
            return
        # Never closed: mpiexec takes its end for that of the rank.
        self._mpiexec = int(given)
        self._rank, self._for_rank = socket.socketpair()
        self._for_rank.set_inheritable(True)
        environment[_VARIABLE] = str(self._for_rank.fileno())

    def begin(self) -> None:
        """Pass on, in the background. The rank has started."""
        if self._for_rank is not None:
            self._for_rank.close()
            threading.Thread(target=self._run, name="relay", daemon=True).start()

    def _run(self) -> None:
        with selectors.DefaultSelector() as ready, contextlib.suppress(OSError), self._rank:
            ready.register(self._mpiexec, selectors.EVENT_READ)
            ready.register(self._rank, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    said = os.read(key.fd, 1 << 16)
                    if not said:
                        return
                    if key.fd == self._mpiexec:
                        self._listen(said)
                        self._rank.sendall(said)
                    else:
                        _write(self._mpiexec, said)

    def _listen(self, said: bytes) -> None:
        """Look for the name in what mpiexec says."""
        if self.name:
            return
        *lines, self._line = (self._line + said).split(b"\n")
        for line in lines:
            found = _NAME.search(line)
            if found is not None:
                self.name = found.group(1).decode(errors="replace")


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
