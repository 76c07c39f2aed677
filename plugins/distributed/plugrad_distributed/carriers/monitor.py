"""Monitor: tracks the state of other ranks, because MPI does not report a rank that has ended.

Each rank has a connection to rank 0, which forwards messages. However a process ends, its
connection closes, so the others notice at once.

    rank 1 ──"failed: ValueError"──▶ hub of rank 0 ──"rank 1 ended"──▶ ranks 0, 2, 3
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

from plugrad_distributed.carriers.carrier import Carrier
from plugrad_distributed.carriers.hub import LONGEST, Hub

__all__ = ["Monitor"]

# How long an operation may continue after another rank has ended, in seconds, by the way it ended:
# messages that it sent before may still arrive.
GRACE = {"failed": 0.2, "lost": 0.2, "left": 2.0, "spoiled": 2.0}
# How long ranks have to report where they are.
ANSWER = 1.0
CONNECT = 10.0


class Monitor:
    """One rank's view of the state of the other ranks.

    Attributes:
        alarmed: whether any rank has ended, for whatever reason.
        spoiled: whether an operation of this rank failed, so that MPI cannot be finalized.
    """

    def __init__(self, rank: int, size: int, link: socket.socket | None, hub: Hub | None) -> None:
        self.rank = rank
        self.size = size
        self.alarmed = False
        self.spoiled = False
        self._link = link
        self._hub = hub
        self._carriers: dict[str, Carrier] = {}
        self._sending = threading.Lock()
        self._news = threading.Condition()
        self._ended: dict[int, tuple[str, str, float]] = {}
        self._gone: set[int] = set()
        self._answers: dict[int, Any] = {}
        self._question = 0
        if link is not None:
            os.register_at_fork(after_in_child=self._let_go)
            threading.Thread(target=self._listen, name="plugrad monitor", daemon=True).start()

    @classmethod
    def start(cls, comm: Any, timeout: float) -> Monitor:
        """Connect all ranks of a communicator."""
        rank, size = comm.Get_rank(), comm.Get_size()
        if size == 1:
            return cls(rank, size, None, None)
        host = socket.gethostname()
        one_machine = len(set(comm.allgather(host))) == 1
        hub = address = None
        if rank == 0:
            token = secrets.token_hex(16)
            with contextlib.suppress(OSError):
                hub = Hub("127.0.0.1" if one_machine else "", size, token)
                address = ("127.0.0.1" if one_machine else host, hub.port, token)
        address = comm.bcast(address)
        link = None if address is None else _connect(address, rank, min(CONNECT, timeout))
        # Others may ask as soon as all have reached this line.
        if comm.allreduce(link is None):
            warnings.warn(
                "ranks cannot connect to rank 0 outside MPI: failed ranks are detected only by "
                "timeouts",
                stacklevel=4,
            )
        return cls(rank, size, link, hub)

    def _let_go(self) -> None:
        """In a forked process: the connection must close when this rank ends."""
        link, self._link = self._link, None
        if link is not None:
            os.close(link.detach())
        if self._hub is not None:
            self._hub.let_go()

    # This rank's messages

    def _say(self, **message: Any) -> None:
        if self._link is not None:
            with self._sending, contextlib.suppress(OSError):
                self._link.sendall(json.dumps(message).encode() + b"\n")

    def fail(self, how: str) -> None:
        """This rank ends with an error."""
        self._say(ended="failed", how=how[:LONGEST])

    def leave(self) -> None:
        """This rank ends normally."""
        self._say(ended="spoiled" if self.spoiled else "left", how="")

    def watch(self, name: str, carrier: Carrier) -> None:
        """Allow others to query what this rank is doing in a group."""
        self._carriers[name] = carrier

    def forget(self, name: str, carrier: Carrier) -> None:
        if self._carriers.get(name) is carrier:
            del self._carriers[name]

    # Incoming messages

    def _listen(self) -> None:
        assert self._link is not None
        with contextlib.suppress(OSError, ValueError), self._link.makefile("rb") as lines:
            for line in lines:
                self._hear(json.loads(line))
        # Rank 0 has ended, which forwarded all messages.
        self._hear({"rank": 0, "ended": "lost", "how": ""})
        self._hear({"rank": 0, "gone": True})
        self._link = None

    def _hear(self, message: dict[str, Any]) -> None:
        rank = message["rank"]
        if "question" in message:
            carrier = self._carriers.get(message["group"])
            state = None if carrier is None else carrier.state()
            self._say(answer=message["question"], to=rank, state=state)
            return
        with self._news:
            if "answer" in message:
                if message["answer"] == self._question:
                    self._answers[rank] = message["state"]
            elif "gone" in message:
                self._gone.add(rank)
            elif rank not in self._ended:
                self._ended[rank] = (message["ended"], message["how"], time.monotonic())
                self.alarmed = self.alarmed or rank != self.rank
            self._news.notify_all()

    # Its state

    def problem_of(self, ranks: Sequence[int]) -> str:
        """Why an operation of these ranks cannot complete; empty if it still may."""
        with self._news:
            for rank in ranks:
                kind, how, when = self._ended.get(rank, ("", "", 0.0))
                if kind and rank != self.rank and time.monotonic() - when > GRACE[kind]:
                    return _told(rank, kind, how)
        return ""

    def wait_for_alarm(self, ranks: Sequence[int], limit: float) -> None:
        """Wait until one of these ranks has ended and `problem_of` reports it, at most `limit`
        seconds."""
        end = time.monotonic() + limit
        # Without rank 0 no further messages arrive, but `problem_of` reports its end after the
        # grace period.
        while (self._link is not None or self.alarmed) and time.monotonic() < end:
            if self.problem_of(ranks):
                return
            time.sleep(0.005)

    def ask(self, name: str, ranks: Sequence[int], what: str) -> str:
        """Ask ranks of a group where they are; returns a description of those that are not in the
        operation `what`."""
        if self._link is None:
            return ""
        others = {rank for rank in ranks if rank != self.rank}
        with self._news:
            self._question += 1
            self._answers.clear()
        self._say(question=self._question, group=name)
        with self._news:
            self._news.wait_for(lambda: others <= self._answers.keys() | self._ended.keys(), ANSWER)
            if not self._answers and 0 in others and 0 not in self._ended:
                return "rank 0, which passes messages on, has not answered"
            told = [self._of(rank, what) for rank in sorted(others)]
        return "; ".join(filter(None, told))

    def _of(self, rank: int, what: str) -> str:
        if rank in self._ended:
            kind, how, _ = self._ended[rank]
            return _told(rank, kind, how)
        if rank not in self._answers:
            return f"rank {rank} has not answered"
        state = self._answers[rank]
        if state is None:
            return f"rank {rank} does not have the group"
        now, last = state
        if now == what:
            return ""
        if now:
            return f"rank {rank} is in {now}"
        return f"rank {rank} is in no operation of the group, its last was {last or 'none'}"

    # How it ends

    def wait_for_all(self, limit: float) -> str | None:
        """Wait until all ranks end. Returns None if all ended normally, "" if one failed, and a
        message if one did not end within the limit."""
        if self._link is None:
            return "" if self.alarmed or self.spoiled else None

        def decided() -> bool:
            return len(self._ended) == self.size or self._has_failed()

        with self._news:
            if self._news.wait_for(decided, limit):
                return "" if self._has_failed() else None
            late = sorted(set(range(self.size)) - self._ended.keys())
        return (
            f"rank {self.rank} is at its end and waited {limit:g} s in vain for "
            f"rank{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"
        )

    def _has_failed(self) -> bool:
        return any(kind != "left" for kind, _, _ in self._ended.values())

    def wait_until_gone(self, limit: float) -> None:
        """Wait until all other ranks are at their end."""
        if self._link is None:
            return

        def alone() -> bool:
            return len(self._ended.keys() | self._gone | {self.rank}) == self.size

        with self._news:
            self._news.wait_for(alone, limit)


def _told(rank: int, kind: str, how: str) -> str:
    if kind == "failed":
        return f"rank {rank} ended with {how}"
    if kind == "lost":
        return f"rank {rank} ended without an exception: it was killed, or called os._exit()"
    return f"rank {rank} has ended its program"


def _connect(address: tuple[str, int, str], rank: int, limit: float) -> socket.socket | None:
    host, port, token = address
    try:
        link = socket.create_connection((host, port), limit)
        link.sendall(json.dumps({"token": token, "rank": rank}).encode() + b"\n")
    except OSError:
        return None
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return link
