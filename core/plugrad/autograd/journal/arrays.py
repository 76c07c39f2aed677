"""Arrays that operators have returned: when they are made, and when they are freed."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, final

from plugrad._intrinsics import array_base, array_nbytes, log1
from plugrad.autograd.journal.kinds import CAME
from plugrad.tensor.base import TensorBase

if TYPE_CHECKING:
    from plugrad.autograd.journal.book import Book

_reference: Final[Any] = weakref.ref


@final
class Arrays:
    """Watches arrays through weak references, from an operator's return until they are freed.

    Args:
        book: records arrays that were freed, on any thread.

    An array may be freed at any point, so this takes no locks: each step is one operation on a
    built-in container.
    """

    def __init__(self, book: Book) -> None:
        self._book: Book | None = book
        self._known: set[int] = set()
        # By the id of a reference: its array's id, bytes, device, the reference.
        self._live: dict[int, tuple[int, int, Any, Any]] = {}
        self._on_freed: Any = self._freed

    def close(self) -> None:
        """Stop watching."""
        self._book = None
        self._live = {}
        self._known = set()
        self._on_freed = None

    def add(self, tensor: TensorBase, args: tuple[object, ...], records: Any) -> None:
        """Record in a log that an operator has returned a tensor, unless its array is known, a
        view, or the array of an argument."""
        array: Any = tensor._backend_array
        key = id(array)
        if key in self._known or array_base(array) is not None:
            return
        nbytes = array_nbytes(array)
        if nbytes < 0 or _is_among(array, args):
            return
        callback = self._on_freed
        if callback is None:
            return
        try:
            watch: Any = _reference(array, callback)
        except TypeError:
            return  # nothing would report when it is freed
        device = tensor.device
        self._known.add(key)
        self._live[id(watch)] = (key, nbytes, device, watch)
        log1(records, CAME, nbytes, 0, device)

    def _freed(self, watch: Any) -> None:
        found = self._live.pop(id(watch), None)
        book = self._book
        if found is not None and book is not None:
            self._known.discard(found[0])
            book.note_gone(found[2], found[1])


def _is_among(array: Any, args: tuple[object, ...]) -> bool:
    """Whether an array belongs to one of the tensors or holds the memory behind it."""
    for value in args:
        if isinstance(value, TensorBase):
            if _is_behind(array, value):
                return True
        elif isinstance(value, (list, tuple)):
            for each in value:
                if isinstance(each, TensorBase) and _is_behind(array, each):
                    return True
    return False


def _is_behind(array: Any, tensor: TensorBase) -> bool:
    found: Any = tensor._backend_array
    while found is not None:
        if found is array:
            return True
        found = array_base(found)
    return False
