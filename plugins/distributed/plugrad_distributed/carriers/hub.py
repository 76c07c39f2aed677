"""Hub: passes messages between the ranks' monitors. It runs in rank 0, on a thread of its own."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from typing import Any

from plugrad_distributed.peer import Peer

__all__ = ["LONGEST", "Hub"]

# The longest text that ranks send to one another, in characters.
LONGEST = 4000


class Hub:
    """Listens on a port for ranks that send the token.

    Attributes:
        port: the port.
    """

    def __init__(self, host: str, size: int, token: str) -> None:
        self._server = socket.create_server((host, 0), backlog=size)
        self.port: int = self._server.getsockname()[1]
        self._size = size
        self._token = token
        self._peers: dict[int, Peer] = {}
        self._ended: dict[int, dict[str, Any]] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="plugrad hub", daemon=True).start()

    def let_go(self) -> None:
        """In a forked process: close its copies of the connections."""
        for peer in self._peers.values():
            os.close(peer.connection.detach())
        self._peers.clear()
        os.close(self._server.detach())

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            # A suspended rank must not block the hub.
            connection.settimeout(1.0)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._selector.register(connection, selectors.EVENT_READ, Peer(connection))

    def _read(self, peer: Peer) -> None:
        if not peer.hear(self._take):
            self._lose(peer)

    def _take(self, peer: Peer, message: dict[str, Any]) -> None:
        if peer.rank < 0:
            peer.introduce(message, self._token)
            self._peers[peer.rank] = peer
            for known in self._ended.values():
                self._send(peer.rank, known)
            return
        message["rank"] = peer.rank
        if "answer" in message:
            self._send(message["to"], message)
        elif "question" in message:
            self._tell_all(message, but=peer.rank)
        elif peer.rank not in self._ended:
            self._ended[peer.rank] = message
            self._tell_all(message)

    def _lose(self, peer: Peer) -> None:
        self._selector.unregister(peer.connection)
        peer.connection.close()
        if self._peers.pop(peer.rank, None) is None:
            return
        if peer.rank not in self._ended:
            self._ended[peer.rank] = {"rank": peer.rank, "ended": "lost", "how": ""}
            self._tell_all(self._ended[peer.rank])
        self._tell_all({"rank": peer.rank, "gone": True})

    def _tell_all(self, message: dict[str, Any], but: int = -1) -> None:
        # Rank 0 last: when it gets the message that all have reached their end, MPI_Finalize stops
        # this thread.
        for rank in sorted(self._peers, reverse=True):
            if rank != but:
                self._send(rank, message)

    def _send(self, rank: int, message: dict[str, Any]) -> None:
        peer = self._peers.get(rank)
        if peer is not None:
            peer.tell(message)
