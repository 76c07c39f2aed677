"""Sends batches from a worker to the main process: large arrays in shared memory, the rest through
a pipe."""

from __future__ import annotations

import io
import os
import pickle
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad_nn.multiprocessing.memory import Bytes, SharedMemory
from plugrad_nn.multiprocessing.reductions import as_class, check_can_leave, lies_on_host
from plugrad_nn.multiprocessing.sharing import host_array
from plugrad_nn.nn.parameter import Buffer, Parameter
from plugrad_nn.utils.data._utils.segments import Leases, Pool, flat_bytes, has_gaps

# The number of descriptors that fit into one message of a socket.
_DESCRIPTORS: Final = 64
# The number of a piece of memory, and where in it an array is.
_Place = tuple[int, int, int]

TOO_MANY_FILES: Final = (
    "Too many open files. Communication with the workers is no longer possible. Please increase "
    "the limit using `ulimit -n` in the shell, or keep fewer batches at a time"
)


class _BatchPickler(pickle.Pickler):
    """Gives the memory of tensors and arrays to a callback."""

    def __init__(self, file: io.BytesIO, callback: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(file, 5, buffer_callback=callback)
        # Reducers that programs have registered with multiprocessing apply here too.
        self.dispatch_table = ForkingPickler(io.BytesIO()).dispatch_table

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) not in (Tensor, Parameter, Buffer):
            return NotImplemented
        check_can_leave(obj)
        if not lies_on_host(obj):
            return obj.__reduce_ex__(5)
        array = host_array(obj)
        if has_gaps(array):
            array = np.ascontiguousarray(array)
        order = None
        if not array.flags.c_contiguous:
            order = tuple(sorted(range(array.ndim), key=lambda dim: -array.strides[dim]))
        memory: Any = flat_bytes(array)
        flat = pickle.PickleBuffer(memory)
        return _rebuild, (type(obj), flat, obj.dtype, array.shape, order, obj.requires_grad)


def _rebuild(
    cls: type[Tensor],
    memory: Any,
    dtype: plugrad.dtype,
    shape: tuple[int, ...],
    order: tuple[int, ...] | None,
    requires_grad: bool,
) -> Tensor:
    """A tensor that has arrived; on the default device, where it would have been made here."""
    flat = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
    array = flat.view(dtype.numpy)
    if order is None:
        array = array.reshape(shape)
    else:
        back = sorted(range(len(order)), key=lambda dim: order[dim])
        array = array.reshape([shape[dim] for dim in order]).transpose(back)
    tensor: Tensor = plugrad.from_numpy(array)
    home = plugrad.get_default_device()
    return as_class(cls, tensor if home.type == "cpu" else tensor.to(home), requires_grad)


class WorkerEnd:
    """A worker's side: sends batches.

    Attributes:
        connection: to the main process.
        pool: the memory of batches.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.pool = Pool()
        self._known: set[int] = set()

    def send(self, task: int, data: Any) -> None:
        """Send the result of a task. Errors of pickling are raised before anything is sent."""
        places: list[_Place] = []
        held: list[Bytes] = []

        def place(buffer: pickle.PickleBuffer) -> bool:
            source: Any = memoryview(buffer).obj
            if not isinstance(source, np.ndarray) or has_gaps(source):
                return True
            array = flat_bytes(source)
            number = self.pool.number_of(array)
            if number is None:
                memory = self.pool.allocate(array.nbytes)
                if memory is None:
                    return True
                memory[:] = array
                array = memory
                number = self.pool.number_of(array)
                assert number is not None  # it was just made there
            held.append(array)
            start = self.pool.memory(number).bytes().__array_interface__["data"][0]
            offset = array.__array_interface__["data"][0] - start
            places.append((number, offset, array.nbytes))
            return False

        file = io.BytesIO()
        _BatchPickler(file, place).dump(data)
        used = list(dict.fromkeys(number for number, _, _ in places))
        new = [number for number in used if number not in self._known]
        gone = [number for number in self.pool.dropped() if number in self._known]
        self._known.difference_update(gone)
        self._known.update(new)
        for number in used:
            self.pool.sent(number)
        sizes = [(number, self.pool.memory(number).nbytes) for number in new]
        self.connection.send_bytes(pickle.dumps((task, sizes, gone, places)))
        memories = [self.pool.memory(number) for number in new]
        _send_descriptors(self.connection, [memory.descriptor for memory in memories])
        for memory in memories:
            memory.close_descriptor()
        self.connection.send_bytes(file.getbuffer())


class MainEnd:
    """The main process's side: receives the batches of one worker.

    Attributes:
        connection: to the worker.
        most_kept: how many pieces of memory the program may keep; each takes a descriptor in both
            processes. Further batches are copied.
    """

    def __init__(self, connection: Any, most_kept: int) -> None:
        self.connection = connection
        self.most_kept = most_kept
        self._memories: dict[int, SharedMemory] = {}
        self._leases = Leases()

    def released(self) -> list[int]:
        """The pieces of memory that this process has left since the last call."""
        return self._leases.ended()

    def receive(self) -> tuple[int, Any]:
        """The number of a task, and its result.

        Raises:
            EOFError: the worker has ended.
            RuntimeError: this process can open no more files.
        """
        task, sizes, gone, places = pickle.loads(self.connection.recv_bytes())
        for number in gone:
            del self._memories[number]
        descriptors = _receive_descriptors(self.connection, len(sizes))
        for (number, size), descriptor in zip(sizes, descriptors, strict=True):
            memory = SharedMemory.from_descriptor(descriptor, size)
            # One descriptor for each is enough: the mapping has its own.
            memory.close_descriptor()
            self._memories[number] = memory
        body = self.connection.recv_bytes()
        return task, pickle.loads(body, buffers=self._arrays(places))

    def _arrays(self, places: Sequence[_Place]) -> Iterator[Bytes]:
        leases: dict[int, Bytes] = {}
        for number, offset, size in places:
            if number not in leases:
                leases[number] = self._leases.lease(number, self._memories[number])
            array = leases[number][offset : offset + size]
            yield array.copy() if len(self._leases) > self.most_kept else array


@contextmanager
def _socket_of(connection: Any) -> Iterator[socket.socket]:
    with socket.socket(fileno=os.dup(connection.fileno())) as found:
        yield found


def _send_descriptors(connection: Any, descriptors: list[int]) -> None:
    if descriptors:
        with _socket_of(connection) as channel:
            for start in range(0, len(descriptors), _DESCRIPTORS):
                socket.send_fds(channel, [b"d"], descriptors[start : start + _DESCRIPTORS])


def _receive_descriptors(connection: Any, count: int) -> list[int]:
    found: list[int] = []
    if count:
        with _socket_of(connection) as channel:
            while len(found) < count:
                wanted = min(_DESCRIPTORS, count - len(found))
                byte, got, _, _ = socket.recv_fds(channel, 1, wanted)
                found += got
                if not byte:
                    raise EOFError
                if len(got) < wanted:
                    for descriptor in found:
                        os.close(descriptor)
                    raise RuntimeError(TOO_MANY_FILES)
    return found
