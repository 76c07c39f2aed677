"""The memory behind a tensor as an object: which tensors share it, its size, its contents."""

from __future__ import annotations

# Interpreted: it is seldom used.
import os
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from plugrad._generated import functions as F
from plugrad._printed_name import printed_name
from plugrad._torch_names.sharing import is_shared, share_memory
from plugrad.device import CPU, Device, as_device
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.dtype import DType, get_default_dtype, uint8
from plugrad.tensor.aliasing.functionalize import group_of, memory_of
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.creation.from_data import as_tensor
from plugrad.tensor.interop.arrays import host_array, share_numpy


class _Storage:
    """What storages of bytes and of elements have in common.

    `_tensor` is one of the tensors that share the memory, without its graph.
    """

    is_sparse = False
    filename = None
    dtype: DType

    def __init__(self, tensor: Any, dtype: DType, window: slice) -> None:
        self.dtype = dtype
        self.device: Device = tensor.device
        base = tensor if tensor._base is None else tensor._base
        self._tensor = base if tensor._keyset & FUNCTIONALIZE_BIT else base.detach()
        self._array = _owner(memory_of(tensor))
        self._window = window

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is a GPU's.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().is_cuda
        False
        """
        return bool(self.device.type == "cuda")

    def data_ptr(self) -> int:
        """The address of the first byte; 0 if there is none.

        Raises RuntimeError if the backend's arrays have no address.

        >>> import plugrad
        >>> x = plugrad.arange(4)
        >>> x[2:].untyped_storage().data_ptr() == x.data_ptr()
        True
        """
        interface = getattr(self._array, "__array_interface__", None)
        if interface is None:
            raise RuntimeError("Cannot access data pointer of Storage that is invalid.")
        return int(interface["data"][0]) + (self._window.start or 0) if self.nbytes() else 0

    def nbytes(self) -> int:
        """How many bytes there are.

        >>> import plugrad
        >>> plugrad.ones(2, 3).untyped_storage().nbytes()
        24
        """
        start, stop, _ = self._window.indices(int(self._array.nbytes))
        return stop - start

    def size(self) -> int:
        """How many elements there are: bytes, if the storage is untyped.

        >>> import plugrad
        >>> x = plugrad.ones(2, 3)
        >>> x.untyped_storage().size(), x.storage().size()
        (24, 6)
        """
        return self.nbytes() // self.element_size()

    def element_size(self) -> int:
        """Bytes per element; 1 if the storage is untyped.

        >>> import plugrad
        >>> x = plugrad.ones(2, 3)
        >>> x.untyped_storage().element_size(), x.storage().element_size()
        (1, 4)
        """
        return self.dtype.itemsize

    def get_device(self) -> int:
        """The index of the device; -1 for the host.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().get_device()
        -1
        """
        return -1 if self.device.is_host else self.device.index or 0

    def is_shared(self) -> bool:
        """Whether other processes see the memory; on a GPU always, as in PyTorch.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().is_shared()
        False
        """
        return self.is_cuda or is_shared(self._tensor)

    def share_memory_(self) -> Self:
        """Move the memory to where other processes see it, with all tensors that are in it.

        Raises NotImplementedError if the device's arrays cannot live there, or plugrad-nn, which
        has `plugrad.multiprocessing`, is not installed.

        >>> import plugrad
        >>> x = plugrad.ones(2)
        >>> _ = x.untyped_storage().share_memory_()
        >>> x.is_shared()
        True
        """
        if not self.is_cuda:
            share_memory(self._tensor)
            self._array = _owner(memory_of(self._tensor))
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it is page-locked memory of the host.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().is_pinned()
        False
        """
        return bool(self._tensor.is_pinned())

    def resizable(self) -> bool:
        """Whether `resize_` can change how much memory there is: no, an array's is fixed.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().resizable()
        False
        """
        return False

    def resize_(self, size: int) -> Self:
        """Accept the number of elements that there are.

        Raises RuntimeError for another one: the memory belongs to the backend's array.

        >>> import plugrad
        >>> storage = plugrad.ones(2).storage()
        >>> storage.resize_(2).size()
        2
        """
        if size != self.size():
            raise RuntimeError(
                f"resize_(): the memory of a backend's array cannot be resized, from {self.size()} "
                f"to {size} elements; make a new tensor"
            )
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The elements as a NumPy array, which shares the memory where `_elements` does."""
        array = host_array(self._elements())
        if dtype is None and not copy:
            return array
        return np.array(array, dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.__array__().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.__array__().__dlpack_device__()

    def tolist(self) -> list[Any]:
        """The elements, as a list of numbers.

        >>> import plugrad
        >>> plugrad.arange(4).view(2, 2).t().storage().tolist()
        [0, 1, 2, 3]
        """
        found: list[Any] = host_array(self._elements()).tolist()
        return found

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        return self._elements()[self._position(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        elements = self._elements()
        elements[index if isinstance(index, slice) else self._position(index)] = value
        if not self._is_open():
            self._write(elements)

    def fill_(self, value: Any) -> Self:
        """Set every element to a number.

        >>> import plugrad
        >>> x = plugrad.zeros(2, 2)
        >>> _ = x[0].storage().fill_(3.0)
        >>> x
        tensor([[3., 3.],
                [3., 3.]])
        """
        if self.size():
            self[:] = value
        return self

    def copy_(self, source: _Storage, non_blocking: bool = False) -> Self:
        """Take over the bytes of another storage of the same size.

        Raises RuntimeError if the sizes differ.

        >>> import plugrad
        >>> x = plugrad.zeros(2)
        >>> _ = x.storage().copy_(plugrad.tensor([1.0, 2.0]).storage())
        >>> x
        tensor([1., 2.])
        """
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        self._write(source._elements())
        return self

    def clone(self) -> Self:
        """A storage of its own with the same elements.

        >>> import plugrad
        >>> storage = plugrad.ones(2).storage()
        >>> storage.clone() == storage, storage.clone().tolist()
        (False, [1.0, 1.0])
        """
        return self._of(self._elements().clone().to(self.device))

    def to(self, *, device: Any, non_blocking: bool = False) -> Self:
        """The storage itself if it is on that device, else a copy there.

        >>> import plugrad
        >>> storage = plugrad.ones(2).storage()
        >>> storage.to(device="cpu") is storage
        True
        """
        place = as_device(device)
        return self if place == self.device else self._of(self._elements().clone().to(place))

    def cpu(self) -> Self:
        """The storage itself if it is the host's memory, else a copy there.

        >>> import plugrad
        >>> storage = plugrad.ones(2).storage()
        >>> storage.cpu() is storage
        True
        """
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """The storage itself if it is the GPU's memory, else a copy there."""
        return self.to(device="cuda" if device is None else device)

    def _of(self, tensor: Any) -> Self:
        raise NotImplementedError

    def _position(self, index: Any) -> int:
        """An index of an element, from the start.

        Raises:
            TypeError: it is not a number.
            IndexError: there is no such element.
        """
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise TypeError(f"can't index a {_name(self)} with {type(index).__name__}")
        size = self.size()
        number = int(index.__index__())
        if not -size <= number < size:
            raise IndexError(f"index {number} out of range for storage of size {size}")
        return number % size

    def _elements(self) -> Any:
        """All elements on the host, of the storage's dtype; they share the memory if that is
        an array of NumPy's that can be written to."""
        whole = self._array.ravel("K") if self._is_open() else host_array(_flat(self._tensor))
        window = whole.view(np.uint8)[self._window]
        return _as_elements(window, self.dtype)

    def _write(self, elements: Any) -> None:
        """Make these elements the memory's."""
        if self._is_open():
            self._elements().copy_(elements)
            return
        window = host_array(elements).view(np.uint8)
        flat = _flat(self._tensor)
        whole = np.array(host_array(flat)).view(np.uint8)
        whole[self._window] = window
        flat.copy_(_as_elements(whole, flat.dtype).to(self.device))

    def _is_open(self) -> bool:
        """Whether the memory is the host's, and can be written to as it is."""
        return isinstance(self._array, np.ndarray) and not self._tensor._keyset & FUNCTIONALIZE_BIT

    def _memory(self) -> object:
        """What is one for all that share it: arrays that cannot be written to come and go."""
        is_fixed = self._tensor._keyset & FUNCTIONALIZE_BIT
        return group_of(self._tensor) if is_fixed else self._array

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Storage)
            and self._memory() is other._memory()
            and self._window == other._window
        )

    def __hash__(self) -> int:
        return id(self._memory())

    def __repr__(self) -> str:
        lines = "".join(f" {element}\n" for element in self.tolist())
        return f"{lines}[{self._described()} of size {self.size()}]"

    def _described(self) -> str:
        return f"{_name(self)}(device={self.device})"


class UntypedStorage(_Storage):
    """The memory that a tensor and its views share, as bytes; `Tensor.untyped_storage` gives it.

    It keeps the memory alive. Two are equal if they are the same memory. A slice is a part of it.

    Args:
        data: a number of bytes, whose values are not set, or the bytes; nothing by default.
        device: where the memory is.

    >>> import plugrad
    >>> x = plugrad.zeros(2, 3)
    >>> x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    True
    >>> x.untyped_storage().nbytes()
    24
    >>> x.untyped_storage()[3] = 64
    >>> x[0, 0]
    tensor(2.)
    """

    __module__ = "plugrad"

    def __init__(self, data: int | Sequence[int] = 0, *, device: Any = None) -> None:
        if isinstance(data, np.integer):
            data = int(data)
        if isinstance(data, int) and data < 0:
            raise RuntimeError(f"UntypedStorage(): expected a size of at least 0, got {data}")
        if not isinstance(data, (int, Sequence, np.ndarray, TensorBase)):
            raise TypeError(
                "UntypedStorage(): expected a number of bytes or a sequence of ints, but got "
                f"{type_name(data)}"
            )
        items = [] if isinstance(data, int) else list(data)
        for item in items:
            if not hasattr(type(item), "__index__"):
                raise TypeError(
                    "UntypedStorage(): expected a number of bytes or a sequence of ints, but one "
                    f"of the items was of type {type_name(item)}"
                )
        made = (
            F.empty((data,), dtype=uint8, device=device)
            if isinstance(data, int)
            else as_tensor(items, dtype=uint8, device=device)
        )
        super().__init__(made, uint8, slice(None))

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(
                f"Trying to slice with a step of {step}, but only a step of 1 is supported"
            )
        offset = self._window.start or 0
        part = self._of(self._tensor)
        part._window = slice(offset + start, offset + max(start, stop))
        return part

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, which are read when they are used.

        Args:
            filename: the path.
            shared: whether writes go to the file, which is made and grows as needed.
            nbytes: how many bytes of it; without `shared`, the file has them.

        Raises:
            RuntimeError: the file is shorter.
            OSError: it cannot be opened.

        >>> import os, tempfile
        >>> import plugrad
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "bytes")
        ...     with open(path, "wb") as file:
        ...         _ = file.write(bytes([1, 2, 3]))
        ...     print(plugrad.UntypedStorage.from_file(path, nbytes=3).tolist())
        [1, 2, 3]
        """
        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(nbytes, file.tell()))
        length = os.path.getsize(filename)
        if nbytes < 0 or nbytes > length:
            raise RuntimeError(
                f"from_file(): expected between 0 and {length} bytes, as {filename!r} has, got "
                f"{nbytes}"
            )
        if not nbytes:
            return cls()
        import mmap

        with open(filename, "r+b" if shared else "rb") as file:
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            data = mmap.mmap(file.fileno(), nbytes, access=access)
        return storage_of(share_numpy(np.frombuffer(data, np.uint8), CPU))

    def untyped(self) -> UntypedStorage:
        """The storage itself.

        >>> import plugrad
        >>> storage = plugrad.ones(2).untyped_storage()
        >>> storage.untyped() is storage
        True
        """
        return self

    def new(self) -> UntypedStorage:
        """A storage without bytes on the same device.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().new().nbytes()
        0
        """
        return UntypedStorage(device=self.device)

    def type(self) -> str:
        """The name of the type.

        >>> import plugrad
        >>> plugrad.ones(2).untyped_storage().type()
        'plugrad.UntypedStorage'
        """
        return _name(self)

    def byteswap(self, dtype: DType) -> None:
        """Reverse the bytes of each element, of a given dtype, in place.

        >>> import plugrad
        >>> storage = plugrad.tensor([1, 2], dtype=plugrad.int16).untyped_storage()
        >>> storage.byteswap(plugrad.int16)
        >>> storage.tolist()
        [0, 1, 0, 2]
        """
        swapped = host_array(self._elements()).reshape(-1, dtype.itemsize)[:, ::-1].reshape(-1)
        self[:] = share_numpy(np.ascontiguousarray(swapped), CPU)

    def _of(self, tensor: Any) -> UntypedStorage:
        return storage_of(tensor)


class TypedStorage(_Storage):
    """The memory that a tensor and its views share, as elements of its dtype; `Tensor.storage`
    gives it.

    >>> import plugrad
    >>> x = plugrad.arange(6.).view(2, 3)
    >>> x[1].storage().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> x[1].storage_offset()
    3
    """

    __module__ = "plugrad"

    def __init__(
        self, data: Any = 0, *, dtype: DType | None = None, device: Device | str = "cpu"
    ) -> None:
        if isinstance(data, TensorBase):
            made: Any = data
        elif isinstance(data, (int, np.integer)) and not isinstance(data, bool):
            made = F.empty((int(data),), dtype=dtype, device=device)
        elif isinstance(data, (list, tuple)):
            made = as_tensor(data, dtype=dtype or get_default_dtype(), device=device)
        else:
            raise TypeError(
                "TypedStorage(): argument 'data' (position 1) must be int or sequence, not "
                f"{type_name(data)}"
            )
        super().__init__(made, made.dtype, slice(None))

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes.

        >>> import plugrad
        >>> storage = plugrad.ones(2).storage()
        >>> storage.size(), storage.untyped().size()
        (2, 8)
        """
        return storage_of(self._tensor)

    def type(self) -> str:
        """The name of the type, such as ``plugrad.FloatStorage``.

        >>> import plugrad
        >>> plugrad.ones(2, dtype=plugrad.int64).storage().type()
        'plugrad.LongStorage'
        """
        return str(self._tensor.type()).replace("Tensor", "Storage")

    def _of(self, tensor: Any) -> TypedStorage:
        return TypedStorage(tensor)

    def _described(self) -> str:
        return f"{_name(self)}(dtype={self.dtype}, device={self.device})"


def storage_of(tensor: Any) -> UntypedStorage:
    """The memory of a tensor, as bytes."""
    made = UntypedStorage.__new__(UntypedStorage)
    _Storage.__init__(made, tensor, uint8, slice(None))
    return made


def strided_view(
    storage: Any, dtype: DType, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...] | None
) -> Any:
    """A tensor on part of a storage's memory.

    Raises:
        RuntimeError: the storage does not hold that many elements of the dtype.
    """
    flat = _flat(storage._tensor)
    bytes_ = flat if flat.dtype is uint8 else flat.view(uint8)
    if storage._window != slice(None):
        bytes_ = bytes_[storage._window]
    if strides is None:
        strides = contiguous_strides(sizes)
    last = 0 if 0 in sizes else sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    needed = 0 if 0 in sizes else (offset + last + 1) * dtype.itemsize
    if needed > storage.nbytes():
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, "
            f"and itemsize {dtype.itemsize} requiring a storage size of {needed} are out of bounds "
            f"for storage of size {storage.nbytes()}"
        )
    whole = bytes_[: storage.nbytes() // dtype.itemsize * dtype.itemsize]
    elements = whole if dtype is uint8 else whole.view(dtype)
    return elements.as_strided(sizes, strides, offset)


def _as_elements(data: Any, dtype: DType) -> Any:
    """A tensor on the host that shares the memory of an array of bytes."""
    native = host_array(F.empty((0,), dtype=dtype, device=CPU)).dtype
    return share_numpy(data.view(native), CPU)


def _name(storage: _Storage) -> str:
    return f"{printed_name()}.{type(storage).__name__}"


def _flat(tensor: Any) -> Any:
    """All elements of a tensor that is not a view, in the order of memory, which it shares."""
    whole = tensor.detach()
    if whole.is_contiguous():
        return whole.view(-1)
    return whole.as_strided((whole.numel(),), (1,), 0)


def _owner(array: Any) -> Any:
    """The array from which a view was first taken, if arrays expose it."""
    while True:
        base = getattr(array, "base", None)
        if type(base) is not type(array):
            # What NumPy's as_strided returns keeps an object that keeps the array.
            base = getattr(base, "base", None)
        if type(base) is not type(array):
            return array
        array = base
