"""Shared memory of one worker: it is used again when neither side has an array in it any more."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any, Final

import numpy as np

from plugrad_nn.multiprocessing.memory import CAN_PASS_DESCRIPTORS, Bytes, SharedMemory, owner

# Arrays that are smaller go through the pipe.
SMALLEST: Final = 4096


class Leases:
    """Arrays in pieces of memory, and the pieces that no array uses any more."""

    def __init__(self) -> None:
        self._alive: dict[int, Any] = {}
        # Filled when an array is freed, by whichever thread does it.
        self._ended: deque[int] = deque()

    def lease(self, number: int, memory: SharedMemory) -> Bytes:
        """The piece with this number as an array; `ended` reports when the array is freed."""
        array = memory.bytes()
        alive, ended = self._alive, self._ended

        def end(reference: object) -> None:
            alive.pop(id(reference), None)
            ended.append(number)

        reference = weakref.ref(array, end)
        alive[id(reference)] = reference
        return array

    def ended(self) -> list[int]:
        """The pieces with arrays that were freed since the last call."""
        numbers = []
        while self._ended:
            numbers.append(self._ended.popleft())
        return numbers

    def __len__(self) -> int:
        return len(self._alive)


class Pool:
    """A worker's pieces of memory, by number.

    A piece is free if neither this process nor the main one has an array in it. Free pieces never
    have more bytes in total than were once in use at the same time. Several threads may use a pool.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._memories: dict[int, SharedMemory] = {}
        self._by_address: dict[int, int] = {}
        self._leases = Leases()
        # The number of processes that use each piece.
        self._users: dict[int, int] = {}
        self._free: dict[int, list[int]] = {}
        self._free_bytes = 0
        self._used_bytes = 0
        self._peak = 0
        self._next = 0
        self._dropped: list[int] = []

    def allocate(self, size: int) -> Bytes | None:
        """Memory for this number of bytes; None if it is too small, or the system has none left."""
        if size < SMALLEST or not CAN_PASS_DESCRIPTORS:
            return None
        with self._lock:
            self._collect()
            room = _rounded(size)
            if room in self._free:
                number = self._take(room, -1)
            else:
                try:
                    made = SharedMemory.anonymous(room)
                except OSError:
                    return None
                number = self._next
                self._memories[number] = made
                self._next += 1
            self._users[number] = 1
            self._used_bytes += room
            self._peak = max(self._peak, self._used_bytes)
            array = self._leases.lease(number, self._memories[number])
            self._by_address[_address(array)] = number
            return array[:size]

    def number_of(self, array: Bytes) -> int | None:
        """The piece that contains an array, if it is one of this pool's."""
        number = self._by_address.get(_address(owner(array)))
        return number if number in self._users else None

    def memory(self, number: int) -> SharedMemory:
        """The piece of that number."""
        return self._memories[number]

    def sent(self, number: int) -> None:
        """The main process has an array in this piece from now on."""
        with self._lock:
            self._users[number] += 1

    def released(self, numbers: list[int]) -> None:
        """The main process has no array in these pieces any more."""
        with self._lock:
            for number in numbers:
                self._leave(number)

    def dropped(self) -> list[int]:
        """The pieces that were freed since the last call."""
        with self._lock:
            numbers, self._dropped = self._dropped, []
            return numbers

    def _collect(self) -> None:
        for number in self._leases.ended():
            self._leave(number)

    def _leave(self, number: int) -> None:
        self._users[number] -= 1
        if self._users[number]:
            return
        del self._users[number]
        room = self._memories[number].nbytes
        self._used_bytes -= room
        self._free.setdefault(room, []).append(number)
        self._free_bytes += room
        while self._free_bytes > self._peak:
            self._drop_one()

    def _drop_one(self) -> None:
        """Take the piece of this size that has been free for longest."""
        number = self._take(next(iter(self._free)), 0)
        self._dropped.append(number)
        memory = self._memories.pop(number)
        del self._by_address[_address(memory.bytes())]

    def _take(self, room: int, position: int) -> int:
        """One of the free pieces of a size."""
        waiting = self._free[room]
        number = waiting.pop(position)
        if not waiting:
            del self._free[room]
        self._free_bytes -= room
        return number


def _rounded(size: int) -> int:
    """A size with some room above, so that batches of like sizes fit into the same memory."""
    step = max(SMALLEST, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


def _address(array: Bytes) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def flat_bytes(array: np.ndarray[Any, Any]) -> Bytes:
    """The memory of an array that has no gaps, whatever the order of its dimensions."""
    order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
    return array.transpose(order).reshape(-1).view(np.uint8)


def has_gaps(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array's elements are not all of the memory that they are spread over."""
    if array.flags.c_contiguous:
        return False
    expected = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return True
            expected *= size
    return False
