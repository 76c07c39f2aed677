"""Which part of a tensor a rank holds: what it writes, and what it wants to read."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plugrad import Tensor

__all__ = ["Piece", "Pieces", "pieces_of"]


@dataclass(frozen=True)
class Piece:
    """A box of a tensor's elements.

    Attributes:
        offset: the index of its first element in the whole tensor.
        tensor: its elements; loading writes to them.
    """

    offset: tuple[int, ...]
    tensor: Tensor


@dataclass(frozen=True)
class Pieces:
    """What a rank holds of a tensor.

    Attributes:
        shape: of the whole tensor.
        local: the pieces.
        writes: whether this rank writes its pieces. None where all ranks hold the same: they share
            such tensors out among themselves.
    """

    shape: tuple[int, ...]
    local: Sequence[Piece]
    writes: bool | None = None


@functools.singledispatch
def pieces_of(tensor: Any) -> Pieces:
    """What this rank holds of a tensor: all of a plain one, which is the same on all ranks.

    Classes of tensors that are spread over ranks register what they hold:
    ``pieces_of.register(MyTensor)``.
    """
    return Pieces(tuple(tensor.shape), [Piece((0,) * tensor.ndim, tensor)])
