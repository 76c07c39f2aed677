"""Ranks as threads of one process, for tests and experiments: they exchange messages through a
table."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar

from plugrad_distributed.carriers.carrier import ANY_SOURCE, Array, Carrier, Request
from plugrad_distributed.errors import DistBackendError

__all__ = ["Exchange", "ThreadsCarrier"]


class Exchange:
    """The state that the threads share: messages by group, sender, receiver and tag, in the order
    of sending, and the errors of failed ranks.

    Attributes:
        size: the number of ranks.
        failed: the exceptions of failed ranks, by rank.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.failed: dict[int, BaseException] = {}
        # Which operation each rank is in, for the messages of timeouts.
        self.at: dict[int, str] = {}
        self._lock = threading.Lock()
        self._messages: dict[tuple[str, int, int], deque[tuple[int, Array]]] = {}

    def put(self, group: str, src: int, dst: int, tag: int, array: Array) -> None:
        message = array.reshape(-1).copy()
        with self._lock:
            self._messages.setdefault((group, dst, tag), deque()).append((src, message))

    def take(self, group: str, src: int, dst: int, tag: int) -> tuple[int, Array] | None:
        """The oldest message from a sender, or from any, and its sender."""
        with self._lock:
            waiting = self._messages.get((group, dst, tag))
            if not waiting:
                return None
            for position, (sender, array) in enumerate(waiting):
                if src in (sender, ANY_SOURCE):
                    del waiting[position]
                    if not waiting:
                        del self._messages[group, dst, tag]
                    return sender, array
        return None


class _Receive(Request):
    def __init__(self, carrier: ThreadsCarrier, out: Array, src: int, tag: int) -> None:
        self._carrier = carrier
        self._out = out
        self._src = src
        self._tag = tag

    def test(self) -> bool:
        carrier = self._carrier
        found = carrier.exchange.take(carrier.group, self._src, carrier.rank, self._tag)
        if found is None:
            carrier.check_others()
            return False
        self.source, message = found
        if message.size > self._out.size or message.dtype != self._out.dtype:
            raise DistBackendError(
                f"rank {self.source} sent {message.size} elements of {message.dtype}, rank "
                f"{carrier.rank} expected {self._out.size} of {self._out.dtype}"
            )
        self._out.reshape(-1)[: message.size] = message
        return True


class ThreadsCarrier(Carrier):
    """A rank that is a thread."""

    name: ClassVar[str] = "fake"

    def __init__(self, exchange: Exchange, group: str, ranks: Sequence[int], rank: int) -> None:
        super().__init__(rank, len(ranks))
        self.exchange = exchange
        self.group = group
        self._ranks = tuple(ranks)

    def split(self, ranks: Sequence[int], name: str) -> Carrier:
        of_world = [self._ranks[rank] for rank in ranks]
        return ThreadsCarrier(self.exchange, name, of_world, list(ranks).index(self.rank))

    def check_others(self) -> None:
        """Raise if a rank of the group ended with an exception, because it will not answer."""
        for rank, error in list(self.exchange.failed.items()):
            if rank in self._ranks and rank != self._ranks[self.rank]:
                raise DistBackendError(
                    f"rank {rank} ended with {type(error).__name__}: {error}"
                ) from error

    def send(self, array: Array, dst: int, tag: int) -> Request | None:
        self.exchange.put(self.group, self.rank, dst, tag, array)
        return None

    def recv(self, out: Array, src: int, tag: int) -> Request | None:
        return _Receive(self, out, src, tag)

    @classmethod
    def world(cls, rank: int, size: int, options: Any = None, timeout: float = 1800.0) -> Carrier:
        """A rank that shares `options`, an `Exchange`, with the others."""
        if not isinstance(options, Exchange):
            raise TypeError(f"pg_options must be an Exchange, got {type(options).__name__}")
        return cls(options, "world", range(size), rank)
