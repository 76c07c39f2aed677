"""Memory formats: the order of dimensions in which a tensor's elements are in memory."""

from __future__ import annotations

from typing import Any, Final, final

from plugrad._printed_name import printed_name


@final
class MemoryFormat:
    """One memory format, such as ``plugrad.channels_last``. There is exactly one object for each.

    Attributes:
        name: ``"channels_last"``.
        cpp_name: PyTorch's name in error messages, ``"ChannelsLast"``.
        order: the dimensions, outermost first, for formats of one rank only; () for others.

    >>> import plugrad
    >>> x = plugrad.zeros(2, 3, 4, 5).to(memory_format=plugrad.channels_last)
    >>> x.is_contiguous(memory_format=plugrad.channels_last), x.stride()
    (True, (60, 1, 15, 3))
    """

    def __init__(self, name: str, cpp_name: str, order: tuple[int, ...]) -> None:
        self.name = name
        self.cpp_name = cpp_name
        self.order = order

    def __repr__(self) -> str:
        return printed_name() + "." + self.name

    def __reduce__(self) -> Any:
        return (memory_format_by_name, (self.name,))

    def __copy__(self) -> MemoryFormat:
        return self

    def __deepcopy__(self, memo: object) -> MemoryFormat:
        return self


contiguous_format: Final = MemoryFormat("contiguous_format", "Contiguous", ())
preserve_format: Final = MemoryFormat("preserve_format", "Preserve", ())
channels_last: Final = MemoryFormat("channels_last", "ChannelsLast", (0, 2, 3, 1))
channels_last_3d: Final = MemoryFormat("channels_last_3d", "ChannelsLast3d", (0, 2, 3, 4, 1))

_BY_NAME: Final[dict[str, MemoryFormat]] = {
    found.name: found
    for found in (contiguous_format, preserve_format, channels_last, channels_last_3d)
}


def memory_format_by_name(name: str) -> MemoryFormat:
    """The format called `name`; ValueError lists the names there are."""
    found = _BY_NAME.get(name)
    if found is None:
        expected = ", ".join(_BY_NAME)
        raise ValueError(f"unknown memory format {name!r}; expected one of {expected}")
    return found


def check_rank(memory_format: MemoryFormat, ndim: int) -> None:
    """RuntimeError if tensors of `ndim` dimensions cannot have a format."""
    rank = len(memory_format.order)
    if rank and rank != ndim:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")
