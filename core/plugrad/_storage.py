"""The memory behind a tensor as an object: which tensors share it, how large it is."""

from __future__ import annotations

# Interpreted: it is asked for seldom.
from typing import Any

from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.tensor.functionalize import group_of, memory_of


class UntypedStorage:
    """The memory that a tensor and its views share, as bytes; `Tensor.untyped_storage` gives it.

    It keeps the memory alive. Two are equal if they are the same memory.

    >>> import plugrad
    >>> x = plugrad.zeros(2, 3)
    >>> x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    True
    >>> x.untyped_storage().nbytes()
    24
    """

    __module__ = "plugrad"

    def __init__(self, tensor: Any) -> None:
        self.device = tensor.device
        self._tensor = tensor if tensor.keyset & FUNCTIONALIZE_BIT else None
        self._array = _owner(memory_of(tensor))

    def data_ptr(self) -> int:
        """The address of the first byte; 0 if there is none.

        Raises RuntimeError if the backend's arrays have no address.
        """
        interface = getattr(self._array, "__array_interface__", None)
        if interface is None:
            raise RuntimeError("Cannot access data pointer of Storage that is invalid.")
        return int(interface["data"][0]) if self.nbytes() else 0

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self._array.nbytes)

    def size(self) -> int:
        """How many bytes there are."""
        return self.nbytes()

    def element_size(self) -> int:
        """Bytes per element: 1."""
        return 1

    def __len__(self) -> int:
        return self.nbytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._memory() is other._memory()

    def __hash__(self) -> int:
        return id(self._memory())

    def _memory(self) -> object:
        """What is one for all that share it: arrays that cannot be written to come and go."""
        return self._array if self._tensor is None else group_of(self._tensor)


def _owner(array: Any) -> Any:
    """The array that a view was first taken of, where arrays know."""
    while True:
        base = getattr(array, "base", None)
        if type(base) is not type(array):
            # What NumPy's as_strided returns keeps an object that keeps the array.
            base = getattr(base, "base", None)
        if type(base) is not type(array):
            return array
        array = base
