"""MetaArray: what an array looks like, without its elements."""

from __future__ import annotations

# Interpreted: it computes shapes only.
from collections.abc import Sequence
from typing import Any

from plugrad.dtype import DType
from plugrad.tensor.aliasing.strides import contiguous_strides

Shape = tuple[int, ...]


class MetaArray:
    """Shape, dtype, strides and offset (in elements) of an array without data.

    Attributes:
        base: for a view, the array with which it would share memory.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DType,
        strides: Shape | None = None,
        offset: int = 0,
        base: MetaArray | None = None,
    ) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = dtype
        self.strides: Shape = contiguous_strides(self.shape) if strides is None else strides
        self.offset = offset
        self.base = base

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> MetaArray:
        """Another look at the same memory; `offset` counts from this array's."""
        base = self if self.base is None else self.base
        return MetaArray(shape, self.dtype, tuple(strides), self.offset + offset, base)

    def new(self, shape: Sequence[int], dtype: DType | None = None) -> MetaArray:
        """An array of its own, of the same dtype unless another one is given."""
        return MetaArray(shape, self.dtype if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"MetaArray(shape={self.shape}, dtype={self.dtype}, strides={self.strides})"


def shape_of(value: Any) -> Shape:
    """The shape of an array, or () for a number."""
    return value.shape if isinstance(value, MetaArray) else ()
