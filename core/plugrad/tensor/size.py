"""Size: the shape of a tensor as a tuple, printed as `plugrad.Size([2, 3])`."""

from __future__ import annotations

# Interpreted: compiled, a class of tuples has no text, and its methods are objects.
from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any, SupportsIndex, overload

from plugrad._printed_name import printed_name

_item = tuple.__getitem__


class Size(tuple[int, ...]):
    """The lengths of a tensor along each dimension: a tuple with the number of elements as
    `numel()`.

    Raises TypeError when an item is not an integer.

    >>> import plugrad
    >>> plugrad.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, lengths: Iterable[Any] = (), /) -> Size:
        """Check that every length is an integer, as `torch.Size` does."""
        items = tuple(lengths)
        for position, item in enumerate(items):
            if type(item) is not int:
                try:
                    index(item)
                except TypeError:
                    raise TypeError(
                        f"plugrad.Size() takes an iterable of 'int' "
                        f"(item {position} is '{type(item).__name__}')"
                    ) from None
        return tuple.__new__(cls, map(index, items))

    def numel(self) -> int:
        """The number of elements of a tensor of this size.

        >>> import plugrad
        >>> plugrad.Size([2, 3]).numel(), plugrad.Size([]).numel()
        (6, 1)
        """
        return prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Size: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> int | Size:
        found: Any = _item(self, key)
        return as_size(found) if type(found) is tuple else found

    def __add__(self, other: tuple[Any, ...], /) -> Size:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[Any, ...], /) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, count: SupportsIndex, /) -> Size:
        return as_size(tuple.__mul__(self, count))

    def __rmul__(self, count: SupportsIndex, /) -> Size:
        return self * count

    def __repr__(self) -> str:
        return f"{printed_name()}.Size({list(self)})"

    def __reduce__(self) -> Any:
        return (Size, (tuple(self),))


def as_size(lengths: tuple[int, ...]) -> Size:
    """Wrap a tuple that is known to hold ints, without checking it again."""
    return tuple.__new__(Size, lengths)
