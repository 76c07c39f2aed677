"""What a connection has to read, and when it counts as broken."""

from __future__ import annotations

import selectors
import socket
from typing import Any

__all__ = ["keep_alive", "next_line", "readable"]

LONGEST = 1000
# Seconds of silence before the other machine is asked, and between questions; how many may stay
# without an answer. A network that is away for some minutes must not end a program.
IDLE, BETWEEN, UNANSWERED = 60, 30, 8


def next_line(connection: socket.socket) -> str:
    """The next line, read by single bytes: what comes after it is for others. It is empty at the
    end of the connection.

    Raises:
        OSError: no message arrived in time, or the connection broke.
    """
    found = b""
    while not found.endswith(b"\n") and len(found) < LONGEST:
        byte = connection.recv(1)
        if not byte:
            break
        found += byte
    return found.decode(errors="replace").rstrip("\n")


def readable(sockets: tuple[socket.socket, ...], limit: float) -> list[Any]:
    """Those that something can be read from, once there is one or after a limit."""
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(limit)]


def keep_alive(connection: socket.socket) -> None:
    """Break the connection some minutes after the other machine has become unreachable; otherwise
    its reader would wait forever."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {"TCP_KEEPIDLE": IDLE, "TCP_KEEPINTVL": BETWEEN, "TCP_KEEPCNT": UNANSWERED}
    for name, value in values.items():
        option = getattr(socket, name, None)  # which of them exist depends on the system
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
