"""Peer: a connection to a rank, over which messages go as lines of JSON."""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Peer"]

# Bytes of a message: longer ones are not a rank's.
MOST = 1 << 16


class Peer:
    """A connection; which rank's it is, its first message says: `introduce`.

    Attributes:
        rank: the rank, -1 until it is known.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rank = -1
        self._begun = b""

    def introduce(self, message: Mapping[str, Any], token: str) -> None:
        """Take the first message; ValueError if it does not know the token."""
        if not hmac.compare_digest(str(message["token"]), token):
            raise ValueError
        self.rank = int(message["rank"])

    def hear(self, take: Callable[[Peer, dict[str, Any]], None]) -> bool:
        """Read what has come and hand each message on; whether the connection goes on. It does not
        after an end, nor after what is not a message."""
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
        """Send a message; one that is gone hears nothing."""
        with contextlib.suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")
