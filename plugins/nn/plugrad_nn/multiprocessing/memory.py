"""Memory that several processes see: anonymous memory that is passed on by its descriptor, and
files that are passed on by their path."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import sys
import tempfile
from multiprocessing import util
from typing import Any, Final, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

# Sharing memory uses functions of Unix; elsewhere tensors are sent by value.
CAN_SHARE: Final = os.name == "posix"
# Descriptors go from process to process over Unix sockets only.
CAN_PASS_DESCRIPTORS: Final = os.name == "posix" and sys.platform != "darwin"

_SHM: Final = "/dev/shm"
# At the end of a file: how many processes have mapped it, or are about to.
_COUNT: Final = np.dtype(np.int64)


class SharedMemory(mmap.mmap):
    """A piece of memory that other processes can map too; it is unmapped when it is not used any
    more.

    Attributes:
        descriptor: of the memory, in this process; -1 if it was closed.
        path: of the file, or empty if the memory has none.
        nbytes: how many bytes are the user's.

    >>> from plugrad_nn.multiprocessing.memory import SharedMemory, memory_of
    >>> memory = SharedMemory.anonymous(8)
    >>> data = memory.bytes()
    >>> data[:] = 1
    >>> memory_of(data[2:4]) is memory
    True
    """

    descriptor: int
    path: str
    nbytes: int

    @classmethod
    def _map(cls, descriptor: int, size: int, path: str = "") -> Self:
        try:
            made = cls(descriptor, os.fstat(descriptor).st_size)
        except BaseException:
            os.close(descriptor)
            raise
        made.descriptor, made.nbytes, made.path = descriptor, size, path
        _mapped[_identity(descriptor)] = made
        return made

    @classmethod
    def anonymous(cls, size: int) -> Self:
        """New memory without a name: the system frees it when no process has it any more, however
        they end.

        Raises OSError if the system has no memory or no descriptor left.
        """
        return cls._map(_sized(_nameless(), max(size, 1)), size)

    @classmethod
    def named(cls, size: int) -> Self:
        """New memory in a file. The last process that uses it removes it; otherwise this process
        does at its end, because a sent message may never be received.

        Raises OSError if the system has no memory or no descriptor left.
        """
        padded = -(-size // _COUNT.itemsize) * _COUNT.itemsize
        folder = _SHM if os.path.isdir(_SHM) else tempfile.gettempdir()
        path = os.path.join(folder, f"plugrad_{os.getpid()}_{secrets.token_hex(8)}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        made = cls._map(_sized(descriptor, padded + _COUNT.itemsize), size, path)
        made.retain()
        made._release_at_end()
        _unlink_at_exit(path)
        return made

    @classmethod
    def from_descriptor(cls, descriptor: int, size: int) -> SharedMemory:
        """Memory that another process has sent; an existing mapping is reused."""
        known = _mapped.get(_identity(descriptor))
        if known is not None:
            os.close(descriptor)
            return known
        return cls._map(descriptor, size)

    @classmethod
    def from_path(cls, path: str, size: int) -> SharedMemory:
        """A file that another process has retained for this one.

        Raises FileNotFoundError if the process that made it has ended meanwhile.
        """
        descriptor = os.open(path, os.O_RDWR)
        known = _mapped.get(_identity(descriptor))
        if known is not None:
            os.close(descriptor)
            _count(known.descriptor, -1)
            return known
        made = cls._map(descriptor, size, path)
        made._release_at_end()
        return made

    def bytes(self) -> Bytes:
        """The memory as an array, which keeps it mapped."""
        if not self.nbytes:
            return np.frombuffer(self, np.uint8)[:0]
        return np.frombuffer(self, np.uint8, self.nbytes)

    def retain(self) -> None:
        """Keep the file for one more process."""
        _count(self.descriptor, 1)

    def close_descriptor(self) -> None:
        """Do without the descriptor, by which the memory is passed on; it stays mapped."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def can_be_passed(self) -> bool:
        """Whether the memory can be passed on to another process."""
        return self.descriptor >= 0 and (not self.path or os.path.exists(self.path))

    def _release_at_end(self) -> None:
        """Give this process's share back when the memory is unmapped, or the process ends; not in
        a child that was forked, which `Finalize` sees to."""
        descriptor = os.dup(self.descriptor)
        util.Finalize(self, _release, args=(descriptor, self.path), exitpriority=0)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            self.close_descriptor()


_mapped: WeakValueDictionary[tuple[int, int], SharedMemory] = WeakValueDictionary()


def memory_of(array: NDArray[Any]) -> SharedMemory | None:
    """The shared memory of an array, or None."""
    held: Any = owner(array).base
    if isinstance(held, memoryview):
        held = held.obj
    return held if isinstance(held, SharedMemory) else None


def owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array that a view was first taken of."""
    while True:
        base: Any = array.base
        if not isinstance(base, np.ndarray):
            # The result of NumPy's as_strided refers to an object that refers to the array.
            base = getattr(base, "base", None)
            if not isinstance(base, np.ndarray):
                return array
        array = base


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("plugrad")
    descriptor, path = tempfile.mkstemp(prefix="plugrad_")
    os.unlink(path)
    return descriptor


def _sized(descriptor: int, size: int) -> int:
    try:
        os.ftruncate(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _count(descriptor: int, change: int) -> int:
    """Add to how many processes have a file, while no other process does; the new number."""
    import fcntl  # Unix has it

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        place = os.fstat(descriptor).st_size - _COUNT.itemsize
        held = np.frombuffer(os.pread(descriptor, _COUNT.itemsize, place), _COUNT)
        changed = held + change
        os.pwrite(descriptor, changed.tobytes(), place)
        return int(changed[0])
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _release(descriptor: int, path: str) -> None:
    if _count(descriptor, -1) <= 0:
        _unlink(path)
    os.close(descriptor)


def _unlink(path: str) -> None:
    _made.get(os.getpid(), set()).discard(path)
    # Without an error if the process that made it has ended.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


# The files that a process has made, by its id: the child of a fork has made none of them.
_made: dict[int, set[str]] = {}


def _unlink_at_exit(path: str) -> None:
    process = os.getpid()
    if process not in _made:
        _made[process] = set()
        util.Finalize(None, _unlink_made, args=(process,), exitpriority=-100)
    _made[process].add(path)


def _unlink_made(process: int) -> None:
    for path in list(_made[process]):
        _unlink(path)
