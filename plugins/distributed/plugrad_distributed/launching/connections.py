"""What a connection has to read."""

from __future__ import annotations

import selectors
import socket
from typing import Any

__all__ = ["next_line", "readable"]

LONGEST = 1000


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
