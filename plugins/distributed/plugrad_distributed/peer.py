"""Peer: a connection to a rank that exchanges messages as lines of JSON."""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Peer"]

# The longest message in bytes; ranks send no longer ones.
MOST = 1 << 16


class Peer:
    """A connection; its first message contains its rank: `introduce`.

    Attributes:
        rank: the rank, -1 until it is known.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rank = -1
        self._begun = b""

    def introduce(self, message: Mapping[str, Any], token: str) -> None:
        """Read the first message; ValueError if its token is wrong."""
        if not hmac.compare_digest(str(message["token"]), token):
            raise ValueError
        self.rank = int(message["rank"])

    def hear(self, take: Callable[[Peer, dict[str, Any]], None]) -> bool:
        """Read received messages and pass each on; returns whether the connection continues. It
        stops at its end and after invalid data."""
        try:
            data = self.connection.recv(MOST)
        except OSError:
            data = b""
        *lines, self._begun = (self._begun + data).split(b"\n")
        try:
            for line in lines:
                take(self, json.loads(line))
        except (ValueError, KeyError, TypeError):
            return False
        return bool(data) and len(self._begun) <= MOST

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message; errors of a closed connection are ignored."""
        with contextlib.suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")
