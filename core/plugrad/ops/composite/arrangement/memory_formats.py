"""Tensors in memory formats, made from row-major ones with permuted dimensions."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad.memory_format import MemoryFormat, contiguous_format
from plugrad.ops.prepare.memory_formats import keeps_layout, lies_in
from plugrad.tensor.aliasing.memory_layout import inverse

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def permuted(sizes: Sizes, order: Sizes | None) -> Sizes:
    """The sizes of the tensor that `in_order` takes."""
    return sizes if order is None else tuple([sizes[dim] for dim in order])


def in_order(made: Tensor, order: Sizes | None) -> Tensor:
    """A new row-major tensor as one with its dimensions in another order."""
    return made if order is None else made.permute(inverse(order)).detach()


def copied(self: Tensor, memory_format: MemoryFormat) -> Tensor:
    """A copy in a format of one rank only."""
    order = memory_format.order
    return in_order(self.permute(order).clone(memory_format=contiguous_format), order)


def formatted(made: Any, memory_format: MemoryFormat | None) -> Any:
    """A new tensor, or a copy if it does not have the requested format."""
    if keeps_layout(memory_format):
        return made
    assert memory_format is not None
    if lies_in(made, memory_format):
        return made
    return made.clone(memory_format=memory_format)
