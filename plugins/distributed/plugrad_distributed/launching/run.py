"""Starts ranks, waits for them, and ends the others when one has failed."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plugrad_distributed.launching.supervisor import ADDRESS, PATIENCE
from plugrad_distributed.peer import Peer

__all__ = ["Ranks"]

# Seconds for the starter to end after all ranks have.
ENDING = 5.0


class Ranks:
    """The ranks of one program, from start to end.

    Args:
        count: how many.
        grace: seconds for the others to end after one has failed.
        say: a function that shows a line to the user.
        local: whether all are on this machine.
    """

    def __init__(
        self, count: int, grace: float, say: Callable[[str], None], *, local: bool = True
    ) -> None:
        self._count = count
        self._grace = grace
        self._say = say
        self._token = secrets.token_hex(16)
        self._server = socket.create_server(("127.0.0.1" if local else "", 0), backlog=count)
        self._host = "127.0.0.1" if local else socket.gethostname()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._peers: dict[int, Peer] = {}
        self._codes: dict[int, int] = {}
        self._code: int | None = None
        # When to send the next, harder signal, and which.
        self._next: tuple[float, signal.Signals] | None = None
        self._killed = False
        # Whether ranks did not end even when they were killed: their machine cannot be reached.
        self._lost = False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the command, which starts the supervisors; the exit code of the first rank that
        failed, or 0."""
        address = f"{self._host} {self._server.getsockname()[1]} {self._token}"
        # In its own session, so that Ctrl-C reaches the ranks only through the supervisors.
        starter = subprocess.Popen(
            command, env={**environment, ADDRESS: address}, start_new_session=True
        )
        signal.signal(signal.SIGTERM, self._on_signal)
        try:
            while starter.poll() is None and len(self._codes) < self._count and not self._lost:
                try:
                    self._step(0.2)
                except KeyboardInterrupt:
                    self._interrupt(signal.SIGINT)
        finally:
            self._finish(starter)
        return self._result(starter.returncode)

    def _on_signal(self, number: int, frame: Any) -> None:
        self._interrupt(signal.Signals(number))

    def _interrupt(self, which: signal.Signals) -> None:
        """Forward a signal; if it comes a second time, kill the ranks."""
        if self._code is None:
            self._code = 128 + which
            self._say(f"{which.name}: the ranks have {self._grace:g} s to end")
            self._next = (time.monotonic() + self._grace, signal.SIGTERM)
            self._tell_all(signal=int(which))
        else:
            self._tell_all(signal=int(signal.SIGKILL))

    def _step(self, limit: float) -> None:
        for key, _ in self._selector.select(limit):
            if key.data is None:
                connection, _ = self._server.accept()
                connection.settimeout(1.0)
                self._selector.register(connection, selectors.EVENT_READ, Peer(connection))
            else:
                self._read(key.data)
        if self._next is not None and time.monotonic() > self._next[0]:
            self._force(self._next[1])

    def _force(self, which: signal.Signals) -> None:
        """Send a signal to the ranks that continue; after the last one, give them up."""
        left = sorted(set(range(self._count)) - self._codes.keys())
        names = f"rank {', '.join(map(str, left))}"
        if self._killed:
            self._lost = True
            self._say(f"{names} cannot be reached: look for processes that are left there")
            return
        self._killed = which == signal.SIGKILL
        self._say(f"{names} continues: {which.name}")
        self._tell_all(signal=int(which))
        self._next = (time.monotonic() + PATIENCE, signal.SIGKILL)

    def _read(self, peer: Peer) -> None:
        if peer.hear(self._take):
            return
        self._selector.unregister(peer.connection)
        peer.connection.close()
        if self._peers.pop(peer.rank, None) is not None and peer.rank not in self._codes:
            self._ended(peer.rank, -signal.SIGKILL)

    def _take(self, peer: Peer, message: dict[str, Any]) -> None:
        if peer.rank >= 0:
            self._ended(peer.rank, int(message["code"]))
        else:
            peer.introduce(message, self._token)
            self._peers[peer.rank] = peer

    def _ended(self, rank: int, code: int) -> None:
        self._codes[rank] = code
        if code == 0 or self._code is not None:
            return
        self._code = code if code > 0 else 128 - code
        how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        rest = self._count - len(self._codes)
        others = f"; the others have {self._grace:g} s to end" if rest else ""
        self._say(f"rank {rank} ended with {how}{others}")
        self._next = (time.monotonic() + self._grace, signal.SIGTERM)

    def _tell_all(self, **message: Any) -> None:
        for peer in list(self._peers.values()):
            peer.tell(message)

    def _finish(self, starter: subprocess.Popen[bytes]) -> None:
        self._tell_all(over=True)
        try:
            starter.wait(ENDING)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(starter.pid, signal.SIGKILL)
            starter.wait()
        self._server.close()

    def _result(self, starters: int) -> int:
        if self._code is not None:
            return self._code
        if len(self._codes) == self._count:
            return 0
        # Not all ranks had started; the starter has printed the reason.
        return starters if starters > 0 else 128 - starters if starters < 0 else 1
