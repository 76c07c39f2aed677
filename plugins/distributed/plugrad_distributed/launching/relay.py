"""Relays messages between MPI and mpiexec.

Through them the supervisor gets MPI's name of the program:

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
        environment: the rank's, which gets a connection of its own; without a connection to
            mpiexec, it stays as it is.

    Attributes:
        name: MPI's name for the program; empty until MPI has requested it.
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
            # It belongs to another process and is closed here.
            return
        # Never closed: mpiexec treats its end as the rank's.
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
        """Look for the name in mpiexec's messages."""
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
