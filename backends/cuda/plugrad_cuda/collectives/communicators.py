"""NCCL's communicators of one group. They are made on first use, because only then a rank's GPU is
known."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrad_cuda import library
from plugrad_cuda.collectives import nccl
from plugrad_distributed.carriers.carrier import Carrier, Request
from plugrad_distributed.errors import DistTimeoutError

__all__ = ["Communicators"]

# Tags by which two ranks meet on the host, beyond the tags of messages and collectives.
PAIR_TAG = 1 << 25
ID_BYTES = 128
PAUSE = 0.0005


class Communicators:
    """Makes communicators, and keeps them.

    Args:
        host: carries the messages that ranks exchange before.
        check: raises if a rank has ended.
    """

    def __init__(self, host: Carrier, check: Callable[[], None]) -> None:
        self._host = host
        self._check = check
        self._of_all: dict[int, Any] = {}
        self._of_pairs: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of_all(self, index: int) -> Any:
        """The communicator of all ranks of the group; this rank is on a GPU."""
        found = self._of_all.get(index)
        if found is None:
            host = self._host
            name = self._name(host.rank == 0)
            self._await(host.broadcast(name, 0), "the first collective of GPUs")
            self._await(host.barrier(), "the first collective of GPUs")
            found = self._of_all[index] = _made(index, name, range(host.size), host.rank)
        return found

    def of_pair(self, index: int, peer: int) -> tuple[Any, Any]:
        """The communicators for messages to another rank and from it. Two, so that two ranks that
        both send first do not wait for each other."""
        found = self._of_pairs.get((index, peer))
        if found is None:
            rank = self._host.rank
            first, second = sorted((rank, peer))
            # Both ranks make both, in one order.
            upward = self._meet(index, peer, first, second)
            downward = self._meet(index, peer, second, first)
            found = (upward, downward) if rank == first else (downward, upward)
            self._of_pairs[index, peer] = found
        return found

    def _meet(self, index: int, peer: int, sender: int, receiver: int) -> Any:
        host = self._host
        what = f"the first message of GPUs between ranks {sender} and {receiver}"
        own = host.rank == sender
        name = self._name(own)
        answer = np.zeros(1, np.uint8)
        if own:
            self._await(host.send(name, peer, PAIR_TAG), what)
            self._await(host.recv(answer, peer, PAIR_TAG + 1), what)
        else:
            self._await(host.recv(name, peer, PAIR_TAG), what)
            self._await(host.send(answer, peer, PAIR_TAG + 1), what)
        return _made(index, name, (sender, receiver), host.rank)

    def _name(self, own: bool) -> np.ndarray[Any, Any]:
        """The name of a new communicator, which one rank makes up."""
        if not own:
            return np.zeros(ID_BYTES, np.int16)
        # C's characters, which have a sign on some processors only.
        return np.array(nccl.module().get_unique_id(), np.int16)

    def _await(self, request: Request | None, what: str) -> None:
        """Wait for the host.

        Raises:
            DistTimeoutError: another rank did not come.
        """
        host = self._host
        end = time.monotonic() + host.timeout
        while request is not None and not request.test():
            self._check()
            if time.monotonic() > end:
                missing = host.missing(what)
                raise DistTimeoutError(
                    f"{what} did not begin within {host.timeout:g} s"
                    f"{': ' if missing else ''}{missing}"
                )
            time.sleep(PAUSE)

    def let_go(self, how: str) -> None:
        """Call `destroy` or `abort` of all."""
        made = [*self._of_all.values(), *(one for pair in self._of_pairs.values() for one in pair)]
        self._of_all.clear()
        self._of_pairs.clear()
        for communicator in made:
            getattr(communicator, how)()


def _made(index: int, name: np.ndarray[Any, Any], ranks: Sequence[int], rank: int) -> Any:
    with library.cupy().cuda.Device(index):
        place = list(ranks).index(rank)
        return nccl.module().NcclCommunicator(len(ranks), tuple(name.tolist()), place)
